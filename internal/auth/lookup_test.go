package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"invoicebridge/internal/problem"
)

// heldStore reads when it is asked, and answers what it has read when it is let go.
type heldStore struct {
	mu     sync.Mutex
	tokens map[string]Token
	broken bool
	asked  [][]string
	let    chan struct{}
}

func (s *heldStore) read(ids []string) (found []Token, broken bool) {
	s.mu.Lock()
	s.asked = append(s.asked, slices.Sorted(slices.Values(ids)))
	for _, id := range ids {
		if t, known := s.tokens[id]; known {
			found = append(found, t)
		}
	}
	broken = s.broken
	let := s.let
	s.mu.Unlock()
	<-let
	return found, broken
}

func (s *heldStore) TokenByID(_ context.Context, id string) (Token, error) {
	if found, _ := s.read([]string{id}); len(found) == 1 {
		return found[0], nil
	}
	return Token{}, ErrTokenUnknown
}

func (s *heldStore) TokensByID(_ context.Context, ids []string) ([]Token, error) {
	found, broken := s.read(ids)
	if broken {
		return nil, errors.New("connection refused")
	}
	return found, nil
}

// set changes a token, as a transaction that has committed.
func (s *heldStore) set(id string, change func(*Token)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tokens[id]
	change(&t)
	s.tokens[id] = t
}

type heldLookUps struct {
	*heldStore
	*lookUps
	t *testing.T
}

func holdLookUps(t *testing.T, known ...string) heldLookUps {
	s := &heldStore{tokens: map[string]Token{}, let: make(chan struct{})}
	for _, id := range known {
		s.tokens[id] = Token{ID: id, Tenant: "of " + id}
	}
	return heldLookUps{s, newLookUps(s), t}
}

// ask asks for tokens at once, returns when all of them wait for something, and gives what to wait for their answers with.
func (h heldLookUps) ask(ctx context.Context, ids ...string) (answers func() (tokens []Token, errs []error)) {
	tokens, errs := make([]Token, len(ids)), make([]error, len(ids))
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() { tokens[i], errs[i] = h.token(ctx, id) })
	}
	synctest.Wait()
	return func() ([]Token, []error) {
		all.Wait()
		return tokens, errs
	}
}

func TestTokensThatWaitAreLookedUpTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := holdLookUps(t, "a", "b")
		h.ask(t.Context(), "a", "b")
		wanted := []string{"a", "b", "nobody", "a", "a", "b", "nobody", "a"}
		answers := h.ask(t.Context(), wanted...)
		close(h.let)
		tokens, errs := answers()
		for i, id := range wanted {
			if id == "nobody" {
				if !errors.Is(errs[i], ErrTokenUnknown) {
					t.Errorf("an id that there is not: %+v, %v", tokens[i], errs[i])
				}
			} else if errs[i] != nil || tokens[i].Tenant != "of "+id {
				t.Errorf("%s got %+v, %v", id, tokens[i], errs[i])
			}
		}
		if got := fmt.Sprint(h.asked[2:]); got != "[[a b nobody]]" {
			t.Errorf("those that waited made the queries %s", got)
		}
	})
}

// What a query has read before the call is never given to it, not even by a query that has not ended yet.
func TestWhatIsCommittedBeforeTheCallIsSeenWhateverIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		id, secret := Generate()
		h := holdLookUps(t, id)
		h.set(id, func(token *Token) { token.SecretHash = secret.Hash() })
		verifier := &Verifier{h.lookUps}
		alone := h.ask(t.Context(), id, id)
		joined := h.ask(t.Context(), id, id)
		h.let <- struct{}{} // those that waited are under way now, and have read
		synctest.Wait()
		if len(h.asked) != lookUpsAtOnce+1 {
			t.Fatalf("%d queries, want the third under way", len(h.asked))
		}
		now := t.Context()
		h.set(id, func(token *Token) { token.RevokedAt = new(token.CreatedAt) })
		refused := make(chan error)
		go func() {
			_, err := verifier.Verify(now, Format(id, secret))
			refused <- err
		}()
		synctest.Wait()
		close(h.let)
		if err := <-refused; !problem.Is(err, problem.Unauthenticated) {
			t.Errorf("a token that was revoked before the call: %v, want unauthenticated", err)
		}
		for _, answers := range []func() ([]Token, []error){alone, joined} {
			for _, token := range first(answers()) {
				if token.RevokedAt != nil {
					t.Error("a query under way has read what was committed later: the test shows nothing")
				}
			}
		}
	})
}

func first[A, B any](a A, _ B) A { return a }

func TestAnErrorOfALookUpForSeveralIsNobodys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := holdLookUps(t, "a", "b")
		h.broken = true
		h.ask(t.Context(), "a", "a")
		answers := h.ask(t.Context(), "a", "b", "nobody")
		close(h.let)
		tokens, errs := answers()
		if errs[0] != nil || errs[1] != nil || tokens[0].ID != "a" || tokens[1].ID != "b" || !errors.Is(errs[2], ErrTokenUnknown) {
			t.Errorf("got %+v, %v", tokens, errs)
		}
	})
}

func TestWhoLeavesOrHangsHoldsUpNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := holdLookUps(t, "a", "b")
		h.ask(t.Context(), "a", "a")
		hanging := h.let
		defer close(hanging)
		h.let = make(chan struct{})
		close(h.let)
		ctx, leave := context.WithCancel(t.Context())
		left := h.ask(ctx, "a")
		stays := h.ask(t.Context(), "b")
		leave()
		if _, errs := left(); !errors.Is(errs[0], context.Canceled) {
			t.Errorf("who left got %v", errs[0])
		}
		tokens, errs := stays()
		if errs[0] != nil || tokens[0].ID != "b" {
			t.Errorf("who stayed got %+v, %v", tokens, errs)
		}
	})
}

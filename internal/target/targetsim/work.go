package targetsim

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// submit is POST /einvoice/documents.
func (s *Sim) submit(r *http.Request, body []byte) reply {
	var document struct {
		Number string `json:"number"`
	}
	reference, keys := r.URL.Query().Get("external_reference"), r.Header.Values("Idempotency-Key")
	switch {
	case reference == "":
		return refusal(http.StatusBadRequest, "external_reference", "external_reference is missing")
	case len(keys) != 1 || keys[0] == "":
		return refusal(http.StatusBadRequest, "idempotency_key", "exactly one Idempotency-Key is needed")
	case json.Unmarshal(body, &document) != nil:
		return refusal(http.StatusBadRequest, "document", "the document is not a JSON object")
	}
	req := Request{
		Kind: einvoiceKind, Operation: "submit", ExternalReference: reference, Key: keys[0], BodySum: sum(body),
	}
	return s.work(r.Context(), req, thing{Kind: einvoiceKind, Number: document.Number, Key: keys[0], Sum: sum(body), Finally: "accepted"})
}

// create is POST /ledger/entries.
func (s *Sim) create(r *http.Request, body []byte) reply {
	var in struct {
		ExternalReference string         `json:"external_reference"`
		Number            string         `json:"number"`
		Document          jsontext.Value `json:"document"`
	}
	if err := json.Unmarshal(body, &in); err != nil || in.ExternalReference == "" || in.Document.Kind() != '{' {
		return refusal(http.StatusBadRequest, "entry", "external_reference and document are needed")
	}
	req := Request{Kind: ledgerKind, Operation: "create", ExternalReference: in.ExternalReference, BodySum: sum(body)}
	return s.work(r.Context(), req, thing{Kind: ledgerKind, Number: in.Number, Sum: sum(in.Document)})
}

// work lets a request that makes something meet its fault, have its effect and get its answer.
func (s *Sim) work(ctx context.Context, req Request, t thing) reply {
	b := s.meet(sending, req.ExternalReference)
	req.Fault = b.fault
	if b.fault == Slow && !s.dawdle(ctx) {
		return reply{manner: broken}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	req.At = now
	if b.without {
		if err := s.commit(true, event{Request: &req}); err != nil {
			return failed(err)
		}
		return b.reply(&t)
	}
	if earlier := s.keyed(t, now); earlier != nil {
		if err := s.commit(true, event{Request: &req}); err != nil {
			return failed(err)
		}
		return finish(b, earlier, repeated(earlier, t, now))
	}
	t.ExternalReference = req.ExternalReference
	made := s.shape(t, b, now)
	if err := s.commit(true, event{Request: &req}, event{Made: made}); err != nil {
		return failed(err)
	}
	return finish(b, made, jsonReply(http.StatusCreated, made.view(now)))
}

// keyed finds what the same key has made, while the key is honoured: for the window from its first request on.
func (s *Sim) keyed(t thing, now time.Time) *thing {
	for _, earlier := range s.state.byKey[t.Key] { // nothing is filed under the empty key
		if now.Before(earlier.Received.Add(s.cfg.KeyWindow)) {
			return earlier
		}
	}
	return nil
}

// repeated is the true answer to a key that was seen before.
func repeated(earlier *thing, t thing, now time.Time) reply {
	switch {
	case earlier.Sum != t.Sum:
		return refusal(http.StatusUnprocessableEntity, "key_reused", "this key belongs to another document")
	case !earlier.exists(now):
		return pause(http.StatusConflict, "in_progress")
	default:
		return jsonReply(http.StatusOK, earlier.view(now))
	}
}

// shape fills in what t becomes of itself, and how the fault changes that. Ids count through, so they follow from the
// journal.
func (s *Sim) shape(t thing, b behaviour, now time.Time) *thing {
	n := len(s.state.things) + 1
	t.ID, t.Reference = fmt.Sprintf("%s-%06d", t.Kind, n), fmt.Sprintf("REG-%06d", n)
	t.Received, t.Effective, t.Visible, t.Decided = now, now, now, now
	if b.shape != nil {
		b.shape(&t, s.cfg)
	}
	return &t
}

// finish gives the fault's reply, or the truth where the fault has none.
func finish(b behaviour, t *thing, truth reply) reply {
	if b.reply == nil {
		return truth
	}
	r := b.reply(t)
	if r.manner == cut {
		truth.manner = cut
		return truth
	}
	return r
}

// dawdle waits. It says false if the client or the simulator ended meanwhile.
func (s *Sim) dawdle(ctx context.Context) bool {
	timer := time.NewTimer(s.cfg.Slow)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	case <-s.stopped:
		return false
	}
}

// post is POST /ledger/entries/{id}/post. It may be repeated.
func (s *Sim) post(r *http.Request, body []byte) reply {
	id := r.PathValue("id")
	reference := s.referenceOf(ledgerKind, id)
	b := s.meet(posting, reference)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	events := []event{{Request: &Request{
		At: now, Kind: ledgerKind, Operation: "post", ExternalReference: reference, BodySum: sum(body), Fault: b.fault,
	}}}
	entry := s.state.byID[id]
	there := entry != nil && entry.Kind == ledgerKind && entry.exists(now)
	if there && !b.without && !entry.posted {
		events = append(events, event{Posted: id})
	}
	if err := s.commit(true, events...); err != nil {
		return failed(err)
	}
	switch {
	case !there:
		return refusal(http.StatusNotFound, "not_found", "there is no such entry")
	case b.without:
		return b.reply(entry)
	default:
		return finish(b, entry, jsonReply(http.StatusOK, entry.view(now)))
	}
}

func (s *Sim) referenceOf(kind, id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t, ok := s.state.byID[id]; ok && t.Kind == kind {
		return t.ExternalReference
	}
	return ""
}

// lookup is GET of a kind's collection.
func (s *Sim) lookup(kind string) func(*http.Request, []byte) reply {
	return func(r *http.Request, _ []byte) reply {
		reference := r.URL.Query().Get("external_reference")
		if reference == "" {
			return refusal(http.StatusBadRequest, "external_reference", "external_reference is missing")
		}
		return s.look(kind, reference, func(now time.Time) reply {
			list := listView{Items: []thingView{}}
			for _, t := range s.state.byReference[kindReference{kind, reference}] {
				if t.visible(now) {
					list.Items = append(list.Items, t.view(now))
				}
			}
			return jsonReply(http.StatusOK, list)
		})
	}
}

// document is GET /einvoice/documents/{id}.
func (s *Sim) document(r *http.Request, _ []byte) reply {
	id := r.PathValue("id")
	return s.look(einvoiceKind, s.referenceOf(einvoiceKind, id), func(now time.Time) reply {
		t, ok := s.state.byID[id]
		if !ok || t.Kind != einvoiceKind || !t.visible(now) {
			return refusal(http.StatusNotFound, "not_found", "there is no such document")
		}
		return jsonReply(http.StatusOK, t.view(now))
	})
}

// look lets a look-up meet its fault and else tell the truth. The journal keeps it, but nobody waits for the disk.
func (s *Sim) look(kind, reference string, truth func(now time.Time) reply) reply {
	b := s.meet(looking, reference)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	err := s.commit(false, event{Request: &Request{
		At: now, Kind: kind, Operation: "lookup", ExternalReference: reference, Fault: b.fault,
	}})
	switch {
	case err != nil:
		return failed(err)
	case b.reply != nil:
		return b.reply(nil)
	default:
		return truth(now)
	}
}

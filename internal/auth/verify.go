package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"

	"invoicebridge/internal/problem"
)

// ErrTokenUnknown is what a Store answers for an id it does not have.
var ErrTokenUnknown = errors.New("token unknown")

// Store finds tokens.
type Store interface {
	// TokenByID returns the token, revoked or not; ErrTokenUnknown if there is none.
	TokenByID(ctx context.Context, id string) (Token, error)
	// TokensByID returns those of the tokens that there are, in any order.
	TokensByID(ctx context.Context, ids []string) ([]Token, error)
}

// Verifier turns a token's text into an Identity. It is safe for concurrent use.
type Verifier struct{ lookUps *lookUps }

// NewVerifier makes a Verifier on the tokens of a store.
func NewVerifier(store Store) *Verifier { return &Verifier{newLookUps(store)} }

// Verify says whom a token's text belongs to. A wrong, unknown or revoked token, or one of a person whose account
// is disabled, is a *problem.Problem of type
// unauthenticated, which does not say which it was; any other error means that it could not be
// looked up. An unknown id costs the same look-up, hash and comparison as a known one. Nothing is remembered: what was
// committed before the call, a revocation for one, is seen by it.
func (v *Verifier) Verify(ctx context.Context, text string) (Identity, error) {
	id, secret, err := Parse(text)
	if err != nil {
		return Identity{}, refused()
	}
	token, err := v.lookUps.token(ctx, id)
	unknown := errors.Is(err, ErrTokenUnknown)
	if err != nil && !unknown {
		return Identity{}, fmt.Errorf("look up token %s: %w", id, err)
	}
	kept := token.SecretHash
	if unknown {
		kept = make([]byte, len(secret.Hash()))
	}
	equal := subtle.ConstantTimeCompare(kept, secret.Hash()) == 1
	if !equal || unknown || !token.alive() {
		return Identity{}, refused()
	}
	return token.identity(), nil
}

// alive: not revoked, and neither is the person whose own it is.
func (t Token) alive() bool {
	if t.RevokedAt != nil {
		return false
	}
	return t.Account == nil || t.Owner != nil && t.Owner.DisabledAt == nil
}

func (t Token) identity() Identity {
	who := Identity{Tenant: t.Tenant, TokenID: t.ID, Role: t.Role}
	if t.Owner != nil {
		who.Account, who.Name, who.DisplayName = t.Owner.ID, t.Owner.Name, t.Owner.DisplayName
		who.PersonRole, who.Service = t.Owner.Role, t.Owner.Service
	}
	return who
}

func refused() error {
	return problem.New(problem.Unauthenticated, "The bearer token is missing, wrong or revoked.")
}

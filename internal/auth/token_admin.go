package auth

import (
	"context"
	"fmt"
	"strings"
	"time"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/problem"
)

// WhyNoRevoke is the sentence that RevokeTokenByHand refuses with; "" if it does not.
func (t Token) WhyNoRevoke() string {
	if t.RevokedAt == nil {
		return ""
	}
	return fmt.Sprintf("This token was revoked on %s. It stays so.", t.RevokedAt.UTC().Format(time.DateOnly))
}

// RevokeTokenByHand ends a token for good, from the next request on, as RevokeToken does, for a person who gives a reason
// and is to be told what happened: it fails with problem not-found if the tenant has no such token, malformed-request
// without a reason, and wrong-state if the token is revoked already. Change and audit entry are one transaction.
func (a *Admin) RevokeTokenByHand(ctx context.Context, tenant, id string, by audit.By) (revoked Token, err error) {
	if err := checkTold(by); err != nil {
		return Token{}, err
	}
	err = a.store.InTx(ctx, func(tx AdminTx) error {
		done, err := tx.RevokeToken(ctx, tenant, id)
		if err != nil {
			return fmt.Errorf("revoke token: %w", err)
		}
		if revoked, err = tokenOf(ctx, tx, tenant, id); err != nil {
			return err
		}
		if !done {
			return problem.New(problem.WrongState, "%s", revoked.WhyNoRevoke())
		}
		return writeAudit(ctx, tx, by, AuditEntry{Tenant: tenant, Action: "token.revoke", Subject: id})
	})
	return revoked, err
}

func tokenOf(ctx context.Context, tx AdminTx, tenant, id string) (Token, error) {
	tokens, err := tx.ListTokens(ctx, tenant)
	if err != nil {
		return Token{}, fmt.Errorf("list tokens: %w", err)
	}
	for _, t := range tokens {
		if t.ID == id {
			return t, nil
		}
	}
	return Token{}, problem.New(problem.NotFound, "There is no token with this id.")
}

// CreateTokenByHand is CreateToken for a person who is to be told what is wrong: with the label or the role, as problem
// malformed-request.
func (a *Admin) CreateTokenByHand(ctx context.Context, tenant string, role Role, label string, by audit.By) (id, text string, err error) {
	if err := checkTold(by); err != nil {
		return "", "", err
	}
	if err := checkNewToken(role, label); err != nil {
		return "", "", problem.New(problem.MalformedRequest, "The token can't be made: %s.", err)
	}
	if strings.TrimSpace(label) == "" || strings.ContainsFunc(label, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", "", problem.New(problem.MalformedRequest, "The token can't be made: its label must say what it is for, in plain text.")
	}
	return a.CreateToken(ctx, tenant, role, label, by)
}

const maxReason = 2000

func checkTold(by audit.By) error {
	switch {
	case strings.TrimSpace(by.Reason) == "":
		p := problem.New(problem.MalformedRequest, "A reason must be given: it goes into the audit.")
		p.Errors = []problem.FieldError{{Pointer: "/reason", Detail: "is missing"}}
		return p
	case len(by.Reason) > maxReason || strings.ContainsRune(by.Reason, 0) || strings.ToValidUTF8(by.Reason, "") != by.Reason:
		return problem.New(problem.MalformedRequest, "The reason must be text of at most %d bytes.", maxReason)
	}
	return nil
}

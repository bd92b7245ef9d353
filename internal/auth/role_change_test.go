package auth_test

import (
	"errors"
	"testing"

	"invoicebridge/internal/auth"
)

func TestSessionsAndTokensTakeAnotherRoleAtOnce(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		ctx := p.t.Context()
		p.account("ada", auth.RoleAdmin)
		session := p.logIn("ada")
		_, text, err := p.admin.CreatePersonalToken(ctx, "ada", auth.RoleAdmin, "script", byKim)
		if err != nil {
			p.t.Fatal(err)
		}
		verifier := auth.NewVerifier(p.store)
		may := func(want bool, permission auth.Permission) {
			p.t.Helper()
			person, err := p.sessions.Identify(ctx, session.Value, true)
			if err != nil || person.May(permission) != want {
				p.t.Errorf("the session: %+v, %v; want %t", person, err, want)
			}
			token, err := verifier.Verify(ctx, text)
			if err != nil || token.May(permission) != want {
				p.t.Errorf("the token: %+v, %v; want %t", token, err, want)
			}
		}
		may(true, auth.MayAdminister)
		if _, err := p.admin.SetRole(ctx, "ada", auth.RoleViewer, nil, byKim); err != nil {
			p.t.Fatal(err)
		}
		may(false, auth.MayAdminister)
		may(true, auth.MayRead)
		for range 2 { // the second time changes nothing, and is not written down
			changed, err := p.admin.SetRole(ctx, "ada", auth.RoleAdmin, new(true), byKim)
			if err != nil || changed.Role != auth.RoleAdmin || !changed.Service {
				p.t.Errorf("%+v, %v", changed, err)
			}
		}
		may(true, auth.MayAdminister)
		if person, err := p.sessions.Identify(ctx, session.Value, true); err != nil || !person.May(auth.MayQueue) {
			p.t.Errorf("with service access: %+v, %v", person, err)
		}
		if n := p.count("audit_entries WHERE action = 'account.role' AND subject = 'ada' AND reason LIKE '%(admin with service access, before viewer)'"); n != 1 {
			p.t.Errorf("%d audit entries of the second change, want 1", n)
		}
		if n := p.count("audit_entries WHERE action = 'account.role'"); n != 2 {
			p.t.Errorf("%d audit entries, want 2", n)
		}
	})
}

func TestARoleIsNotGivenToWhoCanNotHaveIt(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		ctx := p.t.Context()
		p.account("ada", auth.RoleViewer)
		if _, err := p.admin.SetRole(ctx, "ada", auth.RoleWriter, nil, byKim); err == nil {
			p.t.Error("a person has a role of tokens")
		}
		if _, err := p.admin.SetRole(ctx, "nobody", auth.RoleAdmin, nil, byKim); !errors.Is(err, auth.ErrAccountUnknown) {
			p.t.Errorf("nobody: %v", err)
		}
		if err := p.admin.DisableAccount(ctx, "ada", byKim); err != nil {
			p.t.Fatal(err)
		}
		if _, err := p.admin.SetRole(ctx, "ada", auth.RoleAdmin, nil, byKim); !errors.Is(err, auth.ErrAccountDisabled) {
			p.t.Errorf("a disabled account: %v", err)
		}
	})
}

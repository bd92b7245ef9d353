package auth_test

import (
	"sync"
	"testing"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/problem"
)

func TestOIDCSubjectOfAnotherIssuerIsAnotherPerson(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		ctx := p.t.Context()
		p.account("ada@acme.example", auth.RoleOperator)
		p.account("bob@acme.example", auth.RoleViewer)
		here := auth.OIDCPerson{Issuer: "https://a.example", Subject: "1", Email: "ada@acme.example", EmailVerified: true}
		there := auth.OIDCPerson{Issuer: "https://b.example", Subject: "1", Email: "ada@acme.example", EmailVerified: true}
		ada, err := p.admin.AccountByOIDC(ctx, here, audit.By{})
		if err != nil || ada.Name != "ada@acme.example" || ada.Issuer != here.Issuer || ada.Subject != "1" {
			p.t.Fatalf("the first log-in finds %+v, %v", ada, err)
		}
		if got, err := p.admin.AccountByOIDC(ctx, there, audit.By{}); !problem.Is(err, problem.Unauthenticated) {
			p.t.Errorf("the same subject and address of another issuer get %q, %v", got.Name, err)
		}
		there.Email = "bob@acme.example"
		if got, err := p.admin.AccountByOIDC(ctx, there, audit.By{}); err != nil || got.Name != "bob@acme.example" {
			p.t.Errorf("the other issuer's person gets %q, %v", got.Name, err)
		}
		// Who is tied is known by the subject: the address may change, be another account's name, or be nobody's.
		for _, email := range []string{"bob@acme.example", ""} {
			again := auth.OIDCPerson{Issuer: here.Issuer, Subject: "1", Email: email}
			if got, err := p.admin.AccountByOIDC(ctx, again, audit.By{}); err != nil || got.ID != ada.ID {
				p.t.Errorf("with the address %q: %q, %v", email, got.Name, err)
			}
		}
		for _, name := range []string{"ada@acme.example", "bob@acme.example"} {
			if n := p.count("audit_entries WHERE action = 'account.tie' AND subject = actor AND subject = '" + name + "'"); n != 1 {
				p.t.Errorf("%s was tied %d times by the audit, want once", name, n)
			}
		}
	})
}

func TestOIDCFirstLogInsAtOnceTieTheAccountOnce(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		ada := p.account("ada@acme.example", auth.RoleOperator)
		person := auth.OIDCPerson{Issuer: "https://a.example", Subject: "1", Email: "ada@acme.example", EmailVerified: true}
		var running sync.WaitGroup
		for range 6 {
			running.Go(func() {
				if got, err := p.admin.AccountByOIDC(p.t.Context(), person, audit.By{}); err != nil || got.ID != ada.ID {
					p.t.Errorf("one of them gets %q, %v", got.Name, err)
				}
			})
		}
		running.Wait()
		if n := p.count("audit_entries WHERE action = 'account.tie'"); n != 1 {
			p.t.Errorf("tied %d times, want once", n)
		}
	})
}

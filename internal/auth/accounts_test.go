package auth_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/problem"
)

const password = "correct horse battery"

var byKim = audit.By{Actor: "kim", Reason: "first set-up"}

// people is a tenant acme on a store, and who may log in.
type people struct {
	t        *testing.T
	pool     *pgxpool.Pool
	store    store
	admin    *auth.Admin
	sessions *auth.Sessions
}

// onBothStores runs a test on each service's own store, with the tenant acme.
func onBothStores(t *testing.T, test func(p people)) {
	bothStores(t, func(t *testing.T, pool *pgxpool.Pool, s store) {
		p := people{t, pool, s, auth.NewAdmin(s), auth.NewSessions(s, auth.NewHasher(), auth.SessionOptions{})}
		if err := p.admin.CreateTenant(t.Context(), "acme", "Acme GmbH", byKim); err != nil {
			t.Fatal(err)
		}
		test(p)
	})
}

// account makes one with the password.
func (p people) account(name string, role auth.Role) auth.Account {
	p.t.Helper()
	hash, err := auth.NewHasher().Hash(p.t.Context(), name, password)
	if err != nil {
		p.t.Fatal(err)
	}
	a, err := p.admin.CreateAccount(p.t.Context(), auth.Account{
		Tenant: "acme", Name: name, DisplayName: "The " + name, Role: role, PasswordHash: hash,
	}, byKim)
	if err != nil {
		p.t.Fatal(err)
	}
	return a
}

func (p people) exec(sql string, args ...any) {
	p.t.Helper()
	if _, err := p.pool.Exec(p.t.Context(), sql, args...); err != nil {
		p.t.Fatalf("%s: %v", sql, err)
	}
}

func (p people) count(from string) (n int) {
	p.t.Helper()
	if err := p.pool.QueryRow(p.t.Context(), "SELECT count(*) FROM "+from).Scan(&n); err != nil {
		p.t.Fatal(err)
	}
	return n
}

func TestAccountsAreMadeListedAndDisabledWithAuditEntries(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		ctx := p.t.Context()
		made := p.account("ada", auth.RoleOperator)
		p.account("bob@acme.example", auth.RoleViewer)
		if _, err := p.admin.SetPassword(ctx, "ada", made.PasswordHash, byKim); err != nil {
			p.t.Fatal(err)
		}
		for range 2 { // the second time changes nothing, and is not written down
			if err := p.admin.DisableAccount(ctx, "ada", byKim); err != nil {
				p.t.Fatal(err)
			}
		}
		if _, err := p.admin.SetPassword(ctx, "ada", made.PasswordHash, byKim); !errors.Is(err, auth.ErrAccountDisabled) {
			p.t.Errorf("a password for a disabled account: %v", err)
		}
		if err := p.admin.DisableAccount(ctx, "nobody", byKim); !errors.Is(err, auth.ErrAccountUnknown) {
			p.t.Errorf("nobody is disabled: %v", err)
		}
		listed, err := p.admin.ListAccounts(ctx, "acme")
		if err != nil || len(listed) != 2 {
			p.t.Fatalf("listed: %+v, %v", listed, err)
		}
		ada, bob := listed[0], listed[1]
		if ada.DisabledAt == nil || ada.CreatedAt.IsZero() || bob.DisabledAt != nil || bob.Name != "bob@acme.example" {
			p.t.Errorf("listed: %+v", listed)
		}
		ada.CreatedAt, ada.DisabledAt = made.CreatedAt, nil
		if diff := cmp.Diff(made, ada); diff != "" {
			p.t.Errorf("made and listed:\n%s", diff)
		}
		if all, err := p.admin.ListAccounts(ctx, ""); err != nil || len(all) != 2 {
			p.t.Errorf("of all tenants: %d, %v", len(all), err)
		}
		if _, err := p.admin.ListAccounts(ctx, "other"); !errors.Is(err, auth.ErrTenantUnknown) {
			p.t.Errorf("of a tenant that is not there: %v", err)
		}
		wantAudit(p.t, p.pool, "tenant.create acme", "account.create ada", "account.create bob@acme.example", "account.password ada", "account.disable ada")
	})
}

func TestWrongAccountsAreNotMade(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		p.account("ada", auth.RoleViewer)
		good := auth.Account{Tenant: "acme", Name: "bob", DisplayName: "Bob", Role: auth.RoleViewer}
		for name, change := range map[string]func(a *auth.Account){
			"no name": func(a *auth.Account) { a.Name = "" }, "capitals": func(a *auth.Account) { a.Name = "Bob" },
			"a space": func(a *auth.Account) { a.Name = "b ob" }, "a dash first": func(a *auth.Account) { a.Name = "-bob" },
			"too long": func(a *auth.Account) { a.Name = strings.Repeat("a", 255) }, "name taken": func(a *auth.Account) { a.Name = "ada" },
			"no display name": func(a *auth.Account) { a.DisplayName = "" }, "a token's role": func(a *auth.Account) { a.Role = auth.RoleWriter },
			"no role": func(a *auth.Account) { a.Role = "" }, "no such tenant": func(a *auth.Account) { a.Tenant = "other" },
		} {
			wrong := good
			change(&wrong)
			if _, err := p.admin.CreateAccount(p.t.Context(), wrong, byKim); err == nil || strings.Contains(err.Error(), "SQLSTATE") {
				p.t.Errorf("%s: %v", name, err)
			}
		}
		if _, err := p.admin.CreateAccount(p.t.Context(), good, audit.By{}); err == nil {
			p.t.Error("made by nobody")
		}
		if n := p.count("accounts"); n != 1 {
			p.t.Errorf("there are %d accounts, want 1", n)
		}
	})
}

func TestPersonalTokenActsInThePersonsNameAndEndsWithThem(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		ctx := p.t.Context()
		ada := p.account("ada", auth.RoleOperator)
		id, text, err := p.admin.CreatePersonalToken(ctx, "ada", auth.RoleWriter, "script", byKim)
		if err != nil {
			p.t.Fatal(err)
		}
		verifier := auth.NewVerifier(p.store)
		who, err := verifier.Verify(ctx, text)
		want := auth.Identity{
			Tenant: "acme", TokenID: id, Role: auth.RoleWriter, Account: ada.ID, Name: "ada", DisplayName: "The ada", PersonRole: auth.RoleOperator,
		}
		if err != nil || who != want || who.Actor() != "ada" {
			p.t.Errorf("%+v, %v, want %+v", who, err, want)
		}
		p.exec("UPDATE accounts SET role = 'viewer', service_access = true WHERE name = 'ada'")
		if who, err = verifier.Verify(ctx, text); err != nil || who.May(auth.MayWrite) || !who.May(auth.MayRead) || who.May(auth.MayQueue) {
			p.t.Errorf("once the person is a viewer: %+v, %v", who, err)
		}
		if err := p.admin.DisableAccount(ctx, "ada", byKim); err != nil {
			p.t.Fatal(err)
		}
		if _, err := verifier.Verify(ctx, text); !problem.Is(err, problem.Unauthenticated) {
			p.t.Errorf("once the account is disabled: %v", err)
		}
		listed, err := p.admin.ListTokens(ctx, "acme")
		if err != nil || len(listed) != 1 || listed[0].Owner == nil || listed[0].Owner.Name != "ada" {
			p.t.Errorf("listed: %+v, %v", listed, err)
		}
		if _, _, err := p.admin.CreatePersonalToken(ctx, "ada", auth.RoleReader, "x", byKim); !errors.Is(err, auth.ErrAccountDisabled) {
			p.t.Errorf("a token for a disabled account: %v", err)
		}
	})
}

func TestPersonalTokenIsNotMadeWithMoreThanThePerson(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		for name, role := range map[string]auth.Role{"viewer": auth.RoleViewer, "operator": auth.RoleOperator, "admin": auth.RoleAdmin, "service": auth.RoleViewer} {
			p.account(name, role)
		}
		p.exec("UPDATE accounts SET service_access = true WHERE name = 'service'")
		made := map[string]string{}
		for _, name := range []string{"viewer", "operator", "admin", "service"} {
			for _, role := range []auth.Role{auth.RoleReader, auth.RoleWriter, auth.RoleAdmin, auth.RoleMetrics} {
				if _, _, err := p.admin.CreatePersonalToken(p.t.Context(), name, role, "x", byKim); err == nil {
					made[name] += string(role) + " "
				}
			}
		}
		want := map[string]string{"viewer": "reader ", "operator": "reader writer ", "admin": "reader writer admin ", "service": "reader metrics "}
		if diff := cmp.Diff(want, made); diff != "" {
			p.t.Errorf("tokens made:\n%s", diff)
		}
		if _, _, err := p.admin.CreatePersonalToken(p.t.Context(), "nobody", auth.RoleReader, "x", byKim); !errors.Is(err, auth.ErrAccountUnknown) {
			p.t.Errorf("nobody's token: %v", err)
		}
	})
}

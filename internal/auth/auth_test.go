package auth_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/testdb"
)

type store interface {
	auth.Store
	auth.AdminStore
	auth.SessionStore
}

// bothStores runs a test on each service's own store, on a database of its own.
func bothStores(t *testing.T, test func(*testing.T, *pgxpool.Pool, store)) {
	t.Run("erp", func(t *testing.T) {
		t.Parallel()
		pool := testdb.ERP(t)
		test(t, pool, erpstore.New(pool))
	})
	t.Run("crm", func(t *testing.T) {
		t.Parallel()
		pool := testdb.CRM(t)
		test(t, pool, crmstore.New(pool))
	})
}

func TestTokenTextIsReadBackAndNothingElseIs(t *testing.T) {
	t.Parallel()
	id, secret := auth.Generate()
	text := auth.Format(id, secret)
	gotID, gotSecret, err := auth.Parse(text)
	if err != nil || gotID != id || gotSecret != secret {
		t.Fatalf("%v: read back %q, want %q", err, gotID, id)
	}
	for _, wrong := range []string{"", "ibt", "ibt__", text[1:], text[:len(text)-1], text + "0", " " + text, text + "\n", strings.ToUpper(text), strings.Replace(text, "_", "-", 1)} {
		if _, _, err := auth.Parse(wrong); !errors.Is(err, auth.ErrTokenForm) {
			t.Errorf("%q: %v, want ErrTokenForm", wrong, err)
		}
	}
	otherID, other := auth.Generate()
	if otherID == id || other == secret {
		t.Error("two tokens are alike")
	}
}

func TestSecretStaysOutOfPrintedText(t *testing.T) {
	t.Parallel()
	_, secret := auth.Generate()
	for _, printed := range []string{fmt.Sprint(secret), fmt.Sprintf("%v %s", secret, secret)} {
		if strings.Contains(printed, string(secret)) {
			t.Errorf("printed: %s", printed)
		}
	}
}

// mapStore counts look-ups.
type mapStore struct {
	tokens  map[string]auth.Token
	lookUps int
}

func (s *mapStore) TokenByID(_ context.Context, id string) (auth.Token, error) {
	s.lookUps++
	if t, ok := s.tokens[id]; ok {
		return t, nil
	}
	return auth.Token{}, auth.ErrTokenUnknown
}

func (*mapStore) TokensByID(context.Context, []string) ([]auth.Token, error) {
	return nil, errors.New("nobody waits")
}

// O4: the test fails if the comparison is the wrong way round.
func TestOnlyTheRightSecretOfALivingTokenIsAccepted(t *testing.T) {
	t.Parallel()
	id, secret := auth.Generate()
	_, wrong := auth.Generate()
	unknown, _ := auth.Generate()
	s := &mapStore{tokens: map[string]auth.Token{
		id: {ID: id, Tenant: "acme", Role: auth.RoleWriter, SecretHash: secret.Hash()},
	}}
	v := auth.NewVerifier(s)
	who, err := v.Verify(t.Context(), auth.Format(id, secret))
	if diff := cmp.Diff(auth.Identity{Tenant: "acme", TokenID: id, Role: auth.RoleWriter}, who); err != nil || diff != "" {
		t.Fatalf("the right token: %v\n%s", err, diff)
	}
	for name, text := range map[string]string{
		"wrong secret": auth.Format(id, wrong), "unknown id": auth.Format(unknown, secret),
		"no token": "", "zero secret": auth.Format(unknown, auth.Secret(strings.Repeat("0", 64))),
	} {
		if who, err := v.Verify(t.Context(), text); !problem.Is(err, problem.Unauthenticated) || who != (auth.Identity{}) {
			t.Errorf("%s: %+v, %v, want unauthenticated", name, who, err)
		}
	}
	if s.lookUps != 4 {
		t.Errorf("%d look-ups, want 4: an unknown id must cost what a known one does", s.lookUps)
	}
	damaged := s.tokens[id]
	damaged.SecretHash = nil
	s.tokens[id] = damaged
	if _, err := v.Verify(t.Context(), auth.Format(id, secret)); !problem.Is(err, problem.Unauthenticated) {
		t.Errorf("a token without a kept hash: %v, want unauthenticated", err)
	}
}

type brokenStore struct{}

func (brokenStore) TokenByID(context.Context, string) (auth.Token, error) {
	return auth.Token{}, errors.New("connection refused")
}

func (brokenStore) TokensByID(context.Context, []string) ([]auth.Token, error) {
	return nil, errors.New("connection refused")
}

func TestStoreThatFailsIsNoRefusal(t *testing.T) {
	t.Parallel()
	_, err := auth.NewVerifier(brokenStore{}).Verify(t.Context(), auth.Format(auth.Generate()))
	if err == nil || problem.As(err) != nil {
		t.Errorf("got %v: whoever has a valid token must not be told that it is wrong", err)
	}
}

func TestSeveralTokensAreFoundAsOneIs(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		ctx := p.t.Context()
		p.account("ada", auth.RoleAdmin)
		own, _, err := p.admin.CreatePersonalToken(ctx, "ada", auth.RoleReader, "script", byKim)
		if err != nil {
			p.t.Fatal(err)
		}
		revoked, _, err := p.admin.CreateToken(ctx, "acme", auth.RoleWriter, "machine", byKim)
		if err != nil {
			p.t.Fatal(err)
		}
		if err := p.admin.RevokeToken(ctx, "acme", revoked, byKim); err != nil {
			p.t.Fatal(err)
		}
		unknown, _ := auth.Generate()
		store := p.store.(auth.Store)
		found, err := store.TokensByID(ctx, []string{own, unknown, revoked})
		if err != nil || len(found) != 2 {
			p.t.Fatalf("%+v, %v; want the two that there are", found, err)
		}
		for _, token := range found {
			alone, err := store.TokenByID(ctx, token.ID)
			if diff := cmp.Diff(alone, token); err != nil || diff != "" {
				p.t.Errorf("%v, alone and together:\n%s", err, diff)
			}
		}
	})
}

func TestTokensAreMadeListedAndRevokedWithAuditEntries(t *testing.T) {
	t.Parallel()
	bothStores(t, func(t *testing.T, pool *pgxpool.Pool, s store) {
		ctx, admin, by := t.Context(), auth.NewAdmin(s), audit.By{Actor: "kim", Reason: "first set-up"}
		if err := admin.CreateTenant(ctx, "acme", "Acme GmbH", by); err != nil {
			t.Fatal(err)
		}
		if err := admin.CreateTenant(ctx, "acme", "Again", by); !errors.Is(err, auth.ErrTenantExists) {
			t.Errorf("a second time: %v, want ErrTenantExists", err)
		}
		if err := admin.CreateTenant(ctx, "other", "Other Ltd", by); err != nil {
			t.Fatal(err)
		}
		id, text, err := admin.CreateToken(ctx, "acme", auth.RoleReader, "report", by)
		if err != nil {
			t.Fatal(err)
		}
		who, err := auth.NewVerifier(s).Verify(ctx, text)
		if want := (auth.Identity{Tenant: "acme", TokenID: id, Role: auth.RoleReader}); err != nil || who != want {
			t.Errorf("%+v, %v, want %+v", who, err, want)
		}
		if err := admin.RevokeToken(ctx, "other", id, by); !errors.Is(err, auth.ErrTokenUnknown) {
			t.Errorf("another tenant's token: %v, want ErrTokenUnknown", err)
		}
		for range 2 {
			if err := admin.RevokeToken(ctx, "acme", id, by); err != nil {
				t.Errorf("revoke: %v", err)
			}
		}
		if _, err := auth.NewVerifier(s).Verify(ctx, text); !problem.Is(err, problem.Unauthenticated) {
			t.Errorf("a revoked token: %v, want unauthenticated", err)
		}
		tokens, err := admin.ListTokens(ctx, "acme")
		if err != nil || len(tokens) != 1 || tokens[0].RevokedAt == nil || tokens[0].Label != "report" {
			t.Errorf("listed: %+v, %v", tokens, err)
		}
		if tokens, err := admin.ListTokens(ctx, "other"); err != nil || len(tokens) != 0 {
			t.Errorf("other has %d tokens, %v", len(tokens), err)
		}
		tenants, err := admin.ListTenants(ctx)
		if err != nil || len(tenants) != 2 || tenants[0].ID != "acme" {
			t.Errorf("tenants: %+v, %v", tenants, err)
		}
		wantAudit(t, pool, "tenant.create acme", "tenant.create other", "token.create "+id, "token.revoke "+id)
		wantSecretKept(t, pool, text)
	})
}

func wantAudit(t *testing.T, pool *pgxpool.Pool, want ...string) {
	t.Helper()
	var got []string
	err := pool.QueryRow(t.Context(), `SELECT array_agg(action || ' ' || subject ORDER BY id) FROM audit_entries
		WHERE actor = 'kim' AND reason = 'first set-up'`).Scan(&got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("audit:\n%s", diff)
	}
}

// wantSecretKept looks for a token's secret in everything that is stored of it.
func wantSecretKept(t *testing.T, pool *pgxpool.Pool, text string) {
	t.Helper()
	_, secret, err := auth.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	var stored string
	if err := pool.QueryRow(t.Context(), "SELECT string_agg(t::text, ' ') FROM tokens t").Scan(&stored); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(stored, string(secret)) {
		t.Error("the secret itself is in the database")
	}
}

func TestAdministrationWithoutAnActorChangesNothing(t *testing.T) {
	t.Parallel()
	bothStores(t, func(t *testing.T, pool *pgxpool.Pool, s store) {
		admin := auth.NewAdmin(s)
		if err := admin.CreateTenant(t.Context(), "acme", "Acme GmbH", audit.By{}); err == nil {
			t.Error("a tenant was made by nobody")
		}
		if err := admin.CreateTenant(t.Context(), "acme", "Acme GmbH", audit.By{Actor: "kim"}); err != nil {
			t.Fatalf("the refused call left something behind: %v", err)
		}
		if _, _, err := admin.CreateToken(t.Context(), "acme", auth.RoleAdmin, "x", audit.By{}); err == nil {
			t.Error("a token was made by nobody")
		}
		if tokens, _ := admin.ListTokens(t.Context(), "acme"); len(tokens) != 0 {
			t.Error("the refused token is there")
		}
	})
}

func TestAdministrationRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	pool := testdb.ERP(t)
	admin, by := auth.NewAdmin(erpstore.New(pool)), audit.By{Actor: "kim"}
	for _, id := range []string{"", "-a", "A", "a b", "ä", strings.Repeat("a", 64)} {
		if err := admin.CreateTenant(t.Context(), id, "Name", by); err == nil || strings.Contains(err.Error(), "SQLSTATE") {
			t.Errorf("tenant %q: %v", id, err)
		}
	}
	if err := admin.CreateTenant(t.Context(), strings.Repeat("a", 63), strings.Repeat("ü", 200), by); err != nil {
		t.Errorf("the longest id and name: %v", err)
	}
	var failures []error
	create := func(tenant string, role auth.Role, label string) {
		_, _, err := admin.CreateToken(t.Context(), tenant, role, label, by)
		failures = append(failures, err)
	}
	create("nobody", auth.RoleReader, "x")
	create(strings.Repeat("a", 63), "root", "x")
	create(strings.Repeat("a", 63), auth.RoleReader, "")
	create(strings.Repeat("a", 63), auth.RoleReader, strings.Repeat("x", 201))
	if slices.Contains(failures, nil) {
		t.Errorf("a wrong token was made: %v", failures)
	}
	if !errors.Is(failures[0], auth.ErrTenantUnknown) {
		t.Errorf("no such tenant: %v", failures[0])
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/testdb"
)

func TestDemoPeopleLogInOnBothSidesAlsoAfterTheNextRun(t *testing.T) {
	t.Parallel()
	erp, crm := testdb.ERP(t), testdb.CRM(t)
	dir := t.TempDir()
	if _, err := ensureTokens(t.Context(), filepath.Join(dir, "tokens"), erp, crm); err != nil { // makes the tenant
		t.Fatal(err)
	}
	path := filepath.Join(dir, "passwords")
	first, err := ensureAccounts(t.Context(), path, erp, crm)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v, want 0600", info.Mode(), err)
	}
	for _, store := range []accountStore{erpstore.New(erp), crmstore.New(crm)} {
		sessions := auth.NewSessions(store, auth.NewHasher(), auth.SessionOptions{})
		for _, p := range people() {
			session, err := sessions.LogIn(t.Context(), p.name, first[p.name], auth.Origin{Address: "192.0.2.1"})
			if who := session.Identity; err != nil || who.Role != p.role || who.Tenant != demoTenant || who.May(auth.MayQueue) != p.service {
				t.Errorf("%s is %+v, %v", p.name, who, err)
			}
		}
		if err := auth.NewAdmin(store).DisableAccount(t.Context(), "viewer", audit.By{Actor: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := auth.NewAdmin(erpstore.New(erp)).SetPassword(t.Context(), "operator", "$argon2id$x", audit.By{Actor: "test"}); err != nil {
		t.Fatal(err)
	}
	if _, err := ensureAccounts(t.Context(), path, erp, crm); err == nil {
		t.Error("a hash that can't be read was taken for a password")
	}
	if _, err := erp.Exec(t.Context(), "UPDATE accounts SET password_hash = NULL WHERE name = 'operator'"); err != nil {
		t.Fatal(err)
	}
	second, err := ensureAccounts(t.Context(), path, erp, crm)
	if diff := cmp.Diff(first, second); err != nil || diff != "" {
		t.Errorf("the second run made other passwords: %v\n%s", err, diff)
	}
	sessions := auth.NewSessions(erpstore.New(erp), auth.NewHasher(), auth.SessionOptions{})
	if _, err := sessions.LogIn(t.Context(), "operator", first["operator"], auth.Origin{Address: "192.0.2.1"}); err != nil {
		t.Errorf("the account with another password did not get the one that is told: %v", err)
	}
	if _, err := sessions.LogIn(t.Context(), "viewer", first["viewer"], auth.Origin{Address: "192.0.2.1"}); err == nil {
		t.Error("an account that was disabled is not any more")
	}
}

func TestConsolesAreToldWithEverybodysPassword(t *testing.T) {
	t.Parallel()
	passwords := tokens{}
	for _, p := range people() {
		passwords[p.name] = newPassword()
	}
	var out strings.Builder
	if err := sayConsoles(&out, "http://erp.test", "http://crm.test", passwords); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"http://erp.test/invoices", "http://crm.test/dashboard"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not told:\n%s", want, out.String())
		}
	}
	for name, password := range passwords {
		if !strings.Contains(out.String(), "  "+name+" ") || !strings.Contains(out.String(), " "+password+" ") {
			t.Errorf("%s is not told:\n%s", name, out.String())
		}
	}
	t.Log(out.String())
}

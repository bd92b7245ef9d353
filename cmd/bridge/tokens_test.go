package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/testdb"
)

func TestTokensAreKeptForTheNextRun(t *testing.T) {
	t.Parallel()
	erp, crm := testdb.ERP(t), testdb.CRM(t)
	path := filepath.Join(t.TempDir(), "demo-tokens")
	first, err := ensureTokens(t.Context(), path, erp, crm)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v, %v, want 0600", info.Mode(), err)
	}
	second, err := ensureTokens(t.Context(), path, erp, crm)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the second run made other tokens:\n%s", diff)
	}
	for name, store := range map[string]auth.Store{
		erpToken: erpstore.New(erp), workerToken: erpstore.New(erp), crmToken: crmstore.New(crm),
	} {
		if who, err := auth.NewVerifier(store).Verify(t.Context(), first[name]); err != nil || who.Tenant != demoTenant {
			t.Errorf("token %s is %v, %v", name, who, err)
		}
	}
}

func TestTokensOfOtherDatabasesAreReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "demo-tokens")
	if _, err := ensureTokens(t.Context(), path, testdb.ERP(t), testdb.CRM(t)); err != nil {
		t.Fatal(err)
	}
	erp, crm := testdb.ERP(t), testdb.CRM(t)
	made, err := ensureTokens(t.Context(), path, erp, crm)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := auth.NewVerifier(erpstore.New(erp)).Verify(t.Context(), made[erpToken]); err != nil {
		t.Errorf("the new database does not know its token: %v", err)
	}
	kept, err := readKept(path)
	if diff := cmp.Diff(made, kept); err != nil || diff != "" {
		t.Errorf("the file was not renewed: %v\n%s", err, diff)
	}
}

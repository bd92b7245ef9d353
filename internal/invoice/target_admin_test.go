package invoice_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/target"
	"invoicebridge/internal/target/einvoice"
	"invoicebridge/internal/target/ledger"
	"invoicebridge/internal/target/targetsim"
)

func TestTargetsThatWouldMakeDuplicatesAreRefusedByName(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, keyed)
	admin := invoice.NewTargetAdmin(b.pool, b.opts.Kinds)
	good := invoice.TargetSettings{
		Tenant: regTenant, ID: "gw", Kind: einvoice.Kind, BaseURL: "https://gateway.example/api", CredentialRef: "env:GATEWAY_TOKEN", Can: locatable,
	}
	for name, tc := range map[string]struct {
		change func(*invoice.TargetSettings)
		says   string
	}{
		"absence believed within a request": {func(s *invoice.TargetSettings) { s.Can.SettleTime = 2 * patience }, "--absent-after"},
		"a ledger with keys":                {func(s *invoice.TargetSettings) { s.Kind, s.Can = ledger.Kind, keyed }, "keyed"},
		"key window within a request":       {func(s *invoice.TargetSettings) { s.Can = target.Capabilities{Keyed: true, KeyWindow: patience} }, "--key-window"},
		"absence where nobody can ask":      {func(s *invoice.TargetSettings) { s.Can.Locatable = false }, "locatable"},
		"a kind that there is not":          {func(s *invoice.TargetSettings) { s.Kind = "fax" }, `kind "fax"`},
		"no address":                        {func(s *invoice.TargetSettings) { s.BaseURL = "gateway" }, "url"},
		"a bad id":                          {func(s *invoice.TargetSettings) { s.ID = "Gateway!" }, "id"},
		"a tenant that there is not":        {func(s *invoice.TargetSettings) { s.Tenant = "nobody" }, `tenant "nobody"`},
		"half a second":                     {func(s *invoice.TargetSettings) { s.Can.SettleTime += time.Millisecond }, "whole seconds"},
	} {
		t.Run(name, func(t *testing.T) {
			s := good
			tc.change(&s)
			err := admin.Set(context.Background(), s, false, audit.By{Actor: "a"})
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want one that says %s", err, tc.says)
			}
		})
	}
	if n := b.count("targets WHERE id <> $1", einvoice.Kind); n != 0 {
		t.Errorf("%d targets are there", n)
	}
}

func TestACredentialIsNeverTakenInTheClearAndNeverRepeated(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, keyed)
	err := invoice.NewTargetAdmin(b.pool, b.opts.Kinds).Set(context.Background(), invoice.TargetSettings{
		Tenant: regTenant, ID: "gw", Kind: einvoice.Kind, BaseURL: "https://gateway.example", CredentialRef: "s3cret-token", Can: keyed,
	}, false, audit.By{Actor: "a"})
	if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "env:NAME") {
		t.Errorf("got %v", err)
	}
}

func TestATargetWithDoubtsKeepsItsAddressUnlessItHasMoved(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, locatable)
	b.issue()
	b.script(targetsim.ResetAfter)
	b.try()
	admin, by := invoice.NewTargetAdmin(b.pool, b.opts.Kinds), audit.By{Actor: "ann", Reason: "new machine"}
	changed := invoice.TargetSettings{
		Tenant: regTenant, ID: einvoice.Kind, Kind: einvoice.Kind, BaseURL: "https://other.example", CredentialRef: "env:TARGET_TOKEN", Can: locatable,
	}
	if err := admin.Set(context.Background(), changed, false, by); err == nil || !strings.Contains(err.Error(), "--moved") {
		t.Errorf("got %v", err)
	}
	if err := admin.Set(context.Background(), changed, true, by); err != nil {
		t.Error(err)
	}
	kind := changed
	kind.Kind = ledger.Kind
	if err := admin.Set(context.Background(), kind, true, by); err == nil || !strings.Contains(err.Error(), "stays so") {
		t.Errorf("another kind under the same id: %v", err)
	}
	if n := b.count("audit_entries WHERE actor = 'ann' AND action = 'target.set' AND reason = 'new machine' AND subject LIKE '%https://other.example%'"); n != 1 {
		t.Errorf("%d audit entries, want 1", n)
	}
}

func TestADisabledTargetGetsNothingNewAndIsEnabledBySettingIt(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, keyed)
	admin, by := invoice.NewTargetAdmin(b.pool, b.opts.Kinds), audit.By{Actor: "a"}
	if err := admin.Disable(context.Background(), regTenant, einvoice.Kind, by); err != nil {
		t.Fatal(err)
	}
	if err := admin.Disable(context.Background(), regTenant, einvoice.Kind, by); !problem.Is(err, problem.NotFound) {
		t.Errorf("disabled twice: %v", err)
	}
	list, err := admin.List(context.Background(), regTenant)
	if err != nil || len(list) != 1 || !list[0].Disabled || list[0].Can != keyed {
		t.Errorf("listed are %+v, %v", list, err)
	}
	b.issueAs("op-1", "SO-1")
	b.target(einvoice.Kind, einvoice.Kind, keyed)
	b.issueAs("op-2", "SO-2")
	if n := b.count("registrations"); n != 1 {
		t.Errorf("%d registrations, want that of the second invoice", n)
	}
}

func TestTheServiceDoesNotStartWithATargetThatItCantServe(t *testing.T) {
	b := setupRegister(t, einvoice.Kind, keyed)
	if err := invoice.CheckTargets(context.Background(), b.pool, kinds(patience)); err != nil {
		t.Errorf("a good target: %v", err)
	}
	err := invoice.CheckTargets(context.Background(), b.pool, kinds(settle))
	if err == nil || !strings.Contains(err.Error(), "target einvoice of tenant acme") || !strings.Contains(err.Error(), "--absent-after") {
		t.Errorf("got %v", err)
	}
	b.exec("UPDATE targets SET disabled_at = now()")
	if err := invoice.CheckTargets(context.Background(), b.pool, kinds(settle)); err != nil {
		t.Errorf("a disabled target without anything open: %v", err)
	}
	b.exec("UPDATE targets SET disabled_at = NULL")
	b.issueAs("op-1", "SO-1")
	b.exec("UPDATE targets SET disabled_at = now()")
	if err := invoice.CheckTargets(context.Background(), b.pool, kinds(settle)); err == nil {
		t.Error("a disabled target with something open is not looked at")
	}
}

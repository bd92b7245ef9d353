package processtest

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"invoicebridge/internal/testdb"
)

func TestARepeatAfterTheRetentionHasEndedGetsTheOneInvoice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	erp := w.serveERP()
	first := w.invoice(erp.URL(), "K1", "SO-1001")
	if first.status != http.StatusCreated {
		t.Fatalf("the ERP answers %d %s", first.status, first.body)
	}
	sqlExec(t, w.erp, `UPDATE idempotency_records SET first_seen_at = first_seen_at - interval '400 days',
		completed_at = completed_at - interval '400 days', expires_at = expires_at - interval '400 days'`)
	command(t, "erp-api", []string{"ERP_DATABASE_URL=" + w.erpDSN}, "purge", "--reason", "test")
	if n := number(t, w.erp, `SELECT count(*) FROM idempotency_records`); n != 0 {
		t.Fatalf("%d reservations are left", n)
	}

	again := w.invoice(erp.URL(), "K1", "SO-1001")
	if again.status != http.StatusCreated || again.header.Get("Idempotent-Replayed") != "true" || again.body != first.body {
		t.Errorf("the same again is answered %d, replayed %q: %s", again.status, again.header.Get("Idempotent-Replayed"), again.body)
	}
	changed := w.send(erp.URL(), "/v1/invoices", w.erpToken, "K1", strings.Replace(invoiceBody("SO-1001"), "10.00", "11.00", 1))
	if changed.status != http.StatusUnprocessableEntity {
		t.Errorf("the key with another price is answered %d %s", changed.status, changed.body)
	}
	wantText(t, changed.body, "idempotency-key-reused")
	wantText(t, changed.body, "/lines/0/unit_price")
	other := w.invoice(erp.URL(), "K2", "SO-1001")
	if other.status != http.StatusConflict {
		t.Errorf("the order under another key is answered %d %s", other.status, other.body)
	}
	wantText(t, other.body, `"same_content":true`)
	w.wantInvoices(1)
}

func TestWhatIsDoneByHandObeysTheSameUniqueness(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ledger := w.serveTargets()
	w.target(ledger)
	erp := w.serveERP("TARGET_TOKEN=" + targetToken)
	worker := w.serveCRM(erp.URL())
	w.submit(worker.URL(), "SO-1001")
	testdb.Await(t, "the order is invoiced", w.settled)
	testdb.Await(t, "the invoice is registered", w.registered)
	var key, registration string
	if err := w.crm.QueryRow(t.Context(), `SELECT key FROM operations`).Scan(&key); err != nil {
		t.Fatal(err)
	}
	if err := w.erp.QueryRow(t.Context(), `SELECT id::text FROM registrations`).Scan(&registration); err != nil {
		t.Fatal(err)
	}

	// With curl, in the operation's name and beside it.
	for other, want := range map[string]string{key: "201", "by-hand": "409"} {
		got := curl(t, "-H", "Authorization: Bearer "+w.erpToken, "-H", "Content-Type: application/json",
			"-H", "Idempotency-Key: "+other, "--data-binary", invoiceBody("SO-1001"), erp.URL()+"/v1/invoices")
		if got != want {
			t.Errorf("an invoice by hand under %s is answered %s, want %s", other, got, want)
		}
	}
	admin := command(t, "erp-api", []string{"ERP_DATABASE_URL=" + w.erpDSN},
		"token", "create", "--tenant", "acme", "--role", "admin", "--label", "operator")
	got := curl(t, "-H", "Authorization: Bearer "+admin, "-H", "Content-Type: application/json",
		"--data-binary", `{"reason":"try again"}`, erp.URL()+"/admin/v1/registrations/"+registration+"/replay")
	if got != "409" {
		t.Errorf("replaying what is registered is answered %s, want 409", got)
	}

	// With the commands: the file again, the operation again, the books compared.
	crm := []string{"CRM_DATABASE_URL=" + w.crmDSN, "ERP_URL=" + erp.URL(), "ERP_TOKENS=acme=" + w.erpToken}
	file := filepath.Join(t.TempDir(), "orders.jsonl")
	if err := os.WriteFile(file, []byte(invoiceBody("SO-1001")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, "crm-worker", crm, "import", "--tenant", "acme", file)
	said := fails(t, "crm-worker", crm, "operations", "replay", "--tenant", "acme", "--reason", "try again", key)
	wantText(t, said, "succeeded")
	command(t, "crm-worker", crm, "reconcile", "--tenant", "acme")
	command(t, "erp-api", []string{"ERP_DATABASE_URL=" + w.erpDSN, "TARGET_TOKEN=" + targetToken}, "reconcile", "--tenant", "acme")

	testdb.Await(t, "nothing is left to do", w.settled)
	w.wantInvoices(1)
	w.wantDelivered(1)
	if sum := ledger.effects(); sum.Effects != 1 {
		t.Errorf("the ledger has %+v, want one entry", sum)
	}
	if n := number(t, w.crm, `SELECT count(*) FROM operations`); n != 1 {
		t.Errorf("%d operations for one order", n)
	}
}

// curl makes one POST and gives the answer's status.
func curl(t testing.TB, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, err := exec.CommandContext(ctx, "curl", append([]string{"-sS", "-o", os.DevNull, "-w", "%{http_code}"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("curl: %v\n%s", err, out)
	}
	return string(out)
}

// fails runs a command that must refuse, and gives what it says.
func fails(t testing.TB, name string, env []string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary(t, name), args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		t.Fatalf("%s %s is carried out: %s", name, strings.Join(args, " "), out)
	}
	return string(out)
}

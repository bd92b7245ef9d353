package main

import (
	"context"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/testdb"
)

// registered is a database with a registration at the target gw, put into a state by set, and how commands name the database.
func registered(t *testing.T, set string) (pool *pgxpool.Pool, id, db string) {
	t.Helper()
	pool = testdb.ERP(t)
	db = "--database-url=" + testdb.DSN(t, pool)
	mustRun(t, "tenant", "create", db, "acme", "--name=Acme")
	mustRun(t, "target", "set", db, "--tenant=acme", "--id=gw", "--kind=einvoice", "--url=https://gateway.example/api",
		"--credential=env:GATEWAY_TOKEN", "--locatable", "--absent-after=10m", "--reason=as agreed")
	request, err := erpapi.DecodeInvoiceRequest([]byte(`{"source":"crm-1","order":"SO-1","role":"final","currency":"EUR","issue_date":"2026-03-02",
		"customer":{"name":"A","country":"DE"},"lines":[{"sku":"P-1","quantity":"2","unit_price":"10","vat_rate":"19","vat_category":"S"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	key, err := idempotency.ParseKey([]string{"op-1"})
	if err != nil {
		t.Fatal(err)
	}
	result := invoice.NewService(pool, invoice.Options{}).Issue(t.Context(), []invoice.Command{{Tenant: "acme", Caller: "test", Key: key, Request: request}})[0]
	if result.Err != nil {
		t.Fatal(result.Err)
	}
	id = uuid.Must(uuid.NewV7()).String()
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := pool.Exec(context.Background(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("DELETE FROM registrations")
	exec(`INSERT INTO registrations (id, tenant_id, invoice_id, target_id, key, status, attempt, tried_since, first_sent_at, last_sent_at, next_attempt_at, flagged_at)
		VALUES ($1, 'acme', $2, 'gw', 'op-1', 'unknown', 1, now(), now(), now(), now() + interval '1 hour', now())`, id, result.Answer.InvoiceID)
	if set != "" {
		exec("UPDATE registrations SET " + set)
	}
	return pool, id, db
}

func count(t *testing.T, pool *pgxpool.Pool, from string) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM "+from).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func wantRefusal(t *testing.T, want string, args ...string) {
	t.Helper()
	if out, err := erpAPI(t, args...); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: %v, want %q\n%s", strings.Join(args, " "), err, want, out.stdout)
	}
}

func TestARegistrationIsReplayedAndResolvedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	pool, id, db := registered(t, "")
	act := func(verb string, more ...string) []string {
		return append([]string{"registrations", verb, id, db, "--tenant=acme", "--reason=asked them"}, more...)
	}
	for _, args := range [][]string{{"--flagged"}, {"--status=unknown", "--target=gw"}} {
		if out := mustRun(t, append([]string{"registrations", "list", db, "--tenant=acme"}, args...)...); !strings.Contains(out, id) {
			t.Errorf("%v: the list is\n%s", args, out)
		}
	}
	if out := mustRun(t, "registrations", "list", db, "--tenant=acme", "--status=failed"); strings.Contains(out, id) {
		t.Errorf("the list of failed ones is\n%s", out)
	}
	mustRun(t, act("replay")...)
	if n := count(t, pool, "river_job WHERE kind = 'register_invoice' AND args ->> 'registration_id' = '"+id+"'"); n != 1 {
		t.Errorf("%d jobs, want 1", n)
	}
	wantRefusal(t, "already queued", act("replay")...)
	wantRefusal(t, "/reference: ", act("resolve", "--status=succeeded", "--evidence=their portal")...)
	if out := mustRun(t, act("resolve", "--status=succeeded", "--reference=REF-1", "--evidence=their portal")...); !strings.Contains(out, `"reference": "REF-1"`) {
		t.Errorf("resolve says\n%s", out)
	}
	wantRefusal(t, "succeeded", act("resolve", "--status=failed", "--evidence=their portal")...)
	if out := mustRun(t, "registrations", "show", id, db, "--tenant=acme"); !strings.Contains(out, `"status": "succeeded"`) {
		t.Errorf("shown is\n%s", out)
	}
	if n := count(t, pool, "audit_entries WHERE actor = 'kim' AND via = 'cli' AND subject = '"+id+"'"); n != 2 {
		t.Errorf("%d audit entries, want 2", n)
	}
}

func TestAFailedRegistrationIsAcknowledgedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	pool, id, db := registered(t, "status = 'failed', reason = 'rejected', finished_at = now(), next_attempt_at = NULL")
	acknowledge := []string{"registrations", "acknowledge", id, db, "--tenant=acme", "--reason=credited"}
	if out := mustRun(t, acknowledge...); !strings.Contains(out, `"flagged": false`) {
		t.Errorf("acknowledge says\n%s", out)
	}
	if n := count(t, pool, "audit_entries WHERE action = 'registration.acknowledge' AND reason = 'credited'"); n != 1 {
		t.Errorf("%d audit entries, want 1", n)
	}
}

func TestATargetIsPausedAndResumedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	pool, id, db := registered(t, "next_attempt_at = now(), flagged_at = NULL")
	act := func(verb string) []string {
		return []string{"target", verb, "gw", db, "--tenant=acme", "--reason=they move"}
	}
	mustRun(t, act("pause")...)
	wantRefusal(t, "paused already, by kim", act("pause")...)
	wantRefusal(t, "paused, by kim", "registrations", "replay", id, db, "--tenant=acme", "--reason=now")
	if out := mustRun(t, act("resume")...); !strings.Contains(out, "1 registrations queued") {
		t.Errorf("resume says %s", out)
	}
	wantRefusal(t, "not paused", act("resume")...)
	if n := count(t, pool, "audit_entries WHERE action IN ('target.pause', 'target.resume') AND reason = 'they move'"); n != 2 {
		t.Errorf("%d audit entries, want 2", n)
	}
}

func TestADivergenceOfARegistrationIsAcceptedAndClosedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	pool, id, db := registered(t, "")
	_, err := pool.Exec(context.Background(), `INSERT INTO divergences (tenant_id, kind, owner, subject, ours, theirs, action, first_seen_at, last_seen_at)
		VALUES ('acme', 'registered_twice', 'target', $1, '', '', '', now(), now())`, id)
	if err != nil {
		t.Fatal(err)
	}
	divergence := strings.Fields(strings.Split(mustRun(t, "divergences", "list", db, "--tenant=acme"), "\n")[1])[0]
	act := func(verb string) []string {
		return []string{"divergences", verb, divergence, db, "--tenant=acme", "--reason=they know"}
	}
	if out := mustRun(t, act("accept")...); !strings.Contains(out, "is accepted") {
		t.Errorf("accept says %s", out)
	}
	wantRefusal(t, "accepted already", act("accept")...)
	if out := mustRun(t, act("close")...); !strings.Contains(out, "is resolved") {
		t.Errorf("close says %s", out)
	}
	if n := count(t, pool, "audit_entries WHERE reason = 'they know' AND subject = '"+divergence+"'"); n != 2 {
		t.Errorf("%d audit entries, want 2", n)
	}
}

package crm

import (
	"context"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/retention"
)

func (s *submitSetup) purge(keep Keep) map[string]int64 {
	s.t.Helper()
	purger := retention.NewPurger(RetentionSteps(s.pool, keep), retention.Options{
		Pace: retention.Pace{Batch: 2}, Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	results, err := purger.Purge(s.t.Context(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	changed := map[string]int64{}
	for _, r := range results {
		if r.Rows > 0 {
			changed[r.Table] = r.Rows
		}
	}
	return changed
}

// age lets days pass for everything.
func (s *submitSetup) age(days int) {
	s.t.Helper()
	for _, sql := range []string{
		"operations SET finished_at = finished_at - d, first_sent_at = first_sent_at - d, created_at = created_at - d",
		"orders SET updated_at = updated_at - d, created_at = created_at - d",
		"attempts SET started_at = started_at - d, finished_at = finished_at - d",
		"inbox_messages SET received_at = received_at - d",
	} {
		s.exec("UPDATE "+sql+" FROM (SELECT $1 * interval '1 day' AS d) AS age", days)
	}
}

// aPersonalOrder says something of a person wherever an order can.
func aPersonalOrder(id, price string) Order {
	o := anOrder(id, price)
	o.Customer = erpapi.Customer{Name: "Erika Beispiel", Country: "DE", VATID: "XX000000001", Email: "erika@example.org", Address: "Weg 1, Ort"}
	o.Lines[0].Description, o.Lines[0].SKU = "for Erika", "ERIKA-1"
	o.Note, o.Metadata = "call Erika", map[string]string{"phone": "Erika's"}
	o.OrderTotal = dec("23.80")
	return o
}

// delivered takes an order in and ends its operation as delivered by one attempt.
func (s *submitSetup) delivered(o Order) (key string) {
	s.t.Helper()
	key = s.submit(o)[0].Operations[0].Key
	send(s.t, s.pool, key)
	s.exec("INSERT INTO attempts (operation_id, number, worker, outcome, finished_at) SELECT id, attempt, 'w', 'delivered', now() FROM operations WHERE key = $1", key)
	s.succeed(key)
	return key
}

func (s *submitSetup) text(sql string, args ...any) (text string) {
	s.t.Helper()
	if err := s.pool.QueryRow(context.Background(), sql, args...).Scan(&text); err != nil {
		s.t.Fatal(err)
	}
	return text
}

func TestMinimisingKeepsClaimAndAmountsAndNothingOfAPerson(t *testing.T) {
	s := setupSubmit(t)
	key := s.delivered(aPersonalOrder("SO-1", "10.00").as("m-1"))
	hashes := s.text("SELECT encode(p.request_hash, 'hex') || encode(o.content_hash, 'hex') FROM operations AS p JOIN orders AS o USING (order_id)")
	s.exec("UPDATE operations SET detail = 'Erika is no VAT id'")
	s.age(366)
	want := map[string]int64{"operations": 1, "orders": 1, "attempts": 1, "inbox_messages": 1}
	if diff := cmp.Diff(want, s.purge(Keep{})); diff != "" {
		t.Fatal(diff)
	}
	const line = `{"quantity":"2","unit_price":"10","vat_category":"S","vat_rate":"19"}`
	for what, want := range map[string]string{
		"request FROM operations": `{"currency":"EUR","issue_date":"2026-03-02","lines":[` + line + `],"order":"SO-1","order_total":"23.8",` +
			`"role":"final","source":"crm-1"}`,
		"content FROM orders": `{"currency":"EUR","invoices":[{"issue_date":"2026-03-02","lines":[` + line + `],"role":"final"}],` +
			`"order":"SO-1","order_total":"23.8","source":"crm-1"}`,
	} {
		got := jsontext.Value(s.text("SELECT convert_from(" + what[:7] + ", 'UTF8')" + what[7:]))
		if err := got.Canonicalize(); err != nil || string(got) != want {
			t.Errorf("%s is\n%s, want\n%s (%v)", what, got, want, err)
		}
	}
	if now := s.text("SELECT encode(p.request_hash, 'hex') || encode(o.content_hash, 'hex') FROM operations AS p JOIN orders AS o USING (order_id)"); now != hashes {
		t.Error("the hashes changed")
	}
	op, err := s.GetOperation(t.Context(), testTenant, key)
	if err != nil || op.Status != StatusSucceeded || op.Invoice == nil || op.Detail != "" {
		t.Errorf("the operation is %+v, %v", op, err)
	}
	order, err := s.GetOrder(t.Context(), testTenant, "crm-1", "SO-1")
	if err != nil || order.MinimisedAt == nil {
		t.Errorf("the order is %+v, %v", order, err)
	}
	var content Order
	if err := json.Unmarshal(order.Content, &content); err != nil || len(content.Invoices) != 1 {
		t.Errorf("its content is no order any more: %v", err)
	}
	if again := s.purge(Keep{}); len(again) > 0 {
		t.Errorf("the next run does %v again", again)
	}
}

func TestWhatIsOpenIsNeverPurgedHoweverOld(t *testing.T) {
	s := setupSubmit(t)
	open := map[string]string{
		"SO-pending":    "next_attempt_at = now() - interval '2 years'",
		"SO-processing": "status = 'processing', next_attempt_at = NULL, lease_until = now() - interval '2 years', attempt = 1, first_sent_at = now()",
		"SO-unknown":    "status = 'unknown', attempt = 1, first_sent_at = now()",
		"SO-flagged":    "status = 'unknown', flagged_at = now() - interval '2 years', attempt = 1, first_sent_at = now()",
	}
	for order, set := range open {
		s.submit(aPersonalOrder(order, "10.00").as("m-" + order))
		s.exec("UPDATE operations SET "+set+" WHERE order_id = $1", order)
	}
	s.exec("INSERT INTO attempts (operation_id, number, worker, outcome, finished_at) SELECT id, attempt, 'w', 'lost', now() FROM operations WHERE attempt > 0")
	s.age(730)
	if got := s.purge(Keep{}); len(got) > 0 {
		t.Fatalf("purged %v", got)
	}
	for key := range open {
		s.exec(`UPDATE operations SET status = 'succeeded', finished_at = now() - interval '366 days', lease_until = NULL, next_attempt_at = NULL,
			flagged_at = NULL, attempt = 1, first_sent_at = now(), invoice_id = gen_random_uuid(), invoice_number = 'N' WHERE order_id = $1`, key)
	}
	want := map[string]int64{"operations": 4, "orders": 4, "attempts": 3, "inbox_messages": 4}
	if diff := cmp.Diff(want, s.purge(Keep{})); diff != "" {
		t.Errorf("once they had ended: %s", diff)
	}
}

func TestAnOrderIsKeptAsLongAsItsYoungestOperation(t *testing.T) {
	s := setupSubmit(t)
	key := s.delivered(aPersonalOrder("SO-1", "10.00"))
	s.age(366)
	s.exec("UPDATE operations SET finished_at = now() - interval '10 days' WHERE key = $1", key)
	if got := s.purge(Keep{}); got["orders"] != 0 || got["operations"] != 0 || got["attempts"] != 0 {
		t.Errorf("purged %v", got)
	}
}

func TestAnOrderThatComesAgainAfterMinimisingIsJudgedByItsHash(t *testing.T) {
	s := setupSubmit(t)
	key := s.delivered(aPersonalOrder("SO-1", "10.00").as("m-1"))
	s.age(366)
	s.purge(Keep{})
	s.takes(aPersonalOrder("SO-1", "10.00").as("m-1"), OutcomeAlreadyThere)
	s.counts(1, 1, 1)
	sub := s.takes(aPersonalOrder("SO-1", "12.00").as("m-2"), OutcomeChangedAfterDelivery)
	s.counts(1, 1, 1)
	if sub.Operations[0].Key != key || s.count("operations WHERE changed_after_delivery_version = 2 AND status = 'succeeded'") != 1 {
		t.Errorf("got %+v", sub)
	}
	if s.count("orders WHERE minimised_at IS NULL AND convert_from(content, 'UTF8') LIKE '%Erika%'") != 1 {
		t.Error("the new version's content is not there whole")
	}
	if got := s.purge(Keep{}); got["orders"] != 0 {
		t.Error("the order that was just changed is minimised")
	}
	s.age(366)
	if got := s.purge(Keep{}); got["orders"] != 1 {
		t.Errorf("a year later: %v", got)
	}
}

func TestTheDatabaseLetsARequestBeMinimisedAndNothingElse(t *testing.T) {
	s := setupSubmit(t)
	key := s.delivered(aPersonalOrder("SO-1", "10.00"))
	s.submit(aPersonalOrder("SO-2", "10.00"))
	for what, sql := range map[string]string{
		"changed":                       "UPDATE operations SET request = '{}' WHERE key = $1",
		"changed and marked":            "UPDATE operations SET request = '{}', minimised_at = now() WHERE key = $1",
		"minimised without a mark":      "UPDATE operations SET request = without_personal_data(request) WHERE key = $1",
		"marked and not minimised":      "UPDATE operations SET minimised_at = now() WHERE key = $1",
		"minimised with another hash":   "UPDATE operations SET request = without_personal_data(request), minimised_at = now(), request_hash = sha256(without_personal_data(request)) WHERE key = $1",
		"minimised before its end":      "UPDATE operations SET request = without_personal_data(request), minimised_at = now() WHERE order_id = 'SO-2' AND $1 <> ''",
		"minimised and open once again": "UPDATE operations SET request = without_personal_data(request), minimised_at = now(), status = 'pending', finished_at = NULL, invoice_id = NULL, invoice_number = NULL, next_attempt_at = now() WHERE key = $1",
	} {
		if _, err := s.pool.Exec(t.Context(), sql, key); err == nil {
			t.Errorf("a request can be %s", what)
			break
		}
	}
	s.exec("UPDATE operations SET request = without_personal_data(request), minimised_at = now() WHERE key = $1", key)
	for what, sql := range map[string]string{
		"whole again":     "UPDATE operations SET minimised_at = NULL WHERE key = $1",
		"minimised twice": "UPDATE operations SET minimised_at = now() + interval '1 day' WHERE key = $1",
		"changed":         "UPDATE operations SET request = '{}' WHERE key = $1",
	} {
		if _, err := s.pool.Exec(t.Context(), sql, key); err == nil {
			t.Errorf("a minimised request can be %s", what)
		}
	}
}

func TestOfBytesThatNobodyCanReadNothingIsKept(t *testing.T) {
	s := setupSubmit(t)
	for what, document := range map[string][]byte{
		"no JSON": []byte("Erika"), "no UTF-8": {0xff, 0xfe}, "NUL": []byte(`{"order":"\u0000"}`), "no object": []byte(`["Erika"]`),
		"lines of another kind": []byte(`{"lines":{"a":1},"order":"Erika"}`), "a line of another kind": []byte(`{"lines":["Erika"]}`),
	} {
		var got []byte
		if err := s.pool.QueryRow(t.Context(), "SELECT without_personal_data($1)", document).Scan(&got); err != nil || string(got) != "{}" {
			t.Errorf("%s: %s, %v", what, got, err)
		}
	}
}

func TestOneBadOrderKeepsNoOtherFromBeingMinimised(t *testing.T) {
	s := setupSubmit(t)
	for _, id := range []string{"SO-1", "SO-bad", "SO-3", "SO-4"} {
		s.delivered(aPersonalOrder(id, "10.00"))
	}
	s.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
	        BEGIN IF OLD.order_id = 'SO-bad' AND NEW.minimised_at IS NOT NULL THEN RAISE EXCEPTION 'this row is bad'; END IF; RETURN NEW; END $$`)
	s.exec("CREATE TRIGGER refuse BEFORE UPDATE ON operations FOR EACH ROW EXECUTE FUNCTION refuse()")
	s.exec("CREATE TRIGGER refuse BEFORE UPDATE ON orders FOR EACH ROW EXECUTE FUNCTION refuse()")
	s.age(366)
	if got := s.purge(Keep{}); got["operations"] != 3 || got["orders"] != 3 {
		t.Errorf("minimised %v", got)
	}
}

func TestNoRowOfTheCRMSideHasAnAgeThatNobodyCanTell(t *testing.T) {
	s := setupSubmit(t)
	s.delivered(anOrder("SO-1", "10.00").as("m-1"))
	c := NewConsole(s.pool, ConsoleOptions{})
	c.RecordRefusal(t.Context(), aRefusal("SO-2"))
	if _, err := c.BeginImport(t.Context(), testTenant, Import{File: "a.csv", Format: "csv", Actor: "ann"}); err != nil {
		t.Fatal(err)
	}
	s.exec("UPDATE imports SET finished_at = now(), stored = true")
	s.exec(`INSERT INTO replay_runs (id, tenant_id, status, reason, source, min_age_seconds, matched, total, started_by, started_because, started_via,
		started_address, started_request, finished_at) VALUES (gen_random_uuid(), 'acme', '', '', '', 0, 0, 0, 'ann', 'r', 'cli', '', '', now())`)
	s.exec(`INSERT INTO resolutions (id, tenant_id, operation_id, attempt, verdict, evidence, reason, proposed_by, status, decided_at, decided_by, decision_reason)
		SELECT gen_random_uuid(), 'acme', id, 1, 'not_applied', 'e', 'r', 'ann', 'withdrawn', now(), 'ann', 'r' FROM operations`)
	s.exec("INSERT INTO accounts (id, tenant_id, name, display_name, role) VALUES (gen_random_uuid(), 'acme', 'ann', 'Ann', 'viewer')")
	s.exec("INSERT INTO sessions (id_hash, account_id, expires_at) SELECT sha256('s'), id, now() + interval '1 hour' FROM accounts")
	s.exec("INSERT INTO login_failures (subject, failures) VALUES ('name x', 1)")
	for _, at := range []string{"infinity", "-infinity", "10000-01-01", "0001-01-01 BC"} {
		for _, column := range []string{
			"operations SET finished_at", "operations SET created_at", "operations SET first_sent_at", "operations SET flagged_at",
			"operations SET superseded_at", "orders SET updated_at", "orders SET created_at",
			"attempts SET started_at", "attempts SET finished_at", "inbox_messages SET received_at",
			"intake_refusals SET received_at", "imports SET started_at", "imports SET finished_at", "replay_runs SET finished_at",
			"resolutions SET decided_at", "sessions SET expires_at", "login_failures SET last_failed_at",
		} {
			if _, err := s.pool.Exec(t.Context(), "UPDATE "+column+" = '"+at+"'"); err == nil {
				t.Errorf("accepted: %s = %s", column, at)
			}
		}
	}
}

func TestRefusedMessagesGoAsWell(t *testing.T) {
	s := setupSubmit(t)
	bad := anOrder("SO-1", "10.00")
	bad.Source = ""
	if _, err := s.Submit(t.Context(), testTenant, ChannelAPI, []Order{bad}, SubmitOptions{KeepGood: true}); err != nil {
		t.Fatal(err)
	}
	s.age(91)
	if got := s.purge(Keep{}); got["inbox_messages"] != 1 {
		t.Errorf("purged %v", got)
	}
}

package crm

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"invoicebridge/internal/problem"
)

func TestSoManyRefusalsOfAnHourAreKeptAndAllAreCounted(t *testing.T) {
	s, c := setupConsole(t)
	s.exec("INSERT INTO tenants (id, name) VALUES ('other', 'Other')")
	const all = RefusalsPerHour + 7
	var group errgroup.Group
	group.SetLimit(4)
	for range all {
		group.Go(func() error {
			c.RecordRefusal(t.Context(), aRefusal("SO-1"))
			return nil
		})
	}
	_ = group.Wait()
	// Should an hour have ended meanwhile, it is two that hold.
	if got := s.text("SELECT sum(refused)::text FROM intake_refusal_hours"); got != "207" {
		t.Errorf("%s of %d are counted", got, all)
	}
	if kept := s.count("intake_refusals"); kept != s.count("intake_refusal_hours CROSS JOIN LATERAL generate_series(1, least(refused, 200))") {
		t.Errorf("%d are kept", kept)
	}
	full, err := c.ListFullHours(t.Context(), testTenant)
	if err != nil || len(full) != s.count("intake_refusal_hours WHERE refused > 200") || len(full) == 1 && full[0].Refused != all {
		t.Errorf("full hours: %v, %v", full, err)
	}
	d, err := c.Dashboard(t.Context(), testTenant)
	if err != nil || d.RefusedIntake != all {
		t.Errorf("the dashboard tells %d, %v", d.RefusedIntake, err)
	}
	theirs := aRefusal("SO-2")
	theirs.Tenant = "other"
	c.RecordRefusal(t.Context(), theirs)
	s.exec("UPDATE intake_refusal_hours SET hour = hour - interval '2 hours'")
	c.RecordRefusal(t.Context(), aRefusal("SO-3"))
	if s.count("intake_refusals WHERE order_id = 'SO-2'") != 1 {
		t.Error("one tenant's flood keeps out another's")
	}
	if s.count("intake_refusals WHERE order_id = 'SO-3'") != 1 {
		t.Error("the next hour does not begin anew")
	}
}

func TestWhateverARefusedCallHoldsIsKeptWithinBounds(t *testing.T) {
	_, c := setupConsole(t)
	r := aRefusal("SO-\x00" + strings.Repeat("ü", 500))
	r.Body = bytes.Repeat([]byte("a\xff\x00ü"), 4_000)
	for range 30 {
		r.Problem.Errors = append(r.Problem.Errors, problem.FieldError{Pointer: "/\xff", Detail: "\x00"})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // its caller has gone away
	c.RecordRefusal(ctx, r)
	found, err := c.ListRefusals(t.Context(), testTenant, RefusalFilter{})
	if err != nil || len(found.Items) != 1 {
		t.Fatalf("%+v, %v", found, err)
	}
	if found.Items[0].Body != "" {
		t.Error("the list has bodies")
	}
	got, err := c.GetRefusal(t.Context(), testTenant, found.Items[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	if got.BodySize != int64(len(r.Body)) || !strings.HasPrefix(got.Body, "a\ufffd\x00ü") || !utf8.ValidString(got.Body) {
		t.Errorf("%d bytes, begin with %q", got.BodySize, got.Body[:min(len(got.Body), 10)])
	}
	if n := utf8.RuneCountInString(got.Order); n != maxOrderLength || !strings.HasPrefix(got.Order, "SO-\ufffdü") {
		t.Errorf("the order has %d characters: %q", n, got.Order)
	}
	if len(got.Errors) != maxRefusalErrors || got.Errors[19] != (problem.FieldError{Pointer: "/\ufffd", Detail: "\ufffd"}) {
		t.Errorf("errors: %v", got.Errors)
	}
}

func TestARefusalThatCannotBeWrittenDownIsLoggedAndNothingElse(t *testing.T) {
	s := setupSubmit(t)
	var log bytes.Buffer
	c := NewConsole(s.pool, ConsoleOptions{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	s.exec("ALTER TABLE intake_refusals ADD CONSTRAINT broken CHECK (order_id <> 'SO-1')")
	r := aRefusal("SO-1")
	before := r.Problem.Error()
	c.RecordRefusal(t.Context(), r)
	if s.count("intake_refusals")+s.count("intake_refusal_hours") != 0 {
		t.Error("something of it is stored")
	}
	if !strings.Contains(log.String(), "could not be written down") || strings.Contains(log.String(), "Erika") {
		t.Errorf("logged: %s", log.String())
	}
	if r.Problem.Error() != before || len(r.Problem.Errors) != 1 {
		t.Error("what the caller is told has changed")
	}
	c.RecordRefusal(t.Context(), aRefusal("SO-2"))
	if s.count("intake_refusals") != 1 {
		t.Error("the next is not written down, either")
	}
}

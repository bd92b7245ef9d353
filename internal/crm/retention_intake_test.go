package crm

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/problem"
)

// aRefusal is a refused call whose body and reasons say something of a person.
func aRefusal(order string) Refusal {
	p := problem.New(problem.InvalidOrder, "Erika can't be invoiced.")
	p.Errors = []problem.FieldError{{Pointer: "/customer/name", Detail: "is Erika"}}
	return Refusal{
		Tenant: testTenant, Channel: ChannelAPI, Source: "crm-1", Order: order, Problem: p,
		Body: []byte(`{"customer":{"name":"Erika"}}`), By: audit.By{Actor: "token-1", RequestID: "r-1"},
	}
}

func TestWhatWasRefusedGoesWithItsBodyAndTheCountOfItsHour(t *testing.T) {
	s, c := setupConsole(t)
	c.RecordRefusal(t.Context(), aRefusal("SO-1"))
	c.RecordRefusal(t.Context(), aRefusal("SO-2"))
	s.exec("UPDATE intake_refusals SET received_at = received_at - interval '91 days'")
	s.exec("UPDATE intake_refusal_hours SET hour = hour - interval '91 days'")
	c.RecordRefusal(t.Context(), aRefusal("SO-3"))
	s.exec("UPDATE intake_refusals SET received_at = received_at - interval '89 days' WHERE order_id = 'SO-3'")
	if diff := cmp.Diff(map[string]int64{"intake_refusals": 2}, s.purge(Keep{})); diff != "" {
		t.Error(diff)
	}
	if s.count("intake_refusals WHERE order_id = 'SO-3'") != 1 || s.count("intake_refusals") != 1 || s.count("intake_refusal_hours") != 1 {
		t.Error("not just the old ones are gone, with their hours")
	}
	if again := s.purge(Keep{}); len(again) > 0 {
		t.Errorf("the next run does %v again", again)
	}
}

func TestAnImportForgetsWhatItsRowsSaidAndNotThatItWas(t *testing.T) {
	s, c := setupConsole(t)
	begin := func(file string) Import {
		i := Import{File: file, Format: "csv", Actor: "ann"}
		var err error
		if i.ID, err = c.BeginImport(t.Context(), testTenant, i); err != nil {
			t.Fatal(err)
		}
		return i
	}
	i := begin("old.csv")
	i.SHA256, i.Size, i.Rows, i.Orders = hex.EncodeToString(make([]byte, 32)), 123, 2, 1
	i.Counts = []ImportCount{{"refused", 2}}
	i.Refusal, i.Failure = "no column Erika", "the row of Erika broke it"
	i.Refused = []ImportRow{{2, "SO-1", "refused", "Erika is no VAT id"}, {3, "SO-2", "refused", "Erika"}}
	if err := c.FinishImport(t.Context(), testTenant, i); err != nil {
		t.Fatal(err)
	}
	begin("cut off.csv")
	s.exec("UPDATE imports SET started_at = started_at - interval '91 days', finished_at = finished_at - interval '91 days'")
	young := begin("young.csv")
	if diff := cmp.Diff(map[string]int64{"imports": 2}, s.purge(Keep{})); diff != "" {
		t.Error(diff)
	}
	got, err := c.GetImport(t.Context(), testTenant, i.ID)
	if err != nil || got.MinimisedAt == nil || got.FinishedAt == nil {
		t.Fatalf("%+v, %v", got, err)
	}
	got.StartedAt, got.FinishedAt, got.MinimisedAt = i.StartedAt, nil, nil
	i.Refusal, i.Failure, i.Refused = "", "", nil
	if diff := cmp.Diff(i, got); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(s.text("SELECT string_agg(imports::text, '') FROM imports"), "Erika") {
		t.Error("something of a person is left")
	}
	if got, err := c.GetImport(t.Context(), testTenant, young.ID); err != nil || got.MinimisedAt != nil {
		t.Errorf("the young one: %+v, %v", got, err)
	}
	if again := s.purge(Keep{}); len(again) > 0 {
		t.Errorf("the next run does %v again", again)
	}
}

func TestOneBadRefusalKeepsNoOther(t *testing.T) {
	s, c := setupConsole(t)
	for _, order := range []string{"SO-1", "SO-bad", "SO-3", "SO-4"} {
		c.RecordRefusal(t.Context(), aRefusal(order))
	}
	s.exec(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
	        BEGIN IF OLD.order_id = 'SO-bad' THEN RAISE EXCEPTION 'this row is bad'; END IF; RETURN OLD; END $$`)
	s.exec("CREATE TRIGGER refuse BEFORE DELETE ON intake_refusals FOR EACH ROW EXECUTE FUNCTION refuse()")
	s.exec("UPDATE intake_refusals SET received_at = received_at - interval '91 days'")
	if got := s.purge(Keep{}); got["intake_refusals"] != 3 || s.count("intake_refusals") != 1 {
		t.Errorf("purged %v", got)
	}
}

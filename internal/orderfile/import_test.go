package orderfile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/orderfile"
	"invoicebridge/internal/problem"
)

// orderBook answers as crm.Service does, in memory. Orders called "bad" are refused, and "broken" breaks the call.
type orderBook struct {
	known map[string]string
	calls []int
}

func (b *orderBook) Submit(_ context.Context, tenant string, channel crm.Channel, orders []crm.Order, opt crm.SubmitOptions) ([]crm.Submission, error) {
	if tenant != "acme" || channel != crm.ChannelImport {
		return nil, fmt.Errorf("tenant %q, channel %q", tenant, channel)
	}
	b.calls = append(b.calls, len(orders))
	subs := make([]crm.Submission, len(orders))
	refused := false
	for i, o := range orders {
		switch {
		case strings.HasPrefix(o.Order, "broken"):
			return nil, errors.New("connection lost")
		case strings.HasPrefix(o.Order, "busy"):
			return nil, problem.New(problem.Unavailable, "busy")
		case strings.HasPrefix(o.Order, "bad"):
			refused = true
			subs[i] = crm.Submission{Outcome: crm.OutcomeRefused, Errors: []problem.FieldError{
				{Pointer: "/lines/1/vat_category", Detail: "is required"}, {Pointer: "/currency", Detail: "is required"},
			}}
		}
	}
	if refused && !opt.KeepGood {
		return subs, problem.New(problem.InvalidOrder, "refused")
	}
	for i, o := range orders {
		if subs[i].Outcome == crm.OutcomeNone {
			subs[i].Outcome = b.take(o)
		}
	}
	return subs, nil
}

func (b *orderBook) take(o crm.Order) crm.Outcome {
	content := fmt.Sprint(o.Customer.Name, len(o.Lines), o.Lines[0].UnitPrice)
	before, known := b.known[o.Order]
	b.known[o.Order] = content
	switch {
	case !known:
		return crm.OutcomeCreated
	case before == content:
		return crm.OutcomeAlreadyThere
	default:
		return crm.OutcomeChanged
	}
}

func newBook() *orderBook { return &orderBook{known: map[string]string{}} }

func imported(t *testing.T, b *orderBook, text string, change func(*orderfile.ImportOptions)) (*orderfile.Report, error) {
	t.Helper()
	o := orderfile.ImportOptions{Options: shop(',', '.'), Name: "orders.csv", Tenant: "acme"}
	if change != nil {
		change(&o)
	}
	report, err := orderfile.Import(t.Context(), b, strings.NewReader(text), o)
	sum := 0
	for outcome, n := range report.Counts {
		if outcome == "" {
			t.Errorf("%d rows have no outcome", n)
		}
		sum += n
	}
	if sum != report.Rows || len(report.Results) != report.Rows {
		t.Errorf("%d rows, %d counted, %d told", report.Rows, sum, len(report.Results))
	}
	return report, err
}

func keepGood(o *orderfile.ImportOptions) { o.KeepGood = true }

// numbered gives a file of n orders; bad is the number of one whose amount is no number (0: none).
func numbered(n, bad int) string {
	var b strings.Builder
	b.WriteString("order,customer,amount\n")
	for i := 1; i <= n; i++ {
		amount := "10.00"
		if i == bad {
			amount = "ten"
		}
		fmt.Fprintf(&b, "SO-%03d,Test,%s\n", i, amount)
	}
	return b.String()
}

func wantCounts(t *testing.T, r *orderfile.Report, want map[orderfile.Outcome]int) {
	t.Helper()
	if diff := cmp.Diff(want, r.Counts); diff != "" {
		t.Fatalf("rows by outcome (-want +got):\n%s", diff)
	}
}

// N5.
func TestAFileUploadedTwiceOrResavedChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBook()
	text := numbered(100, 0)
	first, err := imported(t, b, text, nil)
	if err != nil || !first.Good() || !first.Stored {
		t.Fatalf("first: %+v, %v", first, err)
	}
	wantCounts(t, first, map[orderfile.Outcome]int{"created": 100})
	for _, again := range []string{text, bom + strings.ReplaceAll(text, "\n", "\r\n")} {
		r, err := imported(t, b, again, func(o *orderfile.ImportOptions) { o.Name = "renamed.csv" })
		if err != nil {
			t.Fatal(err)
		}
		wantCounts(t, r, map[orderfile.Outcome]int{"already_there": 100})
	}
}

// N5.
func TestOneBadRowKeepsTheWholeFileOutAndNothingIsHidden(t *testing.T) {
	t.Parallel()
	b := newBook()
	r, err := imported(t, b, numbered(100, 57), nil)
	if err != nil || r.Good() || r.Stored || len(b.calls) != 0 {
		t.Fatalf("%+v, %v, calls %v", r.Counts, err, b.calls)
	}
	wantCounts(t, r, map[orderfile.Outcome]int{"refused": 1, "not_stored": 99})
	if row := r.Results[56]; row.Line != 58 || row.Order != "SO-057" || !strings.Contains(row.Reason, "unit_price") {
		t.Fatalf("row 57: %+v", row)
	}
	r, err = imported(t, b, numbered(100, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	wantCounts(t, r, map[orderfile.Outcome]int{"created": 100})
}

func TestKeepGoodTakesTheGoodOrdersAndTheCorrectedFileTheRest(t *testing.T) {
	t.Parallel()
	b := newBook()
	r, err := imported(t, b, numbered(1200, 57), keepGood)
	if err != nil || r.Good() || !r.Stored {
		t.Fatalf("%+v, %v", r.Counts, err)
	}
	wantCounts(t, r, map[orderfile.Outcome]int{"refused": 1, "created": 1199})
	if diff := cmp.Diff([]int{500, 500, 199}, b.calls); diff != "" {
		t.Fatalf("transactions (-want +got):\n%s", diff)
	}
	r, err = imported(t, b, numbered(1200, 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	wantCounts(t, r, map[orderfile.Outcome]int{"created": 1, "already_there": 1199})
}

func TestWhatSubmitRefusesIsToldAtTheRowsThatAreToBlame(t *testing.T) {
	t.Parallel()
	text := "order,customer,amount\nbad-1,T,1\nA-1,T,1\nbad-1,T,2\nbad-1,T,3\n"
	for name, c := range map[string]struct {
		change func(*orderfile.ImportOptions)
		good   orderfile.Outcome
	}{"all or nothing": {nil, "not_stored"}, "keep good": {keepGood, "created"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := imported(t, newBook(), text, c.change)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, row := range r.Results {
				got = append(got, fmt.Sprintf("%d %s %s", row.Line, row.Outcome, row.Reason))
			}
			good := "3 created "
			if c.good == "not_stored" {
				good = "3 not_stored other rows of the file were refused"
			}
			if diff := cmp.Diff([]string{
				"2 refused /currency: is required", good, "4 refused /lines/1/vat_category: is required",
				"5 refused line 2 of the same order was refused",
			}, got); diff != "" {
				t.Fatalf("rows (-want +got):\n%s", diff)
			}
		})
	}
}

// N5.
func TestACopyOfANumberedLineIsAlreadyThere(t *testing.T) {
	t.Parallel()
	text := "order,customer,amount,line\nA-1,T,1,1\nA-1,T,1,2\nA-1,T,1,1\n"
	r, err := imported(t, newBook(), text, nil)
	if err != nil {
		t.Fatal(err)
	}
	wantCounts(t, r, map[orderfile.Outcome]int{"created": 2, "already_there": 1})
	if r.Results[2].Outcome != "already_there" || r.Orders != 1 {
		t.Fatalf("%+v", r)
	}
}

func TestAChangedFileIsReportedAsChanged(t *testing.T) {
	t.Parallel()
	b := newBook()
	text := numbered(3, 0)
	if _, err := imported(t, b, text, nil); err != nil {
		t.Fatal(err)
	}
	r, err := imported(t, b, strings.Replace(text, "SO-002,Test,10.00", "SO-002,Test,11.00", 1), nil)
	if err != nil {
		t.Fatal(err)
	}
	wantCounts(t, r, map[orderfile.Outcome]int{"changed": 1, "already_there": 2})
}

func TestADryRunSubmitsNothing(t *testing.T) {
	t.Parallel()
	b := newBook()
	r, err := imported(t, b, numbered(3, 2), func(o *orderfile.ImportOptions) { o.DryRun = true })
	if err != nil || len(b.calls) != 0 || r.Stored || r.Good() {
		t.Fatalf("%+v, %v, calls %v", r, err, b.calls)
	}
	wantCounts(t, r, map[orderfile.Outcome]int{"refused": 1, "checked": 2})
}

func TestARefusedFileTellsAllItsRefusalsAtOnce(t *testing.T) {
	t.Parallel()
	text := "order,customer,amount,role\nA-1,T,ten,final\nA-2,T,1,finale\nA-3,,1,final\nA-4,T,1,final\n"
	for _, dryRun := range []bool{false, true} {
		r, err := imported(t, newBook(), text, func(o *orderfile.ImportOptions) { o.DryRun = dryRun })
		if err != nil {
			t.Fatal(err)
		}
		good := orderfile.Outcome("not_stored")
		if dryRun {
			good = "checked"
		}
		wantCounts(t, r, map[orderfile.Outcome]int{"refused": 3, good: 1})
		wantContains(t, r.Results[1].Reason, "/role", "finale")
		wantContains(t, r.Results[2].Reason, "/customer/name")
	}
}

func TestAFailureWhileStoringIsNoRefusalAndNamesWhatIsStored(t *testing.T) {
	t.Parallel()
	text := strings.Replace(numbered(1100, 0), "\nSO-701,", "\n%s,T,1\nSO-701,", 1)
	for name, c := range map[string]struct {
		order    string
		keepGood bool
		want     map[orderfile.Outcome]int
	}{
		"lost, batches":    {"broken-1", true, map[orderfile.Outcome]int{"created": 500, "unknown": 500, "not_stored": 101}},
		"lost, all":        {"broken-1", false, map[orderfile.Outcome]int{"unknown": 1101}},
		"no luck, batches": {"busy-1", true, map[orderfile.Outcome]int{"created": 500, "not_stored": 601}},
		"no luck, all":     {"busy-1", false, map[orderfile.Outcome]int{"not_stored": 1101}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := imported(t, newBook(), fmt.Sprintf(text, c.order), func(o *orderfile.ImportOptions) { o.KeepGood = c.keepGood })
			if err == nil || r.Good() || r.Stored != c.keepGood {
				t.Fatalf("%+v, %v", r.Counts, err)
			}
			wantCounts(t, r, c.want)
			var b bytes.Buffer
			if err := r.WriteText(&b, 0); err != nil {
				t.Fatal(err)
			}
			if lost := c.want["unknown"] > 0; !c.keepGood && strings.Contains(b.String(), "nothing of the file was stored") == lost {
				t.Errorf("said %s", b.String())
			}
		})
	}
}

func TestProgressGoesFromNothingToAll(t *testing.T) {
	t.Parallel()
	var steps []string
	if _, err := imported(t, newBook(), numbered(1100, 0), func(o *orderfile.ImportOptions) {
		o.KeepGood = true
		o.Progress = func(done, total int) { steps = append(steps, fmt.Sprintf("%d/%d", done, total)) }
	}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"0/1100", "500/1100", "1000/1100", "1100/1100"}, steps); diff != "" {
		t.Fatalf("progress (-want +got):\n%s", diff)
	}
}

// N1, N5: what a person reads. Nothing sounds like success that is none.
func TestTheSummarySaysWhatHappened(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"good":        {numbered(2, 0), "orders.csv: 2 rows, 2 orders, 2 created\n"},
		"header only": {"order,customer,amount\n", "orders.csv: 0 rows: the file has a header and nothing else\n"},
		"bad row": {numbered(3, 2), "orders.csv:3: refused: order SO-002: unit_price: \"ten\" is not a plain decimal number such as 12.50\n" +
			"orders.csv: 3 rows, 2 orders, 2 not stored, 1 refused; nothing of the file was stored\n"},
		"wrong separator": {"order;customer;amount\n", "orders.csv: refused as a whole: line 1: the header is one column \"order;customer;amount\": looks like --delimiter ';'\n"},
	} {
		r, err := imported(t, newBook(), c.text, nil)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := r.WriteText(&b, 10); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, b.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

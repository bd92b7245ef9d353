package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/orderfile"
	"invoicebridge/internal/problem"
)

// written are the imports as the console shows them, the newest first.
func (s crmSide) written() []crm.Import {
	s.t.Helper()
	page, err := s.console.ListImports(context.Background(), testTenant, crm.PageQuery{})
	if err != nil {
		s.t.Fatal(err)
	}
	for n := range page.Items {
		if page.Items[n], err = s.console.GetImport(context.Background(), testTenant, page.Items[n].ID); err != nil {
			s.t.Fatal(err)
		}
	}
	return page.Items
}

// turnedAway are the refusals as the console shows them, the newest first.
func (s crmSide) turnedAway() []crm.IntakeRefusal {
	s.t.Helper()
	page, err := s.console.ListRefusals(context.Background(), testTenant, crm.RefusalFilter{})
	if err != nil {
		s.t.Fatal(err)
	}
	return page.Items
}

func sumOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// N5.
func TestAFileImportedTwiceIsTwoImportsWithTheirOutcomes(t *testing.T) {
	s := setup(t)
	content := hundred("10.00")
	s.imports("a.csv", content)
	s.imports("a.csv", content, "--keep-good", "--actor=ben")
	got := s.written()
	if len(got) != 2 {
		t.Fatalf("%d imports", len(got))
	}
	for n, want := range []crm.Import{
		{KeepGood: true, Actor: "ben", Counts: []crm.ImportCount{{Outcome: "already_there", Rows: 100}}},
		{Actor: "ann", Counts: []crm.ImportCount{{Outcome: "created", Rows: 100}}},
	} {
		i := got[n]
		if i.FinishedAt == nil || i.FinishedAt.Before(i.StartedAt) {
			t.Errorf("from %s to %v", i.StartedAt, i.FinishedAt)
		}
		want.ID, want.StartedAt, want.FinishedAt = i.ID, i.StartedAt, i.FinishedAt
		want.File, want.Format, want.SHA256, want.Size = "a.csv", "csv", sumOf(content), int64(len(content))
		want.Stored, want.Rows, want.Orders = true, 100, 100
		if diff := cmp.Diff(want, i); diff != "" {
			t.Error(diff)
		}
	}
	if n := len(s.turnedAway()); n != 0 {
		t.Errorf("%d refusals of files that were taken", n)
	}
}

func TestARefusedRowIsToldWithItsLineAheadOfThoseItKeptOut(t *testing.T) {
	s := setup(t)
	var b strings.Builder
	b.WriteString(head)
	for i := 1; i <= 300; i++ {
		price := "10.00"
		if i == 290 {
			price = "ten"
		}
		fmt.Fprintf(&b, "crm-1,SO-%03d,EUR,2026-03-02,Test Customer A,DE,P-1,2,%s,19,S\n", i, price)
	}
	s.imports("a.csv", b.String())
	i := s.written()[0]
	if i.Stored || i.FinishedAt == nil || i.NotTaken() != 300 || len(i.Refused) != crm.MaxImportRefusals {
		t.Fatalf("%+v", i)
	}
	first := i.Refused[0]
	if first.Line != 291 || first.Order != "SO-290" || first.Outcome != "refused" || !strings.Contains(first.Reason, "unit_price") {
		t.Errorf("the first is %+v", first)
	}
	if second := i.Refused[1]; second.Line != 2 || second.Outcome != "not_stored" || second.Reason == "" {
		t.Errorf("the second is %+v", second)
	}
	away := s.turnedAway()
	if len(away) != 1 {
		t.Fatalf("%d refusals, want one for the file", len(away))
	}
	r := away[0]
	want := crm.IntakeRefusal{
		ID: r.ID, ReceivedAt: r.ReceivedAt, Channel: crm.ChannelImport, Source: "crm-1", Order: "SO-290", Problem: problem.InvalidOrder,
		Detail: "1 of the 300 rows of the file a.csv were refused.", Errors: []problem.FieldError{{Pointer: "/line/291", Detail: first.Reason}},
		BodySize: int64(b.Len()), Actor: "ann", ImportID: &i.ID,
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Error(diff)
	}
}

func TestAFileRefusedAsAWholeIsWrittenDownWithItsHash(t *testing.T) {
	s := setup(t)
	content := "a;b\n" + strings.Repeat("1;2\n", 50_000) // more than is read at a time
	s.imports("a.csv", content)
	i := s.written()[0]
	if i.Refusal == "" || i.Failure != "" || i.Stored || i.SHA256 != sumOf(content) || i.Size != int64(len(content)) {
		t.Errorf("%+v", i)
	}
	if away := s.turnedAway(); len(away) != 1 || away[0].Problem != problem.MalformedRequest || away[0].ImportID == nil || *away[0].ImportID != i.ID {
		t.Errorf("%+v", away)
	}
}

// duringSubmit does something instead of submitting.
type duringSubmit func() error

func (do duringSubmit) Submit(context.Context, string, crm.Channel, []crm.Order, crm.SubmitOptions) ([]crm.Submission, error) {
	return nil, do()
}

func TestAnImportHasBegunBeforeItsOrdersAreStoredAndThatStaysIfItIsCutOff(t *testing.T) {
	s := setup(t)
	c, err := parsed[ImportCmd](t, "--database-url=postgres://unused", "--tenant", testTenant, "--format=csv", "-")
	if err != nil {
		t.Fatal(err)
	}
	var begun []crm.Import
	target := s.target()
	ctx, cancel := context.WithCancel(t.Context())
	target.orders = duringSubmit(func() error {
		begun = s.written()
		cancel() // as an interrupt does
		return errors.New("the line was cut")
	})
	var out bytes.Buffer
	if err := c.run(ctx, target, strings.NewReader(hundred("10.00")), &out, &out); err == nil {
		t.Error("no error")
	}
	// A process that dies here leaves just this.
	if len(begun) != 1 || begun[0].FinishedAt != nil || begun[0].File != "-" || begun[0].Actor != "ann" || begun[0].Stored {
		t.Fatalf("while its orders were being stored: %+v", begun)
	}
	// One that is stopped, or loses its database for a while, still tells.
	ended := s.written()
	if len(ended) != 1 || ended[0].FinishedAt == nil || !strings.Contains(ended[0].Failure, "the line was cut") || ended[0].Refusal != "" {
		t.Fatalf("after it: %+v", ended)
	}
	if diff := cmp.Diff([]crm.ImportCount{{Outcome: "unknown", Rows: 100}}, ended[0].Counts); diff != "" {
		t.Error(diff)
	}
}

func TestAnImportThatCannotBeWrittenDownGoesOnAllTheSame(t *testing.T) {
	for name, broken := range map[string]string{
		"its beginning":   "imports ADD CONSTRAINT broken CHECK (false)",
		"its end":         "imports ADD CONSTRAINT broken CHECK (finished_at IS NULL)",
		"what it refuses": "intake_refusals ADD CONSTRAINT broken CHECK (false)",
	} {
		t.Run(name, func(t *testing.T) {
			s := setup(t)
			if _, err := s.pool.Exec(t.Context(), "ALTER TABLE "+broken); err != nil {
				t.Fatal(err)
			}
			s.imports("a.csv", hundred("10.00")).wants(t, true, map[orderfile.Outcome]int{"created": 100})
			r := s.imports("a.csv", hundred("ten"), "--keep-good")
			r.wants(t, false, map[orderfile.Outcome]int{"refused": 1, "already_there": 99})
			if !strings.HasSuffix(r.err.Error(), "/a.csv was not taken as it is") {
				t.Errorf("error is %q", r.err)
			}
			s.stored(100)
			whole := 0
			for _, i := range s.written() {
				if i.FinishedAt != nil {
					whole++
				}
			}
			if whole+len(s.turnedAway()) >= 3 {
				t.Error("all is written down: the case is about what can't be")
			}
		})
	}
}

func TestADryRunIsNotWrittenDown(t *testing.T) {
	s := setup(t)
	s.imports("a.csv", hundred("ten"), "--dry-run")
	if n := len(s.written()) + len(s.turnedAway()); n != 0 {
		t.Errorf("%d written down", n)
	}
}

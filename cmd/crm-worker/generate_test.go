package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/orderfile"
)

func generate(t *testing.T, args ...string) *GenerateCmd {
	t.Helper()
	c, err := parsed[GenerateCmd](t, append(args, "--database-url=postgres://unused", "--tenant", testTenant)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestGeneratingTheSameOrdersAgainChangesNothing(t *testing.T) {
	s := setup(t)
	for _, want := range []string{"700 of 700 orders submitted", "700 already there"} {
		var out bytes.Buffer
		if err := generate(t, "--count=700", "--seed=3", "--mix=shop").submit(t.Context(), s, &out, &out); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Fatalf("said %q, want %q", out.String(), want)
		}
	}
	s.stored(700)
}

func TestAnInterruptedGeneratorSaysWhatIsStored(t *testing.T) {
	s := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if err := generate(t, "--count=10", "--rate=0.001").submit(ctx, s, &out, &out); err == nil {
		t.Error("no error for an interrupted run")
	}
	if !strings.Contains(out.String(), "0 of 10 orders submitted") {
		t.Errorf("said %q", out.String())
	}
	s.stored(0)
}

// batches counts what is submitted, and how much at a time.
type batches struct{ sizes []int }

func (b *batches) Submit(_ context.Context, _ string, _ crm.Channel, orders []crm.Order, _ crm.SubmitOptions) ([]crm.Submission, error) {
	b.sizes = append(b.sizes, len(orders))
	return make([]crm.Submission, len(orders)), nil
}

func TestOrdersAreDueInStepWithTheRate(t *testing.T) {
	t.Parallel()
	c := &GenerateCmd{Count: 100, Rate: 20}
	for after, want := range map[time.Duration]int{0: 0, 49 * time.Millisecond: 0, 50 * time.Millisecond: 1, time.Second: 20, time.Minute: 100} {
		if got := c.due(after); got != want {
			t.Errorf("%d are due after %s, want %d", got, after, want)
		}
	}
	if got := c.until(1); got != 50*time.Millisecond {
		t.Errorf("the first is due after %s", got)
	}
	b := &batches{}
	fast := generate(t, "--count=1200")
	if err := fast.submit(t.Context(), b, &bytes.Buffer{}, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	if len(b.sizes) != 3 || b.sizes[0] != 500 || b.sizes[2] != 200 {
		t.Errorf("without a rate, batches of %v", b.sizes)
	}
	paced := &batches{}
	if err := generate(t, "--count=20", "--rate=500").submit(t.Context(), paced, &bytes.Buffer{}, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	sum := 0
	for _, n := range paced.sizes {
		sum += n
	}
	if sum != 20 {
		t.Errorf("%d orders in batches of %v", sum, paced.sizes)
	}
}

func TestGeneratedFilesCanBeImported(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"orders.jsonl", "orders.csv"} {
		path := filepath.Join(t.TempDir(), name)
		c, err := parsed[GenerateCmd](t, "--count=30", "--first=11", "--out", path)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.write(nil); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		format, err := orderfile.FormatOf(name)
		if err != nil {
			t.Fatal(err)
		}
		f, err := orderfile.Read(bytes.NewReader(data), orderfile.Options{Format: format})
		if err != nil || len(f.Entries) != 30 || f.Entries[0].Order.Order != "G1-000011" {
			t.Fatalf("%s: %v, %+v", name, err, f)
		}
	}
	var out bytes.Buffer
	c := &GenerateCmd{Count: 2, First: 1, Start: "2026-01-05", Out: "-"}
	if err := c.write(&out); err != nil || strings.Count(out.String(), "\n") != 2 {
		t.Fatalf("%v, wrote %q", err, out.String())
	}
}

func TestGenerateRefusesArgumentsThatCannotBeMeant(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"CRM_DATABASE_URL": {"--tenant=acme"}, "--tenant": {"--database-url=x"}, "--count": {"--out=-", "--count=0"},
		"--rate": {"--out=-", "--rate=-1"}, "--start": {"--out=-", "--start=yesterday"}, "--mix": {"--out=-", "--mix=x"},
	} {
		if _, err := parsed[GenerateCmd](t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want one about %s", args, err, want)
		}
	}
	if _, err := parsed[GenerateCmd](t, "--out=-", "--rate=NaN"); err == nil {
		t.Error("a rate that is no number was taken")
	}
}

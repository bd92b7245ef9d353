package chaos

import (
	"os"
	"strconv"
	"testing"
	"time"

	"invoicebridge/internal/fleet"
)

// seedVariable has the test run, with this seed's schedule.
const seedVariable = "CHAOS_SEED"

// The same for longer, and with processes whose clock is wrong: make chaos DURATION=30m.
func TestAMinuteOfAnythingAtAnyTimeBreaksNoRule(t *testing.T) {
	t.Parallel()
	text := os.Getenv(seedVariable)
	if text == "" {
		t.Skip("takes two to five minutes: " + seedVariable + "=<number> runs it")
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(t.Context(), Options{
		Programs: build(t), Other: build(t, "-ldflags=-buildid=other"), Duration: time.Minute, Seed: seed, Progress: func(text string) { t.Log(text) },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Report(t.Output()); err != nil {
		t.Errorf("%v; again by %s=%d", err, seedVariable, seed)
	}
	if len(r.Books.Invoices) == 0 || len(r.Books.Operations) == 0 || len(r.History.Counts) < len(disturbances())/2 {
		t.Errorf("little was tried: %d invoices, %d operations, disturbances %v", len(r.Books.Invoices), len(r.Books.Operations), r.History.Counts)
	}
}

func build(t *testing.T, flags ...string) fleet.Programs {
	t.Helper()
	p, err := fleet.Build(t.Context(), t.TempDir(), flags...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

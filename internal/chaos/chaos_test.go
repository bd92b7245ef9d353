package chaos

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"invoicebridge/internal/fleet"
)

// seedVariable decides the schedule; "off" leaves the test out.
const seedVariable = "CHAOS_SEED"

// The same for longer, and with processes whose clock is wrong: make chaos DURATION=30m.
func TestAMinuteOfAnythingAtAnyTimeBreaksNoRule(t *testing.T) {
	seed := rand.Uint64N(1_000_000) + 1
	switch text := os.Getenv(seedVariable); {
	case testing.Short() || text == "off":
		t.Skip("takes two to three minutes, most of them for the leases of killed processes to end")
	case text != "":
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%s=%d", seedVariable, seed)
	r, err := Run(t.Context(), Options{
		Programs: build(t), Other: build(t, "-ldflags=-buildid=other"), Duration: time.Minute, Seed: seed, Progress: func(text string) { t.Log(text) },
	})
	if err != nil {
		t.Fatalf("%v; again by %s=%d", err, seedVariable, seed)
	}
	if err := r.Report(t.Output()); err != nil {
		t.Errorf("%v; again by %s=%d", err, seedVariable, seed)
	}
	if len(r.Books.Invoices) == 0 || len(r.Books.Operations) == 0 {
		t.Errorf("little was tried: %d invoices, %d operations", len(r.Books.Invoices), len(r.Books.Operations))
	}
	for _, d := range disturbances() { // whether each could be done depends on the others
		if r.History.Counts[d.kind]+r.History.Undone[d.kind] == 0 {
			t.Errorf("%s was not tried", d.kind)
		}
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

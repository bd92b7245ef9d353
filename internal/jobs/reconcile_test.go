package jobs

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"invoicebridge/internal/testdb"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// reconciling lets the client's reconciliation be what the test says.
func (b *bench) reconciling(run func(ctx context.Context) error) {
	b.cfg.Reconcile = Reconcile{Run: run, Interval: time.Hour, RunTime: 100 * time.Millisecond}
}

func (b *bench) reconciliations(state string) int {
	return b.count("river_job WHERE kind = $1 AND state::text = $2", ReconcileKind, state)
}

func TestReconciliationRunsByItself(t *testing.T) {
	b := setup(t)
	b.reconciling(func(context.Context) error { return nil })
	b.start()
	testdb.Await(b.t, "the first run", func() bool { return b.reconciliations("completed") == 1 })
}

func TestALongReconciliationGoesOnInTheNextJob(t *testing.T) {
	b := setup(t)
	runs := 0 // one job at a time
	b.reconciling(func(ctx context.Context) error {
		if runs++; runs == 1 {
			<-ctx.Done() // more to compare than there is time
			return ctx.Err()
		}
		return nil
	})
	b.start()
	testdb.Await(b.t, "the second part", func() bool { return b.reconciliations("completed") == 1 })
	if runs != 2 || b.count("river_job WHERE kind = $1", ReconcileKind) != 1 {
		t.Errorf("%d runs", runs)
	}
}

func TestAFailedReconciliationIsLeftToTheNext(t *testing.T) {
	b := setup(t)
	b.reconciling(func(context.Context) error { return errors.New("the ERP is away") })
	b.start()
	testdb.Await(b.t, "the job's end", func() bool { return b.reconciliations("discarded") == 1 })
}

func TestReconciliationInterruptedByAShutdownIsNoFailure(t *testing.T) {
	b := setup(t)
	started := make(chan struct{})
	b.cfg.SoftStopTimeout = time.Hour // which a stop is not to take
	b.reconciling(func(ctx context.Context) error {
		close(started)
		<-ctx.Done()
		return ctx.Err()
	})
	b.cfg.Reconcile.RunTime = time.Minute
	client := b.start()
	<-started
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := client.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if b.reconciliations("completed") != 1 {
		t.Error("the job is not completed")
	}
}

// scraped is gather without what is told of the reading itself.
func scraped(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	figures := gather(t, c)
	maps.DeleteFunc(figures, func(name string, _ float64) bool { return strings.HasPrefix(name, "crm_figures_") })
	return figures
}

func TestReconcileMetricsTellWhatIsOpenAndHowOldTheNewestRunIs(t *testing.T) {
	t.Parallel()
	standing, failure := ReconcileStanding{Open: map[string]int64{"missing_in_erp": 2, "missing_in_crm": 0}}, error(nil)
	read := func(context.Context) (ReconcileStanding, error) { return standing, failure }
	want := map[string]float64{"crm_open_divergences missing_in_erp": 2, "crm_open_divergences missing_in_crm": 0}
	if diff := cmp.Diff(want, scraped(t, NewReconcileMetrics("crm", read, nil))); diff != "" {
		t.Error(diff)
	}
	standing.Ran, standing.Age = true, 90*time.Second
	want["crm_reconciliation_age_seconds"] = 90
	if diff := cmp.Diff(want, scraped(t, NewReconcileMetrics("crm", read, nil))); diff != "" {
		t.Error(diff)
	}
	failure = errors.New("away")
	if diff := cmp.Diff(map[string]float64{}, scraped(t, NewReconcileMetrics("crm", read, nil))); diff != "" {
		t.Error(diff)
	}
}

package jobs

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// ReconcileStanding is what the metrics tell of a side's reconciliation.
type ReconcileStanding struct {
	Open map[string]int64 // open divergences by kind; a kind without any is 0
	// Age is how long ago the newest finished run of a tenant ended, of the tenant where that is longest. Ran is false
	// where no tenant has a finished run.
	Age time.Duration
	Ran bool
}

// ReconcileMetrics is a prometheus.Collector for reconciliation.
type ReconcileMetrics struct{ *figureGroup }

var _ prometheus.Collector = (*ReconcileMetrics)(nil)

// NewReconcileMetrics makes ReconcileMetrics of one side, "crm" or "erp", that nobody has registered yet. They are read when
// they are collected, and are the same in every process on one database.
func NewReconcileMetrics(side string, read func(ctx context.Context) (ReconcileStanding, error), log *slog.Logger) *ReconcileMetrics {
	open := prometheus.NewDesc(side+"_open_divergences", "Differences between two sides' books that nobody has put right or accepted.", []string{"kind"}, nil)
	age := prometheus.NewDesc(side+"_reconciliation_age_seconds",
		"How long ago reconciliation last came to its end, for the tenant where that is longest; not there before the first end.", nil, nil)
	tell := func(standing ReconcileStanding, metrics chan<- prometheus.Metric) {
		for kind, n := range standing.Open {
			gauge(metrics, open, float64(n), kind)
		}
		if standing.Ran {
			gauge(metrics, age, standing.Age.Seconds())
		}
	}
	return &ReconcileMetrics{newFigureGroup(side, "reconciliation", dearFiguresEvery, 0, logger(log), read, tell, open, age)}
}

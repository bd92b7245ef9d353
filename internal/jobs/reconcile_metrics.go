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
type ReconcileMetrics struct {
	read func(ctx context.Context) (ReconcileStanding, error)
	log  *slog.Logger
	open *prometheus.Desc
	age  *prometheus.Desc
}

var _ prometheus.Collector = (*ReconcileMetrics)(nil)

// NewReconcileMetrics makes ReconcileMetrics of one side, "crm" or "erp", that nobody has registered yet. They are read at
// each scrape.
func NewReconcileMetrics(side string, read func(ctx context.Context) (ReconcileStanding, error), log *slog.Logger) *ReconcileMetrics {
	return &ReconcileMetrics{
		read: read, log: logger(log),
		open: prometheus.NewDesc(side+"_open_divergences", "Differences between two sides' books that nobody has put right.", []string{"kind"}, nil),
		age: prometheus.NewDesc(side+"_reconciliation_age_seconds",
			"How long ago reconciliation last came to its end, for the tenant where that is longest.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *ReconcileMetrics) Describe(descs chan<- *prometheus.Desc) {
	descs <- m.open
	descs <- m.age
}

// Collect implements prometheus.Collector. If the database does not answer, the figures are missing from the scrape.
func (m *ReconcileMetrics) Collect(metrics chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), agesTimeLimit)
	defer cancel()
	standing, err := m.read(ctx)
	if err != nil {
		m.log.WarnContext(ctx, "how reconciliation stands could not be read", "error", err)
		return
	}
	for kind, n := range standing.Open {
		metrics <- prometheus.MustNewConstMetric(m.open, prometheus.GaugeValue, float64(n), kind)
	}
	if standing.Ran {
		metrics <- prometheus.MustNewConstMetric(m.age, prometheus.GaugeValue, standing.Age.Seconds())
	}
}

package jobs

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/internal/retention"
)

// PurgeMetrics is a prometheus.Collector for the purge, and the retention.Observer that feeds it.
type PurgeMetrics struct {
	purged  *prometheus.CounterVec
	refused *prometheus.CounterVec
	overdue *figureGroup
}

var (
	_ prometheus.Collector = (*PurgeMetrics)(nil)
	_ retention.Observer   = (*PurgeMetrics)(nil)
)

// NewPurgeMetrics makes PurgeMetrics of one side, "crm" or "erp", that nobody has registered yet. How far the purge is
// behind is read when they are collected, from the database that these steps work on.
func NewPurgeMetrics(side string, steps []retention.Step, log *slog.Logger) *PurgeMetrics {
	m := &PurgeMetrics{
		purged: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: side + "_purged_rows_total", Help: "Rows that were kept long enough, and removed or minimised.",
		}, []string{"table"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: side + "_purge_refused_rows_total", Help: "Rows that the database would not let the purge remove; counted in each run.",
		}, []string{"table"}),
		overdue: newOverdueFigures(side, steps, logger(log)),
	}
	for _, step := range steps { // present from the start, so that an alarm on them has something to look at
		m.purged.WithLabelValues(step.Table())
		m.refused.WithLabelValues(step.Table())
	}
	return m
}

// RowsPurged implements retention.Observer.
func (m *PurgeMetrics) RowsPurged(table string, rows int64) {
	m.purged.WithLabelValues(table).Add(float64(rows))
}

// RowRefused implements retention.Observer.
func (m *PurgeMetrics) RowRefused(table string) { m.refused.WithLabelValues(table).Inc() }

// Describe implements prometheus.Collector.
func (m *PurgeMetrics) Describe(descs chan<- *prometheus.Desc) {
	m.purged.Describe(descs)
	m.refused.Describe(descs)
	m.overdue.Describe(descs)
}

// Collect implements prometheus.Collector. If the database does not answer, the ages are the last ones.
func (m *PurgeMetrics) Collect(metrics chan<- prometheus.Metric) {
	m.purged.Collect(metrics)
	m.refused.Collect(metrics)
	m.overdue.Collect(metrics)
}

func newOverdueFigures(side string, steps []retention.Step, log *slog.Logger) *figureGroup {
	overdue := prometheus.NewDesc(side+"_purge_overdue_seconds", "How long the time of the oldest row that may go has come; 0 if there is none.", []string{"table"}, nil)
	tell := func(all []retention.Overdue, metrics chan<- prometheus.Metric) {
		for _, o := range all {
			gauge(metrics, overdue, o.By.Seconds(), o.Table)
		}
	}
	return newFigureGroup(side, "retention", openFiguresEvery, 0, log, retention.NewPurger(steps, retention.Options{}).Overdue, tell, overdue)
}

// KeyRetentionMetrics are the CRM side's gauges of how long the ERP keeps keys, against how long they may be needed.
type KeyRetentionMetrics struct{ needed, told prometheus.Gauge }

// NewKeyRetentionMetrics makes them; needed is the longest retry.
func NewKeyRetentionMetrics(needed time.Duration) *KeyRetentionMetrics {
	m := &KeyRetentionMetrics{
		needed: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "crm_longest_retry_seconds", Help: "How long after its first use a key may still be sent.",
		}),
		told: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "crm_erp_key_retention_seconds", Help: "How long the ERP keeps a key, by its newest answer; 0 before the first.",
		}),
	}
	m.needed.Set(needed.Seconds())
	return m
}

// KeyKept is told what an answer of the ERP says.
func (m *KeyRetentionMetrics) KeyKept(d time.Duration) { m.told.Set(d.Seconds()) }

// Collectors are what is to be registered.
func (m *KeyRetentionMetrics) Collectors() []prometheus.Collector {
	return []prometheus.Collector{m.needed, m.told}
}

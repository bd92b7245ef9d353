package jobs

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/internal/retention"
)

// PurgeMetrics is a prometheus.Collector for the purge, and the retention.Observer that feeds it.
type PurgeMetrics struct {
	log     *slog.Logger
	source  *retention.Purger
	purged  *prometheus.CounterVec
	refused *prometheus.CounterVec
	overdue *prometheus.Desc
}

var (
	_ prometheus.Collector = (*PurgeMetrics)(nil)
	_ retention.Observer   = (*PurgeMetrics)(nil)
)

// NewPurgeMetrics makes PurgeMetrics of one side, "crm" or "erp", that nobody has registered yet. How far the purge is
// behind is read at each scrape, from the database that these steps work on.
func NewPurgeMetrics(side string, steps []retention.Step, log *slog.Logger) *PurgeMetrics {
	m := &PurgeMetrics{
		log: logger(log), source: retention.NewPurger(steps, retention.Options{}),
		purged: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: side + "_purged_rows_total", Help: "Rows that were kept long enough, and removed or minimised.",
		}, []string{"table"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: side + "_purge_refused_rows_total", Help: "Rows that the database would not let the purge remove; counted in each run.",
		}, []string{"table"}),
		overdue: prometheus.NewDesc(side+"_purge_overdue_seconds",
			"How long the time of the oldest row that may go has come; 0 if there is none.", []string{"table"}, nil),
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
	descs <- m.overdue
}

// Collect implements prometheus.Collector. If the database does not answer, the ages are missing from the scrape.
func (m *PurgeMetrics) Collect(metrics chan<- prometheus.Metric) {
	m.purged.Collect(metrics)
	m.refused.Collect(metrics)
	ctx, cancel := context.WithTimeout(context.Background(), agesTimeLimit)
	defer cancel()
	all, err := m.source.Overdue(ctx)
	if err != nil {
		m.log.WarnContext(ctx, "how far the purge is behind could not be read", "error", err)
		return
	}
	for _, o := range all {
		metrics <- prometheus.MustNewConstMetric(m.overdue, prometheus.GaugeValue, o.By.Seconds(), o.Table)
	}
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

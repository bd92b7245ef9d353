package jobs

import (
	"context"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/crmdb"
)

// agesTimeLimit bounds the query behind one scrape.
const agesTimeLimit = 2 * time.Second

// Metrics is a prometheus.Collector for the delivery, and the crm.DeliveryObserver that feeds it.
type Metrics struct {
	pool       *pgxpool.Pool
	log        *slog.Logger
	attempts   *prometheus.CounterVec
	flagged    *prometheus.CounterVec
	enqueued   prometheus.Counter
	oldestOpen *prometheus.Desc
	oldestJob  *prometheus.Desc
}

var (
	_ prometheus.Collector = (*Metrics)(nil)
	_ crm.DeliveryObserver = (*Metrics)(nil)
)

// NewMetrics makes Metrics that nobody has registered yet. The ages are read from the database at each scrape.
func NewMetrics(pool *pgxpool.Pool, log *slog.Logger) *Metrics {
	return &Metrics{
		pool: pool, log: logger(log),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "crm_delivery_attempts_total", Help: "Ended attempts at delivering an operation.",
		}, []string{"outcome"}),
		flagged: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "crm_operations_flagged_total", Help: "Open operations handed to an operator.",
		}, []string{"reason"}),
		enqueued: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "crm_sweep_enqueued_total", Help: "Operations whose job was lost and that the sweep enqueued again.",
		}),
		oldestOpen: prometheus.NewDesc("crm_oldest_open_operation_seconds",
			"Age of the oldest operation that is neither final nor with an operator; 0 if there is none.", nil, nil),
		oldestJob: prometheus.NewDesc("crm_oldest_running_job_seconds",
			"How long the oldest running job has been running; 0 if there is none.", nil, nil),
	}
}

// AttemptEnded implements crm.DeliveryObserver.
func (m *Metrics) AttemptEnded(outcome crm.AttemptOutcome) {
	m.attempts.WithLabelValues(string(outcome)).Inc()
}

// OperationFlagged implements crm.DeliveryObserver.
func (m *Metrics) OperationFlagged(reason crm.Reason) {
	m.flagged.WithLabelValues(string(reason)).Inc()
}

func (m *Metrics) swept(n int) { m.enqueued.Add(float64(n)) }

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(descs chan<- *prometheus.Desc) {
	m.attempts.Describe(descs)
	m.flagged.Describe(descs)
	m.enqueued.Describe(descs)
	descs <- m.oldestOpen
	descs <- m.oldestJob
}

// Collect implements prometheus.Collector. If the database does not answer, the ages are missing from the scrape.
func (m *Metrics) Collect(metrics chan<- prometheus.Metric) {
	m.attempts.Collect(metrics)
	m.flagged.Collect(metrics)
	m.enqueued.Collect(metrics)
	ctx, cancel := context.WithTimeout(context.Background(), agesTimeLimit)
	defer cancel()
	ages, err := crmdb.New(m.pool).DeliveryAges(ctx)
	if err != nil {
		m.log.WarnContext(ctx, "ages for the metrics could not be read", "error", err)
		return
	}
	metrics <- prometheus.MustNewConstMetric(m.oldestOpen, prometheus.GaugeValue, ages.OldestOpenSeconds)
	metrics <- prometheus.MustNewConstMetric(m.oldestJob, prometheus.GaugeValue, ages.OldestRunningJobSeconds)
}

package jobs

import (
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/internal/crm"
)

// Metrics is a prometheus.Collector for the delivery, and the crm.DeliveryObserver that feeds it.
type Metrics struct {
	attempts  *prometheus.CounterVec
	flagged   *prometheus.CounterVec
	submitted *prometheus.CounterVec
	enqueued  prometheus.Counter
	groups    *prometheus.HistogramVec
	figures   figureGroups
}

var (
	_ prometheus.Collector = (*Metrics)(nil)
	_ crm.DeliveryObserver = (*Metrics)(nil)
)

// NewMetrics makes Metrics that nobody has registered yet. What they show of the database is read when they are collected,
// and is the same in every process on it; the counters are this process's own.
func NewMetrics(pool *pgxpool.Pool, log *slog.Logger) *Metrics {
	m := &Metrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "crm_delivery_attempts_total", Help: "Ended attempts at delivering an operation.",
		}, []string{"outcome"}),
		flagged: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "crm_operations_flagged_total", Help: "Open operations handed to an operator.",
		}, []string{"reason"}),
		enqueued: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "crm_sweep_enqueued_total", Help: "Operations whose job was lost and that the sweep enqueued again.",
		}),
		submitted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "crm_submitted_orders_total", Help: "Orders that were submitted, by the way they came in and what they led to.",
		}, []string{"channel", "outcome"}),
		groups: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "crm_group_commit_operations", Help: "Operations that one transaction brought a step further together.",
			Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128},
		}, []string{"step"}),
		figures: newCRMFigures(pool, logger(log)),
	}
	for _, outcome := range crm.AttemptOutcomes() { // 0 is there from the start, so that a first one is an increase
		m.attempts.WithLabelValues(string(outcome))
	}
	for _, reason := range crm.Reasons() {
		m.flagged.WithLabelValues(string(reason))
	}
	for _, step := range crm.GroupSteps() {
		m.groups.WithLabelValues(string(step))
	}
	for _, channel := range crm.Channels() {
		for _, outcome := range crm.Outcomes() {
			m.submitted.WithLabelValues(string(channel), string(outcome))
		}
	}
	return m
}

// AttemptEnded implements crm.DeliveryObserver.
func (m *Metrics) AttemptEnded(outcome crm.AttemptOutcome) {
	m.attempts.WithLabelValues(string(outcome)).Inc()
}

// OperationFlagged implements crm.DeliveryObserver.
func (m *Metrics) OperationFlagged(reason crm.Reason) {
	m.flagged.WithLabelValues(string(reason)).Inc()
}

// Committed implements crm.DeliveryObserver.
func (m *Metrics) Committed(step crm.GroupStep, operations int) {
	m.groups.WithLabelValues(string(step)).Observe(float64(operations))
}

// OrderSubmitted is told what a submitted order led to; nothing is counted of those that others took with them.
func (m *Metrics) OrderSubmitted(channel crm.Channel, outcome crm.Outcome) {
	if outcome != crm.OutcomeNone {
		m.submitted.WithLabelValues(string(channel), string(outcome)).Inc()
	}
}

func (m *Metrics) swept(n int) { m.enqueued.Add(float64(n)) }

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(descs chan<- *prometheus.Desc) {
	m.attempts.Describe(descs)
	m.flagged.Describe(descs)
	m.submitted.Describe(descs)
	m.enqueued.Describe(descs)
	m.groups.Describe(descs)
	m.figures.describe(descs)
}

// Collect implements prometheus.Collector. If the database does not answer, its figures are the last ones.
func (m *Metrics) Collect(metrics chan<- prometheus.Metric) {
	m.attempts.Collect(metrics)
	m.flagged.Collect(metrics)
	m.submitted.Collect(metrics)
	m.enqueued.Collect(metrics)
	m.groups.Collect(metrics)
	m.figures.collect(metrics)
}

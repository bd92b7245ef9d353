package jobs

import (
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/internal/invoice"
)

// ERPMetrics is a prometheus.Collector for registrations, and the invoice.RegistrationObserver that feeds it.
type ERPMetrics struct {
	attempts *prometheus.CounterVec
	flagged  *prometheus.CounterVec
	refused  prometheus.Counter
	enqueued prometheus.Counter
	groups   prometheus.Histogram
	figures  figureGroups
}

var (
	_ prometheus.Collector         = (*ERPMetrics)(nil)
	_ invoice.RegistrationObserver = (*ERPMetrics)(nil)
)

// NewERPMetrics makes ERPMetrics that nobody has registered yet. What they show of the database is read when they are
// collected, and is the same in every process on it; the counters are this process's own.
func NewERPMetrics(pool *pgxpool.Pool, log *slog.Logger) *ERPMetrics {
	m := &ERPMetrics{
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "erp_registration_attempts_total", Help: "Ended attempts at registering an invoice at a target.",
		}, []string{"outcome"}),
		flagged: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "erp_registrations_flagged_total", Help: "Registrations that an operator was told of.",
		}, []string{"reason"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{ // which target: in the log, and on the page of targets
			Name: "erp_target_not_authorised_total", Help: "Attempts that a target's credential has stopped: it is missing, or not taken.",
		}),
		enqueued: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "erp_sweep_enqueued_total", Help: "Registrations that nobody worked on and that the sweep enqueued again.",
		}),
		groups: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "erp_group_commit_invoices", Help: "Invoices that one transaction issued together.",
			Buckets: []float64{1, 2, 4, 8, 16, 32, 64, 128, 256},
		}),
		figures: newERPFigures(pool, logger(log)),
	}
	for _, outcome := range invoice.RegistrationOutcomes() { // 0 is there from the start, so that a first one is an increase
		m.attempts.WithLabelValues(outcome)
	}
	for _, reason := range invoice.RegistrationReasons() {
		m.flagged.WithLabelValues(string(reason))
	}
	return m
}

// RegistrationAttemptEnded implements invoice.RegistrationObserver.
func (m *ERPMetrics) RegistrationAttemptEnded(outcome string) {
	m.attempts.WithLabelValues(outcome).Inc()
}

// RegistrationFlagged implements invoice.RegistrationObserver.
func (m *ERPMetrics) RegistrationFlagged(reason invoice.RegistrationReason) {
	m.flagged.WithLabelValues(string(reason)).Inc()
}

// TargetNotAuthorised implements invoice.RegistrationObserver.
func (m *ERPMetrics) TargetNotAuthorised(_, _ string) { m.refused.Inc() }

// Committed is told how many invoices a transaction has issued.
func (m *ERPMetrics) Committed(invoices int) { m.groups.Observe(float64(invoices)) }

func (m *ERPMetrics) swept(n int) { m.enqueued.Add(float64(n)) }

// Describe implements prometheus.Collector.
func (m *ERPMetrics) Describe(descs chan<- *prometheus.Desc) {
	m.attempts.Describe(descs)
	m.flagged.Describe(descs)
	m.refused.Describe(descs)
	m.enqueued.Describe(descs)
	m.groups.Describe(descs)
	m.figures.describe(descs)
}

// Collect implements prometheus.Collector. If the database does not answer, its figures are the last ones.
func (m *ERPMetrics) Collect(metrics chan<- prometheus.Metric) {
	m.attempts.Collect(metrics)
	m.flagged.Collect(metrics)
	m.refused.Collect(metrics)
	m.enqueued.Collect(metrics)
	m.groups.Collect(metrics)
	m.figures.collect(metrics)
}

package jobs

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/invoice"
)

// ERPMetrics is a prometheus.Collector for registrations, and the invoice.RegistrationObserver that feeds it.
type ERPMetrics struct {
	pool       *pgxpool.Pool
	log        *slog.Logger
	attempts   *prometheus.CounterVec
	flagged    *prometheus.CounterVec
	refused    *prometheus.CounterVec
	enqueued   prometheus.Counter
	oldestOpen *prometheus.Desc
	oldestJob  *prometheus.Desc
}

var (
	_ prometheus.Collector         = (*ERPMetrics)(nil)
	_ invoice.RegistrationObserver = (*ERPMetrics)(nil)
)

// NewERPMetrics makes ERPMetrics that nobody has registered yet. The ages are read from the database at each scrape.
func NewERPMetrics(pool *pgxpool.Pool, log *slog.Logger) *ERPMetrics {
	return &ERPMetrics{
		pool: pool, log: logger(log),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "erp_registration_attempts_total", Help: "Ended attempts at registering an invoice at a target.",
		}, []string{"outcome"}),
		flagged: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "erp_registrations_flagged_total", Help: "Registrations that an operator was told of.",
		}, []string{"reason"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "erp_target_not_authorised_total", Help: "Attempts that a target's credential has stopped: it is missing, or not taken.",
		}, []string{"tenant", "target"}), // as many as are configured
		enqueued: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "erp_sweep_enqueued_total", Help: "Registrations that nobody worked on and that the sweep enqueued again.",
		}),
		oldestOpen: prometheus.NewDesc("erp_oldest_open_registration_seconds",
			"Age of the oldest registration that is not final; 0 if there is none.", nil, nil),
		oldestJob: prometheus.NewDesc("erp_oldest_running_job_seconds",
			"How long the oldest running job has been running; 0 if there is none.", nil, nil),
	}
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
func (m *ERPMetrics) TargetNotAuthorised(tenant, target string) {
	m.refused.WithLabelValues(tenant, target).Inc()
}

func (m *ERPMetrics) swept(n int) { m.enqueued.Add(float64(n)) }

// Describe implements prometheus.Collector.
func (m *ERPMetrics) Describe(descs chan<- *prometheus.Desc) {
	m.attempts.Describe(descs)
	m.flagged.Describe(descs)
	m.refused.Describe(descs)
	m.enqueued.Describe(descs)
	descs <- m.oldestOpen
	descs <- m.oldestJob
}

// Collect implements prometheus.Collector. If the database does not answer, the ages are missing from the scrape.
func (m *ERPMetrics) Collect(metrics chan<- prometheus.Metric) {
	m.attempts.Collect(metrics)
	m.flagged.Collect(metrics)
	m.refused.Collect(metrics)
	m.enqueued.Collect(metrics)
	ctx, cancel := context.WithTimeout(context.Background(), agesTimeLimit)
	defer cancel()
	ages, err := erpdb.New(m.pool).RegistrationAges(ctx)
	if err != nil {
		m.log.WarnContext(ctx, "ages for the metrics could not be read", "error", err)
		return
	}
	metrics <- prometheus.MustNewConstMetric(m.oldestOpen, prometheus.GaugeValue, ages.OldestOpenSeconds)
	metrics <- prometheus.MustNewConstMetric(m.oldestJob, prometheus.GaugeValue, ages.OldestRunningJobSeconds)
}

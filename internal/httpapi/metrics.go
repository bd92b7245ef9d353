package httpapi

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"invoicebridge/internal/problem"
)

// metrics are a service's own figures, in a registry of its own.
type metrics struct {
	registry   *prometheus.Registry
	requests   *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	problems   *prometheus.CounterVec
	turnedAway *prometheus.CounterVec
	issues     issueMetrics // on the ERP's side only
	logins     *prometheus.CounterVec
}

func newMetrics(pool *pgxpool.Pool, inFlight *atomic.Int64) *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "http_requests_total", Help: "Requests by method, route and status.",
		}, []string{"method", "route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "http_request_duration_seconds", Help: "Time to answer, by method and route.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 20},
		}, []string{"method", "route"}),
		problems: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "http_problems_total", Help: "Problems told, by type: conflicts of keys, operations in progress, unavailability and the rest.",
		}, []string{"type"}),
		turnedAway: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "http_requests_turned_away_total", Help: "Requests answered at once that there are too many, by the limit that was reached.",
		}, []string{"limit"}),
		issues: newIssueMetrics(),
		logins: newLogins(),
	}
	for _, k := range kinds() {
		m.problems.WithLabelValues(string(k.problemType)) // 0 is there from the start, so that a first one is an increase
	}
	for _, l := range limits() {
		m.turnedAway.WithLabelValues(string(l))
	}
	m.registry.MustRegister(m.requests, m.duration, m.problems, m.turnedAway, m.logins, newBuildInfo(),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "http_requests_in_flight", Help: "Authenticated requests at work or waiting for a connection.",
		}, func() float64 { return float64(inFlight.Load()) }),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if pool != nil {
		m.registry.MustRegister(newPoolCollector(pool))
	}
	return m
}

func (m *metrics) request(method, route string, status int, took time.Duration) {
	method = methodLabel(method)
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(method, route).Observe(took.Seconds())
}

func (m *metrics) problem(t problem.Type) { m.problems.WithLabelValues(string(t)).Inc() }

// methodLabel keeps methods that somebody made up from becoming labels.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "other"
}

func (m *metrics) handler() echo.HandlerFunc {
	return echo.WrapHandler(promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
}

// poolCollector reads a pool's figures when asked.
type poolCollector struct {
	pool                                               *pgxpool.Pool
	connections, acquires, waits, waitSeconds, discard *prometheus.Desc
}

func newPoolCollector(pool *pgxpool.Pool) *poolCollector {
	return &poolCollector{
		pool:        pool,
		connections: prometheus.NewDesc("database_connections", "Connections of the pool by state.", []string{"state"}, nil),
		acquires:    prometheus.NewDesc("database_acquires_total", "Connections taken from the pool.", nil, nil),
		waits:       prometheus.NewDesc("database_acquire_waits_total", "Times a connection had to be waited for.", nil, nil),
		waitSeconds: prometheus.NewDesc("database_acquire_wait_seconds_total", "Time spent waiting for a connection.", nil, nil),
		discard:     prometheus.NewDesc("database_acquires_canceled_total", "Waits for a connection given up.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (p *poolCollector) Describe(ch chan<- *prometheus.Desc) { prometheus.DescribeByCollect(p, ch) }

// Collect implements prometheus.Collector.
func (p *poolCollector) Collect(ch chan<- prometheus.Metric) {
	stat := p.pool.Stat()
	gauge := func(state string, n int32) {
		ch <- prometheus.MustNewConstMetric(p.connections, prometheus.GaugeValue, float64(n), state)
	}
	gauge("acquired", stat.AcquiredConns())
	gauge("idle", stat.IdleConns())
	gauge("opening", stat.ConstructingConns())
	gauge("allowed", stat.MaxConns())
	counter := func(desc *prometheus.Desc, n float64) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, n)
	}
	counter(p.acquires, float64(stat.AcquireCount()))
	counter(p.waits, float64(stat.EmptyAcquireCount()))
	counter(p.waitSeconds, stat.EmptyAcquireWaitTime().Seconds())
	counter(p.discard, float64(stat.CanceledAcquireCount()))
}

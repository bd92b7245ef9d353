package jobs

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/internal/figures"
)

// How old figures of the database are at least when they are read again. What is open is found by partial indexes; counting
// what has come to its end reads an index of all of it.
const (
	openFiguresEvery  = figures.DefaultEvery
	dearFiguresEvery  = 15 * time.Second
	finalFiguresEvery = time.Minute
	finalFiguresLimit = time.Minute
)

// figureGroup is a prometheus.Collector of figures that are read from the database together, and of how old they are. It
// holds up no scrape: where the database is slow or away, the last figures stand.
type figureGroup struct {
	descs              []*prometheus.Desc // of the figures
	at, took, failures *prometheus.Desc
	tell               func(metrics chan<- prometheus.Metric) figures.Standing
}

// newFigureGroup makes a figureGroup of one side, "crm" or "erp". tell sends the figures of a reading, which are these descs'.
func newFigureGroup[T any](side, name string, every, limit time.Duration, log *slog.Logger, read func(ctx context.Context) (T, error),
	tell func(value T, metrics chan<- prometheus.Metric), descs ...*prometheus.Desc,
) *figureGroup {
	reading := figures.New(side+" "+name, read, figures.Options{Every: every, Limit: limit, Logger: log})
	label := prometheus.Labels{"figures": name}
	return &figureGroup{
		descs:    descs,
		at:       prometheus.NewDesc(side+"_figures_timestamp_seconds", "When these figures were read from the database, in Unix time; 0 if not yet.", nil, label),
		took:     prometheus.NewDesc(side+"_figures_read_seconds", "How long the newest reading of these figures took.", nil, label),
		failures: prometheus.NewDesc(side+"_figures_failures_total", "Readings of these figures that failed; the ones before stand.", nil, label),
		tell: func(metrics chan<- prometheus.Metric) figures.Standing {
			state := reading.Get()
			if state.Known {
				tell(state.Value, metrics)
			}
			return state.Standing
		},
	}
}

// Describe implements prometheus.Collector.
func (g *figureGroup) Describe(descs chan<- *prometheus.Desc) {
	for _, d := range g.descs {
		descs <- d
	}
	descs <- g.at
	descs <- g.took
	descs <- g.failures
}

// Collect implements prometheus.Collector.
func (g *figureGroup) Collect(metrics chan<- prometheus.Metric) {
	standing := g.tell(metrics)
	at := 0.0
	if standing.Known {
		at = float64(standing.At.UnixMilli()) / 1000
	}
	gauge(metrics, g.at, at)
	gauge(metrics, g.took, standing.Took.Seconds())
	metrics <- prometheus.MustNewConstMetric(g.failures, prometheus.CounterValue, float64(standing.Failures))
}

// figureGroups are collected side by side: where all are slow, a scrape waits as long as for one.
type figureGroups []*figureGroup

func (all figureGroups) describe(descs chan<- *prometheus.Desc) {
	for _, g := range all {
		g.Describe(descs)
	}
}

func (all figureGroups) collect(metrics chan<- prometheus.Metric) {
	var collected sync.WaitGroup
	for _, g := range all {
		collected.Go(func() { g.Collect(metrics) })
	}
	collected.Wait()
}

func gauge(metrics chan<- prometheus.Metric, desc *prometheus.Desc, value float64, labels ...string) {
	metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

// known gives label as it is if it is one of these, and otherwise "other": what a row of the database says never becomes a
// new label.
func known[T ~string](label string, of []T) string {
	for _, k := range of {
		if label == string(k) {
			return label
		}
	}
	return "other"
}

func texts[T ~string](of []T) []string {
	all := make([]string, len(of))
	for i, word := range of {
		all[i] = string(word)
	}
	return all
}

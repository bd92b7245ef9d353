package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/internal/invoice"
)

// replayMetrics shows what answers in memory are worth.
func replayMetrics(replays *invoice.Replays) []prometheus.Collector {
	value := func(read func(invoice.ReplayStats) int64) func() float64 {
		return func() float64 { return float64(read(replays.Stats())) }
	}
	const name, help = "erp_replays_total", "Replays answered, from memory or by a look-up in the database."
	source := func(from string) prometheus.CounterOpts {
		return prometheus.CounterOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"from": from}}
	}
	return []prometheus.Collector{
		prometheus.NewCounterFunc(source("memory"), value(func(s invoice.ReplayStats) int64 { return s.FromMemory })),
		prometheus.NewCounterFunc(source("database"), value(func(s invoice.ReplayStats) int64 { return s.FromBase })),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "erp_replay_cache_answers", Help: "Answers in memory."},
			value(func(s invoice.ReplayStats) int64 { return s.Answers })),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "erp_replay_cache_bytes", Help: "Memory of answers in memory."},
			value(func(s invoice.ReplayStats) int64 { return s.Bytes })),
	}
}

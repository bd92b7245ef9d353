package httpapi

import (
	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/internal/problem"
)

// newIntakeRefusals counts the calls with orders that were turned away, as they are kept for the operators to see.
func newIntakeRefusals() *prometheus.CounterVec {
	refusals := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "crm_intake_refusals_total", Help: "Calls with orders that were turned away, in whole or in part, by the problem told.",
	}, []string{"type"})
	for _, t := range refusedIntake() {
		refusals.WithLabelValues(string(t))
	}
	return refusals
}

// refusedIntake are the problems with which orders are turned away for what they are.
func refusedIntake() []problem.Type {
	return []problem.Type{
		problem.MalformedRequest, problem.InvalidOrder, problem.VersionConflict, problem.ContentTooLarge, problem.UnsupportedMediaType,
	}
}

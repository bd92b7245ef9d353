package httpapi

import (
	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/internal/invoice"
	"invoicebridge/internal/problem"
)

// issueResult is what became of a request to issue an invoice, for the metrics.
type issueResult string

const (
	issueCreated        issueResult = "created"
	issueReplayed       issueResult = "replayed"
	issueKeyReused      issueResult = "key_reused"
	issueInvoicedSame   issueResult = "already_invoiced_same_content"
	issueInvoicedOther  issueResult = "already_invoiced_other_content"
	issueInProgress     issueResult = "in_progress"
	issueInvalid        issueResult = "invalid"
	issueUnavailable    issueResult = "unavailable"
	issueRefusedByOther issueResult = "refused" // for any other reason that a caller is told
	issueFailed         issueResult = "failed"  // a fault of ours, or the caller went away
)

func issueResults() []issueResult {
	return []issueResult{
		issueCreated, issueReplayed, issueKeyReused, issueInvoicedSame, issueInvoicedOther, issueInProgress, issueInvalid, issueUnavailable,
		issueRefusedByOther, issueFailed,
	}
}

func issueResultOf(r invoice.Result) issueResult {
	if r.Err == nil {
		if r.Answer.Replayed {
			return issueReplayed
		}
		return issueCreated
	}
	p := problem.As(r.Err)
	if p == nil {
		return issueFailed
	}
	switch p.Type {
	case problem.IdempotencyKeyReused:
		return issueKeyReused
	case problem.AlreadyInvoiced:
		if p.SameContent {
			return issueInvoicedSame
		}
		return issueInvoicedOther
	case problem.OperationInProgress:
		return issueInProgress
	case problem.InvalidInvoice:
		return issueInvalid
	case problem.Unavailable:
		return issueUnavailable
	}
	return issueRefusedByOther
}

// issueMetrics count what became of requests to issue an invoice.
type issueMetrics struct{ results *prometheus.CounterVec }

func newIssueMetrics() issueMetrics {
	m := issueMetrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "erp_issue_results_total", Help: "What requests to issue an invoice came to: creations, replays, and conflicts by type.",
	}, []string{"result"})}
	for _, r := range issueResults() {
		m.results.WithLabelValues(string(r))
	}
	return m
}

func (m issueMetrics) count(r invoice.Result) {
	m.results.WithLabelValues(string(issueResultOf(r))).Inc()
}

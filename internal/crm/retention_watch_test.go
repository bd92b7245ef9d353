package crm

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/erpapi"
)

// tellingERP answers with the headers of the next answer.
type tellingERP struct {
	ERP
	answers []http.Header
}

func (e *tellingERP) CreateInvoice(context.Context, string, string, []byte) erpapi.Exchange {
	x := erpapi.Exchange{Header: e.answers[0]}
	e.answers = e.answers[1:]
	return x
}

func TestAnERPThatForgetsKeysTooSoonIsAnErrorOnceAValue(t *testing.T) {
	t.Parallel()
	const first = "Mon, 02 Mar 2026 12:00:00 GMT"
	header := func(expires string) http.Header {
		h := http.Header{"Idempotency-First-Seen": {first}}
		if expires != "" {
			h.Set("Idempotency-Expires", expires)
		}
		return h
	}
	erp := &tellingERP{answers: []http.Header{
		header("Sun, 31 May 2026 12:00:00 GMT"), // 90 days
		header(""),                              // the reservation is gone
		nil,                                     // no answer
		{"Idempotency-Expires": {"soon"}, "Idempotency-First-Seen": {}}, // nonsense
		header("Thu, 12 Mar 2026 12:00:00 GMT"), header("Thu, 12 Mar 2026 12:00:00 GMT"),
		header("Tue, 03 Mar 2026 12:00:00 GMT"), header("Sun, 31 May 2026 12:00:00 GMT"), header("Thu, 12 Mar 2026 12:00:00 GMT"),
	}}
	var seen []time.Duration
	var log bytes.Buffer
	watch := WatchKeyRetention(erp, 30*24*time.Hour, slog.New(slog.NewTextHandler(&log, nil)), func(d time.Duration) { seen = append(seen, d) })
	for len(erp.answers) > 0 {
		watch.CreateInvoice(t.Context(), "", "k", nil)
	}
	const day = 24 * time.Hour
	if diff := cmp.Diff([]time.Duration{90 * day, 10 * day, 10 * day, day, 90 * day, 10 * day}, seen); diff != "" {
		t.Error(diff)
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 3 || !strings.Contains(log.String(), "ERP_KEY_RETENTION") || !strings.Contains(log.String(), "TOTAL_TIME") {
		t.Errorf("%d errors, want one for each new value that is too short:\n%s", n, log.String())
	}
}

package crm

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"invoicebridge/internal/erpapi"
)

// KeyRetentionWatch is an ERP that is looked at while it is used: the answers to keyed requests say how long their key
// is kept, and whoever retries for longer than that is told.
type KeyRetentionWatch struct {
	ERP
	longest  time.Duration
	observe  func(kept time.Duration)
	log      *slog.Logger
	lastTold atomic.Int64
}

// WatchKeyRetention wraps erp. longest is how long after its first use a key may still be sent; observe (nil: nobody)
// is told what each answer says. Too short a time is an error in the log, once for each new value; nothing else
// changes, for the ERP's invoice remembers its key for ever.
func WatchKeyRetention(erp ERP, longest time.Duration, log *slog.Logger, observe func(kept time.Duration)) *KeyRetentionWatch {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if observe == nil {
		observe = func(time.Duration) {}
	}
	return &KeyRetentionWatch{ERP: erp, longest: longest, observe: observe, log: log}
}

// CreateInvoice implements ERP.
func (w *KeyRetentionWatch) CreateInvoice(ctx context.Context, token, key string, body []byte) erpapi.Exchange {
	x := w.ERP.CreateInvoice(ctx, token, key, body)
	if kept, told := keyKept(x.Header); told {
		w.note(ctx, kept)
	}
	return x
}

func (w *KeyRetentionWatch) note(ctx context.Context, kept time.Duration) {
	w.observe(kept)
	if before := time.Duration(w.lastTold.Swap(int64(kept))); before == kept || kept >= w.longest {
		return
	}
	w.log.ErrorContext(ctx, "the ERP keeps keys for a shorter time than they may be sent here: raise ERP_KEY_RETENTION there, "+
		"or lower TOTAL_TIME or MAX_SOURCE_DELAY here", "erp_keeps", kept, "longest_retry", w.longest)
}

// keyKept reads Idempotency-First-Seen and Idempotency-Expires. An answer without both says nothing: it is none to a
// keyed request, or the reservation is gone already.
func keyKept(header http.Header) (time.Duration, bool) {
	first, err := http.ParseTime(header.Get("Idempotency-First-Seen"))
	if err != nil {
		return 0, false
	}
	expires, err := http.ParseTime(header.Get("Idempotency-Expires"))
	if err != nil {
		return 0, false
	}
	return expires.Sub(first), true
}

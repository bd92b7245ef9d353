package crm

import (
	"context"
	"net/http"
	"time"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

const (
	askTries   = 3
	askPause   = 500 * time.Millisecond
	askPauseTo = 30 * time.Second
	// maxSilent questions in a row without an answer are no longer about one bad row: the ERP is away.
	maxSilent = 3
)

// unanswered: the ERP has no answer to this one question.
func unanswered(format string, args ...any) *problem.Problem {
	return problem.New(problem.Unavailable, "The ERP does not answer: "+format, args...)
}

// ask asks until there is an answer, a few times. An answer is a 200 or 404. What else comes is unavailable, or forbidden
// where asking on is of no use.
func (run *reconcileRun) ask(ctx context.Context, question func() *erpapi.Exchange) error {
	for try := 1; ; try++ {
		x := question()
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case x.Complete && (x.Status == http.StatusOK || x.Status == http.StatusNotFound):
			return nil
		case x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden:
			return problem.New(problem.Forbidden, "The ERP does not accept our token: %s", answerText(x))
		case try == askTries:
			return unanswered("%s", askedText(x))
		}
		wait := min(max(x.RetryAfter, askPause*time.Duration(try)), askPauseTo)
		if err := run.opts.Pause(ctx, wait); err != nil {
			return err
		}
	}
}

func askedText(x *erpapi.Exchange) string {
	if x.Status == 0 {
		return errorText(x.Err)
	}
	return answerText(x)
}

// list asks for one page.
func (run *reconcileRun) list(ctx context.Context, q erpapi.InvoiceQuery) (listing erpapi.InvoiceListing, err error) {
	err = run.ask(ctx, func() *erpapi.Exchange {
		listing = run.erp.ListInvoices(ctx, run.token, q)
		return &listing.Exchange
	})
	if err == nil && listing.Exchange.Status != http.StatusOK {
		err = unanswered("its list of invoices is %s", statusText(&listing.Exchange))
	}
	return listing, err
}

// listWhole is list where a page that can't be taken apart is gone through item by item: its first, and on from there.
func (run *reconcileRun) listWhole(ctx context.Context, q erpapi.InvoiceQuery) (erpapi.InvoiceListing, error) {
	listing, err := run.list(ctx, q)
	if err == nil && !listing.Read && q.Limit != 1 {
		q.Limit = 1
		listing, err = run.list(ctx, q)
	}
	if err == nil && (!listing.Read || !leadsOn(q.Cursor, listing.Next)) {
		err = unanswered("its list of invoices can't be read")
	}
	return listing, err
}

// leadsOn says whether a page's next cursor can be kept, and is not that of the page itself, which would have no end.
func leadsOn(cursor, next string) bool { return next == "" || next != cursor && storable(next) == next }

// listAll goes through every page of a query that has few.
func (run *reconcileRun) listAll(ctx context.Context, q erpapi.InvoiceQuery) (items []erpapi.ListedInvoice, err error) {
	q.Limit = DefaultReconcileBatch
	for {
		listing, err := run.listWhole(ctx, q)
		if err != nil {
			return nil, err
		}
		items = append(items, listing.Items...)
		if q.Cursor = listing.Next; q.Cursor == "" {
			return items, nil
		}
	}
}

// invoiceOf asks what became of a key: its invoice as the ERP lists it, or none. None is authoritative as far as the
// ERP's committed invoices go; a request may still be at work there.
func (run *reconcileRun) invoiceOf(ctx context.Context, key string) (items []erpapi.ListedInvoice, err error) {
	var x erpapi.Exchange
	err = run.ask(ctx, func() *erpapi.Exchange {
		x = run.erp.GetOperation(ctx, run.token, key)
		return &x
	})
	switch {
	case err != nil:
		return nil, err
	case x.Status == http.StatusNotFound && problemType(&x) == problem.NotFound:
		return nil, nil
	case x.Operation == nil || x.Operation.Key != key || x.Operation.Invoice == nil:
		return nil, unanswered("what it says of an operation is not of the documented form")
	}
	items, err = run.listAll(ctx, erpapi.InvoiceQuery{Key: key})
	if err == nil && len(items) == 0 {
		err = unanswered("it knows invoice %s of an operation and does not list it", x.Operation.Invoice.Number)
	}
	return items, err
}

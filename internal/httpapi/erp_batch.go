package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/labstack/echo/v4"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/logctx"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/tracectx"
)

const (
	maxBatch     = 1000     // requests in one batch
	maxBatchBody = 10 << 20 // of them all; of each it is maxBody
	// maxBatchesAtOnce bounds what they hold of the memory. It is enough: so many fill all groups that can be at work.
	maxBatchesAtOnce = 4
)

// issueBatch is issueInvoice for many: what becomes of an item is what would have become of it alone. Only what is wrong
// with the batch itself is told as a problem of the whole.
func (e erp) issueBatch(c echo.Context) error {
	if len(c.Request().Header.Values("Idempotency-Key")) > 0 {
		return problem.New(problem.IdempotencyKeyInvalid, "A batch has no key of its own, each of its items has one (idempotency_key). "+
			"Send it without the header Idempotency-Key.")
	}
	body, err := readJSONBody(c, maxBatchBody)
	if err != nil {
		return err
	}
	items, err := erpapi.CutBatch(body, maxBatch)
	if err != nil {
		return err
	}
	results := e.issueItems(c, items)
	if err := abandoned(c.Request().Context(), results); err != nil {
		return err
	}
	answer, err := e.batchAnswer(c, items, results)
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, answer)
}

// abandoned is the error of a batch whose caller went away before all of it was done; what was done stays done.
func abandoned(ctx context.Context, results []invoice.Result) error {
	err := ctx.Err()
	if errors.Is(err, context.Canceled) && slices.ContainsFunc(results, func(r invoice.Result) bool { return isAbandonment(r.Err) }) {
		return err
	}
	return nil
}

// issueItems gives a result for each item, in their order. One whose very bytes have been answered is answered the same; the others
// that can be read are issued together.
func (e erp) issueItems(c echo.Context, items []erpapi.BatchItem) []invoice.Result {
	results := make([]invoice.Result, len(items))
	var cmds []invoice.Command
	var places []int
	for i, item := range items {
		cmd, err := command(c, item)
		if err != nil {
			results[i].Err = err
			continue
		}
		if r, known := e.invoices.Again(c.Request().Context(), cmd.Tenant, cmd.Key, cmd.Body); known {
			e.metrics.issues.count(r)
			results[i] = r
			continue
		}
		if cmd.Request, err = erpapi.DecodeInvoiceRequest(item.Invoice); err != nil {
			results[i].Err = err
			continue
		}
		cmd.Trace = tracectx.Apart(c.Request().Context(), "issue invoice", cmd.Key.String())
		cmds, places = append(cmds, cmd), append(places, i)
	}
	if len(cmds) == 0 {
		return results
	}
	for i, r := range e.invoices.Issue(c.Request().Context(), cmds) {
		e.metrics.issues.count(r)
		results[places[i]] = r
	}
	return results
}

// command takes an item as issueInvoice takes a request, the key first, up to its decoding.
func command(c echo.Context, item erpapi.BatchItem) (invoice.Command, error) {
	if item.Err != nil {
		return invoice.Command{}, item.Err
	}
	text := ""
	if item.Key != nil {
		text = *item.Key
	}
	key, err := idempotency.KeyOf(text)
	if err != nil {
		return invoice.Command{}, err
	}
	if len(item.Invoice) > maxBody {
		return invoice.Command{}, tooLarge(maxBody)
	}
	who := identity(c)
	return invoice.Command{Tenant: who.Tenant, Caller: who.TokenID, Key: key, Body: invoice.NewBody(item.Invoice)}, nil
}

// batchResult is what a single request's answer says in its status and headers, with the problem if it is one.
type batchResult struct {
	Key        *string    `json:"idempotency_key"`
	Status     int        `json:"status"`
	Replayed   bool       `json:"replayed"`
	FirstSeen  *time.Time `json:"first_seen"`
	ExpiresAt  *time.Time `json:"expires_at"`
	RetryAfter *int64     `json:"retry_after"` // in seconds
	Problem    *document  `json:"problem,omitzero"`
}

// batchAnswer puts the stored documents into the answer as they are: an invoice has the same bytes wherever it is read.
func (e erp) batchAnswer(c echo.Context, items []erpapi.BatchItem, results []invoice.Result) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(`{"results":[`)
	for i, r := range results {
		if i > 0 {
			out.WriteByte(',')
		}
		told, err := json.Marshal(e.batchResult(c, items[i], r), json.Deterministic(true))
		if err != nil {
			return nil, err
		}
		if r.Err != nil {
			out.Write(told)
			continue
		}
		out.Write(bytes.TrimSuffix(told, []byte("}")))
		out.WriteString(`,"invoice":`)
		out.Write(r.Answer.Document)
		out.WriteByte('}')
	}
	out.WriteString(`]}`)
	return out.Bytes(), nil
}

func (e erp) batchResult(c echo.Context, item erpapi.BatchItem, r invoice.Result) batchResult {
	told := batchResult{Key: item.Key, Status: http.StatusCreated, FirstSeen: knownTime(r.FirstSeen), ExpiresAt: knownTime(r.Expires)}
	if r.Err == nil {
		told.Replayed = r.Answer.Replayed
		return told
	}
	ctx := c.Request().Context()
	if item.Key != nil {
		ctx = logctx.WithOperation(ctx, *item.Key)
	}
	p := e.asProblem(ctx, r.Err)
	e.metrics.problem(p.Type)
	doc := toldDocument(p, requestID(c))
	told.Status, told.Problem = doc.Status, &doc
	if p.RetryAfter > 0 {
		seconds := retrySeconds(p.RetryAfter)
		told.RetryAfter = &seconds
	}
	return told
}

func knownTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

package httpapi

import (
	"context"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/idempotency"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/logctx"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/tracectx"
)

// Invoices is what the ERP's routes need of package invoice.
type Invoices interface {
	Issue(ctx context.Context, cmds []invoice.Command) []invoice.Result
	Again(ctx context.Context, tenant string, key idempotency.Key, body invoice.Body) (r invoice.Result, known bool)
	Get(ctx context.Context, tenant string, id uuid.UUID) (document []byte, err error)
	List(ctx context.Context, tenant string, f invoice.Filter, p invoice.Page) (documents [][]byte, next *string, err error)
	Operation(ctx context.Context, tenant, key string) (erpapi.Operation, error)
}

// ERPDeps is what the ERP's HTTP side is made of.
type ERPDeps struct {
	Deps
	Invoices      Invoices
	Registrations Registrations
	Desk          Desk
	TokenDesk     TokenDesk
	// Collectors are shown by /metrics besides the figures of HTTP.
	Collectors []prometheus.Collector
}

// NewERP makes the ERP's handler. It fails if a page or the contract can't be read, or a collector not be registered.
func NewERP(deps ERPDeps) (http.Handler, error) {
	s, err := newServer(deps.Deps, look{short: "erp", service: "invoicebridge ERP", console: erpNav()})
	if err != nil {
		return nil, err
	}
	e := erp{
		server: s, invoices: deps.Invoices, registrations: deps.Registrations, desk: deps.Desk, tokens: deps.TokenDesk,
		batches: &atomic.Int64{},
	}
	for _, collector := range append([]prometheus.Collector{e.metrics.issues.results}, deps.Collectors...) {
		if err := e.metrics.registry.Register(collector); err != nil {
			return nil, err
		}
	}
	e.routes(&pages{server: s, start: erpHome()})
	return e, nil
}

type erp struct {
	*server
	invoices      Invoices
	registrations Registrations
	desk          Desk
	tokens        TokenDesk
	batches       *atomic.Int64 // at work
}

func (e erp) routes(p *pages) {
	e.api(http.MethodPost, "/v1/invoices", auth.MayWrite, e.issueInvoice)
	e.api(http.MethodPost, "/v1/invoices/batch", auth.MayWrite, e.limitAtOnce(limitBatches, e.batches, maxBatchesAtOnce, e.issueBatch))
	e.api(http.MethodGet, "/v1/invoices", auth.MayRead, e.listInvoices)
	e.api(http.MethodGet, "/v1/invoices/:id", auth.MayRead, e.getInvoice)
	e.api(http.MethodGet, "/v1/operations/:key", auth.MayRead, e.getOperation)
	e.adminRoutes()
	e.consolePages()
	e.probes() // /healthz /readyz /metrics
	e.people(p)

	e.public("/openapi.yaml", p.contract)
}

// issueInvoice takes the body last: who may not issue invoices, or brings no key, costs no reading.
func (e erp) issueInvoice(c echo.Context) error {
	who := identity(c)
	key, err := idempotency.ParseKey(c.Request().Header.Values("Idempotency-Key"))
	if err != nil {
		return err
	}
	setContext(logctx.WithOperation(c.Request().Context(), key.String()), c)
	tracectx.Set(c.Request().Context(), tracectx.OperationKey, key.String())
	content, err := readJSONBody(c, maxBody)
	if err != nil {
		return err
	}
	body := invoice.NewBody(content)
	if result, known := e.invoices.Again(c.Request().Context(), who.Tenant, key, body); known {
		return e.tellResult(c, result)
	}
	request, err := erpapi.DecodeInvoiceRequest(content)
	if err != nil {
		return err
	}
	results := e.invoices.Issue(c.Request().Context(), []invoice.Command{
		{Tenant: who.Tenant, Caller: who.TokenID, Key: key, Request: request, Body: body, Trace: tracectx.Of(c.Request().Context())},
	})
	return e.tellResult(c, results[0])
}

// tellResult answers 201 with the document as stored, the first time and on replay.
func (e erp) tellResult(c echo.Context, r invoice.Result) error {
	e.metrics.issues.count(r)
	header := c.Response().Header()
	setTime(header, "Idempotency-First-Seen", r.FirstSeen)
	setTime(header, "Idempotency-Expires", r.Expires)
	if r.Err != nil {
		return r.Err
	}
	tracectx.Set(c.Request().Context(), tracectx.InvoiceNumber, r.Answer.Number)
	header.Set(echo.HeaderLocation, "/v1/invoices/"+r.Answer.InvoiceID.String())
	if r.Answer.Replayed {
		header.Set("Idempotent-Replayed", "true")
	}
	return c.Blob(http.StatusCreated, echo.MIMEApplicationJSON, r.Answer.Document)
}

// setTime sets a header to an IMF-fixdate (RFC 9110, 5.6.7), in whole seconds; an unknown time sets none.
func setTime(header http.Header, name string, t time.Time) {
	if !t.IsZero() {
		header.Set(name, t.UTC().Format(http.TimeFormat))
	}
}

func (e erp) getInvoice(c echo.Context) error {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil || id.String() != c.Param("id") { // one address for one invoice
		return problem.New(problem.NotFound, "There is no invoice with this id.")
	}
	document, err := e.invoices.Get(c.Request().Context(), identity(c).Tenant, id)
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, document)
}

func (e erp) getOperation(c echo.Context) error {
	key, err := pathParam(c, "key")
	if err != nil {
		return err
	}
	ctx := logctx.WithOperation(c.Request().Context(), key)
	setContext(ctx, c)
	operation, err := e.invoices.Operation(ctx, identity(c).Tenant, key)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, operation)
}

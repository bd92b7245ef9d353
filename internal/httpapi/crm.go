package httpapi

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/api"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/logctx"
	"invoicebridge/web"
)

// Orders is what the CRM side's routes need of package crm.
type Orders interface {
	Submit(ctx context.Context, tenant string, channel crm.Channel, orders []crm.Order, opt crm.SubmitOptions) ([]crm.Submission, error)
	GetOrder(ctx context.Context, tenant, source, order string) (crm.OrderDetail, error)
	GetOperation(ctx context.Context, tenant, key string) (crm.Operation, error)
	ListOperations(ctx context.Context, tenant string, f crm.OperationFilter) (page []crm.Operation, next string, err error)
	ListDivergences(ctx context.Context, tenant string, f crm.DivergenceFilter) (page []crm.Divergence, next string, err error)
	OperatorActions
}

// CRMDeps is what the CRM side's HTTP side is made of.
type CRMDeps struct {
	Deps
	Orders Orders
	// Console reads what the console's pages show, and keeps what was refused. Nil: one on Pool that asks no ERP.
	Console *crm.Console
	// Collectors are shown by /metrics besides the figures of HTTP.
	Collectors []prometheus.Collector
}

// NewCRM makes the CRM side's handler. It fails if a page can't be read or a collector can't be registered.
func NewCRM(deps CRMDeps) (http.Handler, error) {
	s, err := newServer(deps.Deps, look{short: "crm", service: "invoicebridge CRM side", console: crmNav()})
	if err != nil {
		return nil, err
	}
	if deps.Console == nil {
		deps.Console = crm.NewConsole(deps.Pool, crm.ConsoleOptions{Logger: deps.Logger})
	}
	h := crmSide{server: s, orders: deps.Orders, console: deps.Console, refusals: newIntakeRefusals()}
	for _, collector := range append([]prometheus.Collector{h.refusals}, deps.Collectors...) {
		if err := h.metrics.registry.Register(collector); err != nil {
			return nil, err
		}
	}
	h.routes(&pages{server: s, start: crmHome()})
	return h, nil
}

type crmSide struct {
	*server
	orders   Orders
	console  *crm.Console
	refusals *prometheus.CounterVec // by problem type
}

func (h crmSide) routes(p *pages) {
	h.api(http.MethodPost, "/v1/orders", auth.MayWrite, h.submitOrders)
	h.api(http.MethodGet, "/v1/orders/:source/:order", auth.MayRead, h.getOrder)
	h.api(http.MethodGet, "/v1/operations", auth.MayRead, h.listOperations)
	h.api(http.MethodGet, "/v1/operations/:key", auth.MayRead, h.getOperation)
	h.api(http.MethodGet, "/v1/divergences", auth.MayRead, h.listDivergences)
	h.adminRoutes()
	h.probes() // /healthz /readyz /metrics
	h.people(p)
	h.consoleAPI()
	h.consolePages()

	h.public("/openapi.yaml", crmContract)
	h.public("/order.schema.json", orderSchema)
}

func crmContract(c echo.Context) error {
	return c.Blob(http.StatusOK, "application/yaml", api.CRMOpenAPI())
}

func orderSchema(c echo.Context) error {
	return c.Blob(http.StatusOK, "application/schema+json", api.OrderSchema())
}

func crmHome() web.Home {
	return web.Home{
		Layout: web.Layout{Title: "Orders in, invoices out"},
		Lead:   "This service takes orders and sees to it that each is invoiced, once, whatever gets lost on the way.",
		Links: []web.Link{
			{Href: "/docs", Text: "API reference", About: "Every request and answer, with examples."},
			{Href: "/openapi.yaml", Text: "openapi.yaml", About: "The contract as a file, OpenAPI 3.1."},
			{Href: "/order.schema.json", Text: "order.schema.json", About: "The form of an order, as JSON Schema."},
			{Href: "/problems", Text: "Problems", About: "What each error means and what to do next."},
			{Href: "/readyz", Text: "Readiness", About: "Whether this instance can do its work right now."},
		},
		Facts: []web.Fact{
			{Heading: "Send it again", Text: "The same order may come any number of times, from anybody: it makes one operation."},
			{Heading: "The newest version wins", Text: "A change before the invoice is asked for changes the request; one after it is reported to a person."},
			{Heading: "2xx means stored", Text: "Once an order is answered with success, it survives whatever happens next."},
		},
	}
}

func (h crmSide) getOrder(c echo.Context) error {
	source, err := pathParam(c, "source")
	if err != nil {
		return err
	}
	order, err := pathParam(c, "order")
	if err != nil {
		return err
	}
	detail, err := h.orders.GetOrder(c.Request().Context(), identity(c).Tenant, source, order)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, detail)
}

func (h crmSide) getOperation(c echo.Context) error {
	key, err := pathParam(c, "key")
	if err != nil {
		return err
	}
	ctx := logctx.WithOperation(c.Request().Context(), key)
	setContext(ctx, c)
	operation, err := h.orders.GetOperation(ctx, identity(c).Tenant, key)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, operation)
}

func (h crmSide) listOperations(c echo.Context) error {
	values, err := query(c, "status", "limit", "cursor")
	if err != nil {
		return err
	}
	asked, err := pageOf(values)
	if err != nil {
		return err
	}
	items, next, err := h.orders.ListOperations(c.Request().Context(), identity(c).Tenant, crm.OperationFilter{
		Status: crm.OperationStatus(values.Get("status")), Limit: asked.Limit, Cursor: asked.Cursor,
	})
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, newListPage(items, next))
}

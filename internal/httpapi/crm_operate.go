package httpapi

import (
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/logctx"
	"invoicebridge/internal/problem"
)

// What people do by hand. Every route of it needs the permission to operate, and a reason, which goes into the audit.

// replayOperation answers with the operation as it stands once it is queued.
func (h crmSide) replayOperation(c echo.Context) error {
	var body reasonBody
	key, err := h.operateRequest(c, &body)
	if err != nil {
		return err
	}
	operation, err := h.orders.Replay(c.Request().Context(), identity(c).Tenant, key, by(c, body.Reason))
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, operation)
}

// reviseOperation answers with the new operation.
func (h crmSide) reviseOperation(c echo.Context) error {
	var body struct {
		Reason  string         `json:"reason"`
		Request jsontext.Value `json:"request"`
	}
	key, err := h.operateRequest(c, &body)
	if err != nil {
		return err
	}
	request, err := erpapi.DecodeInvoiceRequest(body.Request)
	if err != nil {
		return within("/request", err)
	}
	operation, err := h.orders.Revise(c.Request().Context(), identity(c).Tenant, key, request, by(c, body.Reason))
	if err != nil {
		return within("/request", err)
	}
	c.Response().Header().Set(echo.HeaderLocation, "/v1/operations/"+url.PathEscape(operation.Key))
	return writeJSON(c, http.StatusCreated, operation)
}

// within puts the pointers of what is wrong with a member in front of that member's own.
func within(member string, err error) error {
	p := problem.As(err)
	if p == nil || len(p.Errors) == 0 {
		return err
	}
	told := *p
	told.Errors = make([]problem.FieldError, len(p.Errors))
	for i, e := range p.Errors {
		told.Errors[i] = problem.FieldError{Pointer: member + e.Pointer, Detail: e.Detail}
	}
	return &told
}

func (h crmSide) operateRequest(c echo.Context, body any) (key string, err error) {
	if key, err = pathParam(c, "key"); err != nil {
		return "", err
	}
	setContext(logctx.WithOperation(c.Request().Context(), key), c)
	return key, readBody(c, body)
}

func (h crmSide) listDivergences(c echo.Context) error {
	values, err := query(c, "kind", "status", "limit", "cursor")
	if err != nil {
		return err
	}
	asked, err := pageOf(values)
	if err != nil {
		return err
	}
	filter := crm.DivergenceFilter{Kind: crm.DivergenceKind(values.Get("kind")), Limit: asked.Limit, Cursor: asked.Cursor}
	switch values.Get("status") {
	case "", "all":
	case "open":
		filter.Resolved, filter.Accepted = new(false), new(false)
	case "accepted":
		filter.Resolved, filter.Accepted = new(false), new(true)
	case "resolved":
		filter.Resolved = new(true)
	default:
		return problem.New(problem.MalformedRequest, "The parameter status must be open, accepted, resolved or all.")
	}
	items, next, err := h.orders.ListDivergences(c.Request().Context(), identity(c).Tenant, filter)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, newListPage(items, next))
}

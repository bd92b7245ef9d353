package httpapi

import (
	"bytes"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/labstack/echo/v4"

	"invoicebridge/internal/invoice"
	"invoicebridge/internal/problem"
)

func (e erp) listInvoices(c echo.Context) error {
	values, err := query(c, "source", "order", "role", "key", "number", "status", "created_from", "created_to", "limit", "cursor")
	if err != nil {
		return err
	}
	filter, err := invoiceFilter(values)
	if err != nil {
		return err
	}
	page, err := pageOf(values)
	if err != nil {
		return err
	}
	documents, next, err := e.invoices.List(c.Request().Context(), identity(c).Tenant, filter, page)
	if err != nil {
		return err
	}
	body, err := invoicePage(documents, next)
	if err != nil {
		return err
	}
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, body)
}

func invoiceFilter(values url.Values) (f invoice.Filter, err error) {
	f = invoice.Filter{
		Source: values.Get("source"), Order: values.Get("order"), Role: values.Get("role"),
		Key: values.Get("key"), Number: values.Get("number"), Status: values.Get("status"),
	}
	if f.CreatedFrom, err = timeParam(values, "created_from"); err != nil {
		return f, err
	}
	f.CreatedTo, err = timeParam(values, "created_to")
	return f, err
}

func timeParam(values url.Values, name string) (time.Time, error) {
	if !values.Has(name) {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, values.Get(name))
	if err != nil {
		return t, problem.New(problem.MalformedRequest, "The parameter %s must be a time such as 2026-03-02T00:00:00Z (RFC 3339).", name)
	}
	return t, nil
}

// pageOf leaves it to the service which limits are allowed, save that there be a number.
func pageOf(values url.Values) (invoice.Page, error) {
	page := invoice.Page{Cursor: values.Get("cursor")}
	if !values.Has("limit") {
		return page, nil
	}
	limit, err := strconv.Atoi(values.Get("limit"))
	if err != nil || limit < 1 || limit > 200 {
		return page, problem.New(problem.MalformedRequest, "The parameter limit must be a whole number from 1 to 200.")
	}
	page.Limit = limit
	return page, nil
}

// invoicePage puts documents into a page as they are: an invoice has the same bytes wherever it is read.
func invoicePage(documents [][]byte, next *string) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(`{"items":[`)
	for i, d := range documents {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(d)
	}
	cursor, err := json.Marshal(next)
	if err != nil {
		return nil, err
	}
	out.WriteString(`],"next_cursor":`)
	out.Write(cursor)
	out.WriteByte('}')
	return out.Bytes(), nil
}

// writeJSON answers with v.
func writeJSON(c echo.Context, status int, v any) error {
	body, err := json.Marshal(v, json.Deterministic(true), jsontext.EscapeForHTML(false))
	if err != nil {
		return err
	}
	return c.Blob(status, echo.MIMEApplicationJSON, body)
}

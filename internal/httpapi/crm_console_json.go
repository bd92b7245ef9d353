package httpapi

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/crm"
)

// consoleAPI registers what machines can read of what the console shows.
func (h crmSide) consoleAPI() {
	h.api(http.MethodGet, "/admin/v1/dashboard", auth.MayOperate, h.getDashboard)
	h.api(http.MethodGet, "/admin/v1/intake", auth.MayOperate, h.listRefusals)
	h.api(http.MethodGet, "/admin/v1/intake/:id", auth.MayOperate, h.getRefusal)
	h.api(http.MethodGet, "/admin/v1/imports", auth.MayOperate, h.listImports)
	h.api(http.MethodGet, "/admin/v1/imports/:id", auth.MayOperate, h.getImport)
	h.api(http.MethodGet, "/admin/v1/audit", auth.MayOperate, h.listAuditEntries)
}

func (h crmSide) getDashboard(c echo.Context) error {
	if _, err := query(c); err != nil {
		return err
	}
	d, err := h.console.Dashboard(c.Request().Context(), identity(c).Tenant)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, d)
}

// listed is one page of a list of the console.
type listed[T any] struct {
	Items          []T     `json:"items"`
	NextCursor     *string `json:"next_cursor"`
	PreviousCursor *string `json:"previous_cursor"`
}

func writePage[T any](c echo.Context, p crm.Page[T]) error {
	page := listed[T]{Items: p.Items}
	if p.Next != "" {
		page.NextCursor = &p.Next
	}
	if p.Previous != "" {
		page.PreviousCursor = &p.Previous
	}
	return writeJSON(c, http.StatusOK, page)
}

func (h crmSide) listRefusals(c echo.Context) error {
	values, err := query(c, refusalParams()...)
	if err != nil {
		return err
	}
	f, err := refusalFilter(values)
	if err != nil {
		return err
	}
	page, err := h.console.ListRefusals(c.Request().Context(), identity(c).Tenant, f)
	if err != nil {
		return err
	}
	return writePage(c, page)
}

func (h crmSide) getRefusal(c echo.Context) error {
	id, err := numberParam(c)
	if err != nil {
		return err
	}
	r, err := h.console.GetRefusal(c.Request().Context(), identity(c).Tenant, id)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, r)
}

func (h crmSide) listImports(c echo.Context) error {
	values, err := query(c, "sort", "limit", "cursor")
	if err != nil {
		return err
	}
	q, err := pageQuery(values)
	if err != nil {
		return err
	}
	page, err := h.console.ListImports(c.Request().Context(), identity(c).Tenant, q)
	if err != nil {
		return err
	}
	return writePage(c, page)
}

func (h crmSide) getImport(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	i, err := h.console.GetImport(c.Request().Context(), identity(c).Tenant, id)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, i)
}

func (h crmSide) listAuditEntries(c echo.Context) error {
	values, err := query(c, crmAuditParams()...)
	if err != nil {
		return err
	}
	f, err := crmAuditFilter(values)
	if err != nil {
		return err
	}
	page, err := h.console.ListAudit(c.Request().Context(), identity(c).Tenant, f)
	if err != nil {
		return err
	}
	return writePage(c, page)
}

package httpapi

import (
	"context"
	"net/http"
	"net/url"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/problem"
)

// Registrations is what the routes of administration need of package invoice.
type Registrations interface {
	ListRegistrations(ctx context.Context, tenant string, f invoice.RegistrationFilter, p invoice.Page) (items []erpapi.RegistrationDetail, next *string, err error)
	GetRegistration(ctx context.Context, tenant string, id uuid.UUID) (erpapi.RegistrationDetail, error)
	ReplayRegistration(ctx context.Context, tenant string, id uuid.UUID, by audit.By) error
	ResolveRegistration(ctx context.Context, tenant string, id uuid.UUID, r invoice.Resolution, by audit.By) error
	AcknowledgeRegistration(ctx context.Context, tenant string, id uuid.UUID, by audit.By) error
}

func (e erp) listRegistrations(c echo.Context) error {
	values, err := query(c, "status", "target", "flagged", "limit", "cursor")
	if err != nil {
		return err
	}
	filter, err := registrationFilter(values)
	if err != nil {
		return err
	}
	page, err := pageOf(values)
	if err != nil {
		return err
	}
	items, next, err := e.registrations.ListRegistrations(c.Request().Context(), identity(c).Tenant, filter, page)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, erpapi.RegistrationPage{Items: items, NextCursor: next})
}

func registrationFilter(values url.Values) (invoice.RegistrationFilter, error) {
	f := invoice.RegistrationFilter{Status: values.Get("status"), Target: values.Get("target")}
	switch values.Get("flagged") {
	case "":
	case "true":
		f.Flagged = new(true)
	case "false":
		f.Flagged = new(false)
	default:
		return f, problem.New(problem.MalformedRequest, "The parameter flagged must be true or false.")
	}
	return f, nil
}

func (e erp) getRegistration(c echo.Context) error {
	id, err := registrationID(c)
	if err != nil {
		return err
	}
	return e.tellRegistration(c, id)
}

func (e erp) tellRegistration(c echo.Context, id uuid.UUID) error {
	detail, err := e.registrations.GetRegistration(c.Request().Context(), identity(c).Tenant, id)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, detail)
}

// registrationID: one address for one registration.
func registrationID(c echo.Context) (uuid.UUID, error) {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil || id.String() != c.Param("id") {
		return id, problem.New(problem.NotFound, "There is no registration with this id.")
	}
	return id, nil
}

// replayRegistration answers with the registration as it stands once it is queued.
func (e erp) replayRegistration(c echo.Context) error {
	return e.changeRegistration(c, e.registrations.ReplayRegistration)
}

func (e erp) acknowledgeRegistration(c echo.Context) error {
	return e.changeRegistration(c, e.registrations.AcknowledgeRegistration)
}

// changeRegistration answers with the registration as it stands after a change that needs nothing but a reason.
func (e erp) changeRegistration(c echo.Context, change func(ctx context.Context, tenant string, id uuid.UUID, by audit.By) error) error {
	var body struct {
		Reason string `json:"reason"`
	}
	id, err := registrationRequest(c, &body)
	if err != nil {
		return err
	}
	who := identity(c)
	err = change(c.Request().Context(), who.Tenant, id, by(c, body.Reason))
	if err != nil {
		return err
	}
	return e.tellRegistration(c, id)
}

func (e erp) resolveRegistration(c echo.Context) error {
	var body struct {
		Status    string `json:"status"`
		Reference string `json:"reference"`
		Reason    string `json:"reason"`
		Evidence  string `json:"evidence"`
	}
	id, err := registrationRequest(c, &body)
	if err != nil {
		return err
	}
	who := identity(c)
	resolution := invoice.Resolution{Status: invoice.RegistrationStatus(body.Status), Reference: body.Reference, Evidence: body.Evidence}
	err = e.registrations.ResolveRegistration(c.Request().Context(), who.Tenant, id, resolution, by(c, body.Reason))
	if err != nil {
		return err
	}
	return e.tellRegistration(c, id)
}

func registrationRequest(c echo.Context, body any) (uuid.UUID, error) {
	id, err := registrationID(c)
	if err != nil {
		return id, err
	}
	raw, err := readJSONBody(c, maxBody)
	if err != nil {
		return id, err
	}
	return id, erpapi.DecodeStrict(raw, body)
}

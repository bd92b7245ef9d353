package httpapi

import (
	"context"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/logctx"
)

// viewOperation answers with an operation, what can be done about it, and why the rest can't.
func (h crmSide) viewOperation(c echo.Context) error {
	key, err := pathParam(c, "key")
	if err != nil {
		return err
	}
	ctx := logctx.WithOperation(c.Request().Context(), key)
	setContext(ctx, c)
	view, err := h.orders.ViewOperation(ctx, identity(c).Tenant, key)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, view)
}

func (h crmSide) cancelOperation(c echo.Context) error {
	var body reasonBody
	key, err := h.operateRequest(c, &body)
	if err != nil {
		return err
	}
	operation, err := h.orders.Cancel(c.Request().Context(), identity(c).Tenant, key, by(c, body.Reason))
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, operation)
}

// submitByHand takes in one order that a person has written. What it answers is what POST /v1/orders does.
func (h crmSide) submitByHand(c echo.Context) error {
	var body struct {
		Reason string         `json:"reason"`
		Order  jsontext.Value `json:"order"`
	}
	if err := readBody(c, &body); err != nil {
		return err
	}
	var order crm.Order
	if err := decodeOrder(body.Order, &order); err != nil {
		return within("/order", err)
	}
	submission, err := h.orders.SubmitByHand(c.Request().Context(), identity(c).Tenant, order, by(c, body.Reason))
	if err != nil {
		return within("/order", err)
	}
	c.Response().Header().Set(echo.HeaderLocation, orderPath(submission))
	return writeJSON(c, submittedStatus([]crm.Submission{submission}), submission)
}

// toldResolution is a resolution with what the caller can do about it.
type toldResolution struct {
	crm.Resolution
	Actions []crm.ActionState `json:"actions"`
}

func tellResolution(c echo.Context, r crm.Resolution) toldResolution {
	return toldResolution{Resolution: r, Actions: r.Actions(by(c, ""))}
}

func (h crmSide) proposeResolution(c echo.Context) error {
	var body struct {
		Verdict  crm.Verdict         `json:"verdict"`
		Invoice  *erpapi.InvoiceLink `json:"invoice"`
		Evidence string              `json:"evidence"`
		Reason   string              `json:"reason"`
	}
	key, err := h.operateRequest(c, &body)
	if err != nil {
		return err
	}
	proposal := crm.Proposal{Verdict: body.Verdict, Invoice: body.Invoice, Evidence: body.Evidence}
	resolution, err := h.orders.ProposeResolution(c.Request().Context(), identity(c).Tenant, key, proposal, by(c, body.Reason))
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, adminPath("resolutions", resolution.ID.String()))
	return writeJSON(c, http.StatusCreated, tellResolution(c, resolution))
}

func (h crmSide) getResolution(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	resolution, err := h.orders.GetResolution(c.Request().Context(), identity(c).Tenant, id)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, tellResolution(c, resolution))
}

func (h crmSide) listResolutions(c echo.Context) error {
	values, err := query(c, "status", "limit", "cursor")
	if err != nil {
		return err
	}
	asked, err := pageQuery(values)
	if err != nil {
		return err
	}
	found, err := h.orders.ListResolutions(c.Request().Context(), identity(c).Tenant, crm.ResolutionFilter{
		Status: crm.ResolutionStatus(values.Get("status")), PageQuery: asked,
	})
	if err != nil {
		return err
	}
	told := make([]toldResolution, len(found.Items))
	for i, r := range found.Items {
		told[i] = tellResolution(c, r)
	}
	return writeJSON(c, http.StatusOK, newListPage(told, found.Next))
}

type decideResolution func(ctx context.Context, tenant string, id uuid.UUID, by audit.By) (crm.Resolution, error)

func (h crmSide) decideResolution(decide decideResolution) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := pathID(c)
		if err != nil {
			return err
		}
		var body reasonBody
		if err := readBody(c, &body); err != nil {
			return err
		}
		resolution, err := decide(c.Request().Context(), identity(c).Tenant, id, by(c, body.Reason))
		if err != nil {
			return err
		}
		return writeJSON(c, http.StatusOK, tellResolution(c, resolution))
	}
}

package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/problem"
)

// toldSource is a source with what can be done with it.
type toldSource struct {
	crm.Source
	Actions []crm.ActionState `json:"actions"`
}

func (h crmSide) listSources(c echo.Context) error {
	if _, err := query(c); err != nil {
		return err
	}
	sources, err := h.orders.ListSources(c.Request().Context(), identity(c).Tenant)
	if err != nil {
		return err
	}
	told := make([]toldSource, len(sources))
	for i, source := range sources {
		told[i] = toldSource{Source: source, Actions: source.Actions()}
	}
	return writeJSON(c, http.StatusOK, newListPage(told, ""))
}

func sourceRequest(c echo.Context) (source, reason string, err error) {
	if source, err = pathParam(c, "source"); err != nil {
		return "", "", err
	}
	var body reasonBody
	err = readBody(c, &body)
	return source, body.Reason, err
}

func (h crmSide) pauseSource(c echo.Context) error {
	source, reason, err := sourceRequest(c)
	if err != nil {
		return err
	}
	pause, err := h.orders.PauseSource(c.Request().Context(), identity(c).Tenant, source, by(c, reason))
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, pause)
}

func (h crmSide) resumeSource(c echo.Context) error {
	source, reason, err := sourceRequest(c)
	if err != nil {
		return err
	}
	queued, err := h.orders.ResumeSource(c.Request().Context(), identity(c).Tenant, source, by(c, reason))
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, struct {
		Queued int `json:"queued"`
	}{queued})
}

func (h crmSide) listReconciliations(c echo.Context) error {
	values, err := query(c, "limit", "cursor")
	if err != nil {
		return err
	}
	asked, err := pageQuery(values)
	if err != nil {
		return err
	}
	found, err := h.orders.ListReconciliations(c.Request().Context(), identity(c).Tenant, asked)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, newListPage(found.Items, found.Next))
}

// startReconciliation answers when the run is on record; its job works it off.
func (h crmSide) startReconciliation(c echo.Context) error {
	var body reasonBody
	if err := readBody(c, &body); err != nil {
		return err
	}
	run, err := h.orders.StartReconciliation(c.Request().Context(), identity(c).Tenant, by(c, body.Reason))
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusAccepted, run)
}

type decideDivergence func(ctx context.Context, tenant string, id int64, by audit.By) (crm.Divergence, error)

func (h crmSide) decideDivergence(decide decideDivergence) echo.HandlerFunc {
	return func(c echo.Context) error {
		id, err := strconv.ParseInt(c.Param("id"), 10, 64)
		if err != nil {
			return problem.New(problem.NotFound, "There is no divergence of this id.")
		}
		var body reasonBody
		if err := readBody(c, &body); err != nil {
			return err
		}
		divergence, err := decide(c.Request().Context(), identity(c).Tenant, id, by(c, body.Reason))
		if err != nil {
			return err
		}
		return writeJSON(c, http.StatusOK, divergence)
	}
}

package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/problem"
)

// toldReplayFilter is crm.ReplayFilter in JSON. What is left out does not narrow.
type toldReplayFilter struct {
	Status        crm.OperationStatus `json:"status,omitzero"`
	Reason        crm.Reason          `json:"reason,omitzero"`
	Source        string              `json:"source,omitzero"`
	MinAgeSeconds int64               `json:"min_age_seconds,omitzero"`
}

func (f toldReplayFilter) filter() (crm.ReplayFilter, error) {
	const most = 100 * 365 * 24 * 60 * 60
	if f.MinAgeSeconds < 0 || f.MinAgeSeconds > most {
		return crm.ReplayFilter{}, problem.New(problem.MalformedRequest, "min_age_seconds must be from 0 to %d.", most)
	}
	return crm.ReplayFilter{Status: f.Status, Reason: f.Reason, Source: f.Source, MinAge: time.Duration(f.MinAgeSeconds) * time.Second}, nil
}

// toldReplay is crm.ReplayRun in JSON.
type toldReplay struct {
	ID         uuid.UUID         `json:"id"`
	Filter     toldReplayFilter  `json:"filter"`
	Matched    int64             `json:"matched"`
	Total      int               `json:"total"`
	Waiting    int               `json:"waiting"`
	Queued     int               `json:"queued"`
	Refused    int               `json:"refused"`
	Stopped    int               `json:"stopped"`
	StartedBy  string            `json:"started_by"`
	Reason     string            `json:"reason"`
	StartedAt  time.Time         `json:"started_at"`
	FinishedAt *time.Time        `json:"finished_at"`
	StoppedBy  string            `json:"stopped_by,omitzero"`
	Actions    []crm.ActionState `json:"actions"`
}

func tellReplay(r crm.ReplayRun) toldReplay {
	return toldReplay{
		ID: r.ID, Matched: r.Matched, Total: r.Total, Waiting: r.Waiting(), Queued: r.Queued, Refused: r.Refused, Stopped: r.Stopped,
		Filter: toldReplayFilter{
			Status: r.Filter.Status, Reason: r.Filter.Reason, Source: r.Filter.Source, MinAgeSeconds: int64(r.Filter.MinAge / time.Second),
		},
		StartedBy: r.By.Actor, Reason: r.By.Reason, StartedAt: r.StartedAt, FinishedAt: r.FinishedAt, StoppedBy: r.StoppedBy, Actions: r.Actions(),
	}
}

// toldReplayItem is crm.ReplayItem in JSON.
type toldReplayItem struct {
	Position int32               `json:"position"`
	Key      string              `json:"key"`
	Result   crm.ReplayResult    `json:"result"`
	Detail   string              `json:"detail,omitzero"`
	DoneAt   *time.Time          `json:"done_at"`
	Status   crm.OperationStatus `json:"status"`
}

// previewReplays answers how many operations match, and shows some of them.
func (h crmSide) previewReplays(c echo.Context) error {
	values, err := query(c, "status", "reason", "source", "min_age_seconds")
	if err != nil {
		return err
	}
	asked := toldReplayFilter{
		Status: crm.OperationStatus(values.Get("status")), Reason: crm.Reason(values.Get("reason")), Source: values.Get("source"),
	}
	if text := values.Get("min_age_seconds"); text != "" {
		if asked.MinAgeSeconds, err = strconv.ParseInt(text, 10, 64); err != nil {
			return problem.New(problem.MalformedRequest, "min_age_seconds must be a whole number.")
		}
	}
	f, err := asked.filter()
	if err != nil {
		return err
	}
	preview, err := h.orders.PreviewReplays(c.Request().Context(), identity(c).Tenant, f)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, struct {
		Count  int64           `json:"count"`
		Limit  int             `json:"limit"`
		Sample []crm.Operation `json:"sample"`
	}{preview.Count, crm.MaxReplays, preview.Sample})
}

func (h crmSide) startReplays(c echo.Context) error {
	var body struct {
		Filter        toldReplayFilter `json:"filter"`
		ExpectedCount *int64           `json:"expected_count"`
		Reason        string           `json:"reason"`
	}
	if err := readBody(c, &body); err != nil {
		return err
	}
	if body.ExpectedCount == nil {
		return problem.New(problem.MalformedRequest, "expected_count is required: the count that the preview showed.")
	}
	f, err := body.Filter.filter()
	if err != nil {
		return err
	}
	run, err := h.orders.StartReplays(c.Request().Context(), identity(c).Tenant, f, *body.ExpectedCount, by(c, body.Reason))
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderLocation, adminPath("replays", run.ID.String()))
	return writeJSON(c, http.StatusCreated, tellReplay(run))
}

func (h crmSide) listReplays(c echo.Context) error {
	values, err := query(c, "limit", "cursor")
	if err != nil {
		return err
	}
	asked, err := pageQuery(values)
	if err != nil {
		return err
	}
	found, err := h.orders.ListReplayRuns(c.Request().Context(), identity(c).Tenant, asked)
	if err != nil {
		return err
	}
	told := make([]toldReplay, len(found.Items))
	for i, run := range found.Items {
		told[i] = tellReplay(run)
	}
	return writeJSON(c, http.StatusOK, newListPage(told, found.Next))
}

// getReplay answers with a run and one page of its operations.
func (h crmSide) getReplay(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	values, err := query(c, "result", "limit", "cursor")
	if err != nil {
		return err
	}
	asked, err := pageQuery(values)
	if err != nil {
		return err
	}
	ctx, tenant := c.Request().Context(), identity(c).Tenant
	run, err := h.orders.GetReplayRun(ctx, tenant, id)
	if err != nil {
		return err
	}
	found, err := h.orders.ListReplayItems(ctx, tenant, id, crm.ReplayItemFilter{Result: crm.ReplayResult(values.Get("result")), PageQuery: asked})
	if err != nil {
		return err
	}
	told := make([]toldReplayItem, len(found.Items))
	for i, item := range found.Items {
		told[i] = toldReplayItem(item)
	}
	return writeJSON(c, http.StatusOK, struct {
		toldReplay
		listPage[toldReplayItem]
	}{tellReplay(run), newListPage(told, found.Next)})
}

func (h crmSide) stopReplay(c echo.Context) error {
	id, err := pathID(c)
	if err != nil {
		return err
	}
	var body reasonBody
	if err := readBody(c, &body); err != nil {
		return err
	}
	run, err := h.orders.StopReplayRun(c.Request().Context(), identity(c).Tenant, id, by(c, body.Reason))
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, tellReplay(run))
}

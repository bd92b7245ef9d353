package httpapi

import (
	"context"
	"net/http"
	"net/url"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

// OperatorActions is what people do by hand on the CRM side, as its endpoints and pages need it of package crm.
type OperatorActions interface {
	ViewOperation(ctx context.Context, tenant, key string) (crm.OperationView, error)
	Replay(ctx context.Context, tenant, key string, by audit.By) (crm.Operation, error)
	Cancel(ctx context.Context, tenant, key string, by audit.By) (crm.Operation, error)
	Revise(ctx context.Context, tenant, key string, request *erpapi.InvoiceRequest, by audit.By) (crm.Operation, error)
	SubmitByHand(ctx context.Context, tenant string, order crm.Order, by audit.By) (crm.Submission, error)

	ProposeResolution(ctx context.Context, tenant, key string, p crm.Proposal, by audit.By) (crm.Resolution, error)
	ApproveResolution(ctx context.Context, tenant string, id uuid.UUID, by audit.By) (crm.Resolution, error)
	DeclineResolution(ctx context.Context, tenant string, id uuid.UUID, by audit.By) (crm.Resolution, error)
	WithdrawResolution(ctx context.Context, tenant string, id uuid.UUID, by audit.By) (crm.Resolution, error)
	GetResolution(ctx context.Context, tenant string, id uuid.UUID) (crm.Resolution, error)
	ListResolutions(ctx context.Context, tenant string, f crm.ResolutionFilter) (crm.Page[crm.Resolution], error)

	PreviewReplays(ctx context.Context, tenant string, f crm.ReplayFilter) (crm.ReplayPreview, error)
	StartReplays(ctx context.Context, tenant string, f crm.ReplayFilter, expected int64, by audit.By) (crm.ReplayRun, error)
	StopReplayRun(ctx context.Context, tenant string, id uuid.UUID, by audit.By) (crm.ReplayRun, error)
	GetReplayRun(ctx context.Context, tenant string, id uuid.UUID) (crm.ReplayRun, error)
	ListReplayRuns(ctx context.Context, tenant string, q crm.PageQuery) (crm.Page[crm.ReplayRun], error)
	ListReplayItems(ctx context.Context, tenant string, id uuid.UUID, f crm.ReplayItemFilter) (crm.Page[crm.ReplayItem], error)

	ListSources(ctx context.Context, tenant string) ([]crm.Source, error)
	PauseSource(ctx context.Context, tenant, source string, by audit.By) (crm.SourcePause, error)
	ResumeSource(ctx context.Context, tenant, source string, by audit.By) (queued int, err error)

	StartReconciliation(ctx context.Context, tenant string, by audit.By) (crm.ReconciliationRun, error)
	ListReconciliations(ctx context.Context, tenant string, q crm.PageQuery) (crm.Page[crm.ReconciliationRun], error)
	AcceptDivergence(ctx context.Context, tenant string, id int64, by audit.By) (crm.Divergence, error)
	CloseDivergence(ctx context.Context, tenant string, id int64, by audit.By) (crm.Divergence, error)
}

// adminRoutes are the operator's actions for programs. What changes something wants a reason, which goes into the audit.
func (h crmSide) adminRoutes() {
	get := func(path string, handler echo.HandlerFunc) {
		h.api(http.MethodGet, "/admin/v1/"+path, auth.MayOperate, handler)
	}
	post := func(path string, handler echo.HandlerFunc) {
		h.api(http.MethodPost, "/admin/v1/"+path, auth.MayOperate, handler)
	}
	get("operations/:key", h.viewOperation)
	post("operations/:key/replay", h.replayOperation)
	post("operations/:key/cancel", h.cancelOperation)
	post("operations/:key/revise", h.reviseOperation)
	post("operations/:key/resolutions", h.proposeResolution)
	get("resolutions", h.listResolutions)
	get("resolutions/:id", h.getResolution)
	post("resolutions/:id/approve", h.decideResolution(h.orders.ApproveResolution))
	post("resolutions/:id/decline", h.decideResolution(h.orders.DeclineResolution))
	post("resolutions/:id/withdraw", h.decideResolution(h.orders.WithdrawResolution))
	get("replays/preview", h.previewReplays)
	get("replays", h.listReplays)
	post("replays", h.startReplays)
	get("replays/:id", h.getReplay)
	post("replays/:id/stop", h.stopReplay)
	get("sources", h.listSources)
	post("sources/:source/pause", h.pauseSource)
	post("sources/:source/resume", h.resumeSource)
	get("reconciliations", h.listReconciliations)
	post("reconciliations", h.startReconciliation)
	post("divergences/:id/accept", h.decideDivergence(h.orders.AcceptDivergence))
	post("divergences/:id/close", h.decideDivergence(h.orders.CloseDivergence))
	h.api(http.MethodPost, "/admin/v1/orders", auth.MayWrite, h.submitByHand)
}

// reasonBody is the body of an action that needs nothing but a reason.
type reasonBody struct {
	Reason string `json:"reason"`
}

// readBody reads the body of an action.
func readBody(c echo.Context, body any) error {
	raw, err := readJSONBody(c, 2*maxBody) // a request of the largest size has room in it
	if err != nil {
		return err
	}
	return erpapi.DecodeStrict(raw, body)
}

// listPage is one page of a list.
type listPage[T any] struct {
	Items      []T     `json:"items"`
	NextCursor *string `json:"next_cursor"`
}

func newListPage[T any](items []T, next string) listPage[T] {
	page := listPage[T]{Items: items}
	if next != "" {
		page.NextCursor = &next
	}
	return page
}

// pathID is a path's UUID. What is none is the id of nothing.
func pathID(c echo.Context) (uuid.UUID, error) {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil {
		return uuid.Nil, problem.New(problem.NotFound, "There is nothing of this id.")
	}
	return id, nil
}

func adminPath(parts ...string) string {
	path := "/admin/v1"
	for _, part := range parts {
		path += "/" + url.PathEscape(part)
	}
	return path
}

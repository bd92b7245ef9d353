package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/problem"
)

// Desk is what people and programs that look after the ERP need of package invoice.
type Desk interface {
	Search(ctx context.Context, tenant string, f invoice.Search, w invoice.Walk) (invoice.Found, error)
	Sums(ctx context.Context, tenant string, f invoice.Search) (invoice.Sums, error)
	Sources(ctx context.Context, tenant string) ([]string, error)
	Each(ctx context.Context, tenant string, f invoice.Search, do func(*erpapi.Invoice) error) error
	Story(ctx context.Context, tenant string, id uuid.UUID) (invoice.Story, error)

	ListConflicts(ctx context.Context, tenant, key string, w invoice.Walk) (invoice.Walked[invoice.Conflict], error)
	ListAudit(ctx context.Context, tenant string, f invoice.AuditFilter, w invoice.Walk) (invoice.Walked[invoice.AuditEntry], error)

	WalkRegistrations(ctx context.Context, tenant string, f invoice.RegistrationFilter, w invoice.Walk) (invoice.FoundRegistrations, error)
	CountRegistrations(ctx context.Context, tenant string) ([]invoice.RegistrationCount, error)
	RegistrationActions(ctx context.Context, tenant string, id uuid.UUID) ([]invoice.ActionState, error)

	Targets(ctx context.Context, tenant string) ([]invoice.TargetView, error)
	Target(ctx context.Context, tenant, id string) (invoice.TargetView, error)
	PauseTarget(ctx context.Context, tenant, id string, by audit.By) error
	ResumeTarget(ctx context.Context, tenant, id string, by audit.By) (queued int, err error)

	SearchDivergences(ctx context.Context, tenant string, f invoice.DivergenceFilter, w invoice.Walk) (invoice.Walked[invoice.DivergenceView], error)
	GetDivergence(ctx context.Context, tenant string, id int64) (invoice.DivergenceView, error)
	AcceptDivergence(ctx context.Context, tenant string, id int64, by audit.By) error
	CloseDivergence(ctx context.Context, tenant string, id int64, by audit.By) error

	StartReconciliation(ctx context.Context, tenant string, by audit.By) (invoice.ReconciliationRun, error)
	Reconciliations(ctx context.Context, tenant string, limit int) ([]invoice.ReconciliationRun, error)
}

// TokenDesk is what the pages and routes about tokens need of package auth.
type TokenDesk interface {
	ListTokens(ctx context.Context, tenant string) ([]auth.Token, error)
	CreateTokenByHand(ctx context.Context, tenant string, role auth.Role, label string, by audit.By) (id, text string, err error)
	RevokeTokenByHand(ctx context.Context, tenant, id string, by audit.By) (auth.Token, error)
}

// adminRoutes are the ERP's administration for programs. What changes something wants a reason, which goes into the audit.
func (e erp) adminRoutes() {
	const base = "/admin/v1/"
	get := func(path string, h echo.HandlerFunc) { e.api(http.MethodGet, base+path, auth.MayOperate, h) }
	post := func(path string, h echo.HandlerFunc) { e.api(http.MethodPost, base+path, auth.MayOperate, h) }
	get("registrations", e.listRegistrations)
	get("registrations/:id", e.getRegistration)
	post("registrations/:id/replay", e.replayRegistration)
	post("registrations/:id/resolve", e.resolveRegistration)
	post("registrations/:id/acknowledge", e.acknowledgeRegistration)
	get("targets", e.listTargets)
	post("targets/:id/pause", e.pauseTarget)
	post("targets/:id/resume", e.resumeTarget)
	get("divergences", e.listDivergences)
	post("divergences/:id/accept", e.acceptDivergence)
	post("divergences/:id/close", e.closeDivergence)
	get("reconciliations", e.listReconciliations)
	post("reconciliations", e.startReconciliation)
	get("conflicts", e.listConflicts)
	get("audit", e.listAudit)
	e.api(http.MethodGet, base+"tokens", auth.MayAdminister, e.listTokens)
	e.api(http.MethodPost, base+"tokens/:id/revoke", auth.MayAdminister, e.revokeToken)
}

func (e erp) listTargets(c echo.Context) error {
	if _, err := query(c); err != nil {
		return err
	}
	targets, err := e.desk.Targets(c.Request().Context(), identity(c).Tenant)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, newListPage(allOf(targets, targetJSON), ""))
}

func (e erp) pauseTarget(c echo.Context) error {
	id, body, err := targetRequest(c)
	if err != nil {
		return err
	}
	if err := e.desk.PauseTarget(c.Request().Context(), identity(c).Tenant, id, by(c, body.Reason)); err != nil {
		return err
	}
	return e.tellTarget(c, id)
}

func (e erp) resumeTarget(c echo.Context) error {
	id, body, err := targetRequest(c)
	if err != nil {
		return err
	}
	if _, err := e.desk.ResumeTarget(c.Request().Context(), identity(c).Tenant, id, by(c, body.Reason)); err != nil {
		return err
	}
	return e.tellTarget(c, id)
}

func targetRequest(c echo.Context) (id string, body reasonBody, err error) {
	if id, err = pathParam(c, "id"); err != nil {
		return "", body, err
	}
	return id, body, readBody(c, &body)
}

func (e erp) tellTarget(c echo.Context, id string) error {
	view, err := e.desk.Target(c.Request().Context(), identity(c).Tenant, id)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, targetJSON(view))
}

func (e erp) listDivergences(c echo.Context) error {
	values, err := query(c, "kind", "state", "limit", "cursor")
	if err != nil {
		return err
	}
	asked, err := pageOf(values)
	if err != nil {
		return err
	}
	filter := invoice.DivergenceFilter{Kind: values.Get("kind"), State: invoice.DivergenceState(values.Get("state"))}
	found, err := e.desk.SearchDivergences(c.Request().Context(), identity(c).Tenant, filter, onward(asked))
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, newListPage(allOf(found.Items, divergenceJSON), found.Next))
}

func (e erp) acceptDivergence(c echo.Context) error {
	return e.decideDivergence(c, e.desk.AcceptDivergence)
}

func (e erp) closeDivergence(c echo.Context) error {
	return e.decideDivergence(c, e.desk.CloseDivergence)
}

func (e erp) decideDivergence(c echo.Context, decide func(ctx context.Context, tenant string, id int64, by audit.By) error) error {
	id, err := serialParam(c)
	if err != nil {
		return err
	}
	var body reasonBody
	if err := readBody(c, &body); err != nil {
		return err
	}
	if err := decide(c.Request().Context(), identity(c).Tenant, id, by(c, body.Reason)); err != nil {
		return err
	}
	d, err := e.desk.GetDivergence(c.Request().Context(), identity(c).Tenant, id)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, divergenceJSON(d))
}

// onward is the walk of who only goes on: the page that follows a cursor.
func onward(p invoice.Page) invoice.Walk { return invoice.Walk{Limit: p.Limit, After: p.Cursor} }

// serialParam is a number in the path: one address for one thing.
func serialParam(c echo.Context) (int64, error) {
	id, err := strconv.ParseInt(c.Param("id"), 10, 64)
	if err != nil || strconv.FormatInt(id, 10) != c.Param("id") {
		return 0, problem.New(problem.NotFound, "There is nothing with this id.")
	}
	return id, nil
}

func (e erp) listReconciliations(c echo.Context) error {
	values, err := query(c, "limit")
	if err != nil {
		return err
	}
	asked, err := pageOf(values)
	if err != nil {
		return err
	}
	runs, err := e.desk.Reconciliations(c.Request().Context(), identity(c).Tenant, asked.Limit)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, newListPage(allOf(runs, runJSON), ""))
}

// startReconciliation answers when the run is on record; its job works it off.
func (e erp) startReconciliation(c echo.Context) error {
	var body reasonBody
	if err := readBody(c, &body); err != nil {
		return err
	}
	run, err := e.desk.StartReconciliation(c.Request().Context(), identity(c).Tenant, by(c, body.Reason))
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusAccepted, runJSON(run))
}

func (e erp) listConflicts(c echo.Context) error {
	values, err := query(c, "key", "limit", "cursor")
	if err != nil {
		return err
	}
	asked, err := pageOf(values)
	if err != nil {
		return err
	}
	found, err := e.desk.ListConflicts(c.Request().Context(), identity(c).Tenant, values.Get("key"), onward(asked))
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, newListPage(allOf(found.Items, conflictJSON), found.Next))
}

func (e erp) listAudit(c echo.Context) error {
	values, err := query(c, "actor", "action", "subject", "from", "to", "limit", "cursor")
	if err != nil {
		return err
	}
	filter, err := erpAuditFilter(values)
	if err != nil {
		return err
	}
	asked, err := pageOf(values)
	if err != nil {
		return err
	}
	found, err := e.desk.ListAudit(c.Request().Context(), identity(c).Tenant, filter, onward(asked))
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, newListPage(allOf(found.Items, auditJSON), found.Next))
}

func (e erp) listTokens(c echo.Context) error {
	if _, err := query(c); err != nil {
		return err
	}
	tokens, err := e.tokens.ListTokens(c.Request().Context(), identity(c).Tenant)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, newListPage(allOf(tokens, tokenJSON), ""))
}

func (e erp) revokeToken(c echo.Context) error {
	var body reasonBody
	if err := readBody(c, &body); err != nil {
		return err
	}
	token, err := e.tokens.RevokeTokenByHand(c.Request().Context(), identity(c).Tenant, c.Param("id"), by(c, body.Reason))
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, tokenJSON(token))
}

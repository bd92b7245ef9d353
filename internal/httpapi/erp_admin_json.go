package httpapi

import (
	"net/url"
	"time"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/target"
	"invoicebridge/web"
)

// allOf makes the items of a list; a list of nothing is a list, not null.
func allOf[F, T any](from []F, item func(F) T) []T {
	items := make([]T, len(from))
	for i := range from {
		items[i] = item(from[i])
	}
	return items
}

type toldPause struct {
	PausedAt time.Time `json:"paused_at"`
	PausedBy string    `json:"paused_by"`
	Reason   string    `json:"reason"`
}

// toldTarget is a target without its secret, which is nowhere.
type toldTarget struct {
	ID                 string                `json:"id"`
	Kind               string                `json:"kind"`
	BaseURL            string                `json:"base_url"`
	CredentialRef      string                `json:"credential_ref"`
	KeyWindowSeconds   *int64                `json:"key_window_seconds"`
	Locatable          bool                  `json:"locatable"`
	AbsentAfterSeconds *int64                `json:"absent_after_seconds"`
	CreatedAt          time.Time             `json:"created_at"`
	DisabledAt         *time.Time            `json:"disabled_at"`
	Pause              *toldPause            `json:"pause"`
	Pending            int64                 `json:"pending"`
	Processing         int64                 `json:"processing"`
	Unknown            int64                 `json:"unknown"`
	Flagged            int64                 `json:"flagged"`
	OldestAt           *time.Time            `json:"oldest_at"`
	Actions            []invoice.ActionState `json:"actions"`
}

func targetJSON(t invoice.TargetView) toldTarget {
	told := toldTarget{
		ID: t.ID, Kind: t.Kind, BaseURL: t.BaseURL, CredentialRef: t.CredentialRef, Locatable: t.Can.Locatable,
		KeyWindowSeconds: seconds(t.Can.Keyed, t.Can.KeyWindow), AbsentAfterSeconds: seconds(t.Can.AbsenceAuthoritative, t.Can.SettleTime),
		CreatedAt: t.CreatedAt, DisabledAt: t.DisabledAt, Pending: t.Pending, Processing: t.Processing, Unknown: t.Unknown,
		Flagged: t.Flagged, OldestAt: t.OldestAt, Actions: t.Actions(),
	}
	if t.Pause != nil {
		told.Pause = &toldPause{t.Pause.At, t.Pause.By, t.Pause.Reason}
	}
	return told
}

func seconds(given bool, d time.Duration) *int64 {
	if !given {
		return nil
	}
	return new(int64(d / time.Second))
}

// capable says what a target can do, for people.
func capable(c target.Capabilities) (can []string) {
	if c.Keyed {
		can = append(can, "honours our key for "+web.Duration(c.KeyWindow))
	}
	if c.Locatable {
		can = append(can, "can be asked")
	}
	if c.AbsenceAuthoritative {
		can = append(can, "its absence is believed after "+web.Duration(c.SettleTime))
	}
	return can
}

type toldDivergence struct {
	ID             int64                   `json:"id"`
	Kind           string                  `json:"kind"`
	State          invoice.DivergenceState `json:"state"`
	Owner          string                  `json:"owner"`
	Registration   string                  `json:"registration"`
	Invoice        *erpapi.InvoiceLink     `json:"invoice"`
	Source         string                  `json:"source"`
	Order          string                  `json:"order"`
	Key            string                  `json:"key"`
	Ours           string                  `json:"ours"`
	Theirs         string                  `json:"theirs"`
	Action         string                  `json:"action"`
	FirstSeenAt    time.Time               `json:"first_seen_at"`
	LastSeenAt     time.Time               `json:"last_seen_at"`
	AcceptedAt     *time.Time              `json:"accepted_at"`
	ResolvedAt     *time.Time              `json:"resolved_at"`
	DecidedBy      string                  `json:"decided_by"`
	DecisionReason string                  `json:"decision_reason"`
	Actions        []invoice.ActionState   `json:"actions"`
}

func divergenceJSON(d invoice.DivergenceView) toldDivergence {
	return toldDivergence{
		ID: d.ID, Kind: d.Kind, State: d.State(), Owner: d.Owner, Registration: d.Subject, Invoice: d.Invoice, Source: d.Source,
		Order: d.Order, Key: d.Key, Ours: d.Ours, Theirs: d.Theirs, Action: d.Action, FirstSeenAt: d.FirstSeenAt,
		LastSeenAt: d.LastSeenAt, AcceptedAt: d.AcceptedAt, ResolvedAt: d.ResolvedAt, DecidedBy: d.DecidedBy,
		DecisionReason: d.DecisionReason, Actions: d.Actions(),
	}
}

type toldRun struct {
	ID          string     `json:"id"`
	WindowFrom  time.Time  `json:"window_from"`
	WindowTo    time.Time  `json:"window_to"`
	Phase       string     `json:"phase"`
	Compared    int64      `json:"compared"`
	Found       int64      `json:"found"`
	Repaired    int64      `json:"repaired"`
	RequestedBy string     `json:"requested_by"`
	StartedAt   time.Time  `json:"started_at"`
	UpdatedAt   time.Time  `json:"updated_at"`
	FinishedAt  *time.Time `json:"finished_at"`
}

func runJSON(r invoice.ReconciliationRun) toldRun {
	return toldRun{
		ID: r.ID.String(), WindowFrom: r.WindowFrom, WindowTo: r.WindowTo, Phase: r.Phase, Compared: r.Compared, Found: r.Found,
		Repaired: r.Repaired, RequestedBy: r.RequestedBy, StartedAt: r.StartedAt, UpdatedAt: r.UpdatedAt, FinishedAt: r.FinishedAt,
	}
}

type toldConflict struct {
	ID          int64               `json:"id"`
	OccurredAt  time.Time           `json:"occurred_at"`
	Key         string              `json:"key"`
	Caller      string              `json:"caller"`
	CallerLabel string              `json:"caller_label"`
	Differences []string            `json:"differences"`
	Invoice     *erpapi.InvoiceLink `json:"invoice"`
}

func conflictJSON(k invoice.Conflict) toldConflict {
	told := toldConflict{
		ID: k.ID, OccurredAt: k.OccurredAt, Key: k.Key, Caller: k.Caller, CallerLabel: k.CallerLabel, Differences: k.Differences,
	}
	if k.InvoiceID != nil {
		told.Invoice = &erpapi.InvoiceLink{ID: k.InvoiceID.String(), Number: k.InvoiceNumber}
	}
	return told
}

type toldAudit struct {
	ID         int64     `json:"id"`
	OccurredAt time.Time `json:"occurred_at"`
	Actor      string    `json:"actor"`
	Action     string    `json:"action"`
	Subject    string    `json:"subject"`
	Reason     string    `json:"reason"`
	Via        string    `json:"via"`
	Address    string    `json:"address"`
	RequestID  string    `json:"request_id"`
}

func auditJSON(a invoice.AuditEntry) toldAudit { return toldAudit(a) }

// erpAuditFilter reads what the audit is narrowed by. from and to are times, or days, whole ones in UTC.
func erpAuditFilter(values url.Values) (f invoice.AuditFilter, err error) {
	f = invoice.AuditFilter{Actor: values.Get("actor"), Action: values.Get("action"), Subject: values.Get("subject")}
	f.From, f.To, err = timeRange(values)
	return f, err
}

// toldToken is a token without its secret.
type toldToken struct {
	ID        string     `json:"id"`
	Role      string     `json:"role"`
	Label     string     `json:"label"`
	Owner     string     `json:"owner"`
	CreatedAt time.Time  `json:"created_at"`
	RevokedAt *time.Time `json:"revoked_at"`
}

func tokenJSON(t auth.Token) toldToken {
	told := toldToken{ID: t.ID, Role: string(t.Role), Label: t.Label, CreatedAt: t.CreatedAt.UTC(), RevokedAt: t.RevokedAt}
	if t.RevokedAt != nil {
		told.RevokedAt = new(t.RevokedAt.UTC())
	}
	if t.Owner != nil {
		told.Owner = t.Owner.Name
	}
	return told
}

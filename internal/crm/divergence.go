package crm

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/problem"
)

// DivergenceKind is what a comparison of the CRM side's books with the ERP's can find.
type DivergenceKind string

// The kinds of divergence between the CRM side and the ERP.
const (
	// DivergenceMissingInERP: succeeded here, or unknown with nothing on its way any more, and the ERP has no invoice.
	DivergenceMissingInERP DivergenceKind = "missing_in_erp"
	// DivergenceMissingInCRM: the ERP has an invoice whose key and business claim nobody here knows.
	DivergenceMissingInCRM DivergenceKind = "missing_in_crm"
	// DivergenceAmountDiffers: the invoice was made from other content than was frozen here, or does not add up.
	DivergenceAmountDiffers DivergenceKind = "amount_differs"
	// DivergenceCustomerDiffers: the invoice names another customer than was frozen here.
	DivergenceCustomerDiffers DivergenceKind = "customer_differs"
	// DivergenceNumberDiffers: the invoice has another number, or id, than is known here.
	DivergenceNumberDiffers DivergenceKind = "number_differs"
	// DivergenceStatusDiffers: invoiced there, failed or cancelled here; or the ERP's document can't be read.
	DivergenceStatusDiffers DivergenceKind = "status_differs"
	// DivergenceUnknownResolved: open here, invoiced there; the invoice's number was taken over.
	DivergenceUnknownResolved DivergenceKind = "unknown_resolved"
	// DivergenceOrderCredited: an invoice of the order was credited. It is not missing, and nothing is to be sent.
	DivergenceOrderCredited DivergenceKind = "order_credited"
)

// DivergenceKinds are all kinds that the CRM side finds.
func DivergenceKinds() []DivergenceKind {
	return []DivergenceKind{
		DivergenceMissingInERP, DivergenceMissingInCRM, DivergenceAmountDiffers, DivergenceCustomerDiffers,
		DivergenceNumberDiffers, DivergenceStatusDiffers, DivergenceUnknownResolved, DivergenceOrderCredited,
	}
}

// Divergence is one difference between the two sides' books, from the run that found it first to the one that no
// longer did.
type Divergence struct {
	ID      int64          `json:"id"`
	Kind    DivergenceKind `json:"kind"`
	Owner   string         `json:"owner"`   // whose books have to be put right: crm or erp
	Subject string         `json:"subject"` // an operation's key, or source/order
	Source  string         `json:"source,omitzero"`
	Order   string         `json:"order,omitzero"`
	Key     string         `json:"key,omitzero"`
	Ours    string         `json:"ours"`
	Theirs  string         `json:"theirs"`
	Action  string         `json:"action"` // what was done, or has to be
	// FirstSeenAt and LastSeenAt are when runs saw it; ResolvedAt is when it was put right, or was seen to be gone.
	FirstSeenAt time.Time  `json:"first_seen_at"`
	LastSeenAt  time.Time  `json:"last_seen_at"`
	ResolvedAt  *time.Time `json:"resolved_at"`
	// AcceptedAt is when a person said that it is all right as it is; it does not count as open then.
	AcceptedAt *time.Time `json:"accepted_at"`
	// DecidedBy and DecisionReason are of who accepted or closed it by hand.
	DecidedBy      string `json:"decided_by,omitzero"`
	DecisionReason string `json:"decision_reason,omitzero"`
	// AgeSeconds is how long it has been, or was, open.
	AgeSeconds int64 `json:"age_seconds"`
}

// DivergenceFilter says which divergences a list has.
type DivergenceFilter struct {
	Kind     DivergenceKind // "" is any
	Resolved *bool          // nil is both
	Accepted *bool          // nil is both; false with Resolved false are those that count as open
	Limit    int            // 1 to MaxPageLimit; 0 is DefaultPageLimit
	Cursor   string         // of the page before; "" is the first page
}

// ListDivergences gives one page of a tenant's divergences, the newest first, and the cursor of the next page; "" after
// the last. A wrong filter is malformed-request, a tenant that is not there not-found.
func (s *Service) ListDivergences(ctx context.Context, tenant string, f DivergenceFilter) (page []Divergence, next string, err error) {
	arg, err := f.params(tenant)
	if err != nil {
		return nil, "", err
	}
	limit := int(arg.MaxItems)
	arg.MaxItems++ // one more tells whether there is a next page
	rows, err := crmdb.New(s.db.Of(tenant)).DivergenceListPage(ctx, arg)
	if err != nil {
		return nil, "", fmt.Errorf("list divergences: %w", err)
	}
	if len(rows) == 0 {
		if _, err := crmdb.New(s.db.Of(tenant)).TenantGet(ctx, tenant); errors.Is(err, pgx.ErrNoRows) {
			return nil, "", problem.New(problem.NotFound, "There is no tenant %q.", excerpt(tenant))
		} else if err != nil {
			return nil, "", fmt.Errorf("list divergences: %w", err)
		}
	}
	if len(rows) > limit {
		rows = rows[:limit]
		next = divergenceCursor(rows[limit-1].FirstSeenAt, rows[limit-1].ID)
	}
	page = make([]Divergence, len(rows))
	for i, r := range rows {
		page[i] = divergence(r)
	}
	return page, next, nil
}

func (f DivergenceFilter) params(tenant string) (crmdb.DivergenceListPageParams, error) {
	arg := crmdb.DivergenceListPageParams{TenantID: tenant, Resolved: f.Resolved, Accepted: f.Accepted, MaxItems: DefaultPageLimit}
	switch {
	case f.Limit < 0 || f.Limit > MaxPageLimit:
		return arg, problem.New(problem.MalformedRequest, "limit must be from 1 to %d.", MaxPageLimit)
	case f.Limit > 0:
		arg.MaxItems = int32(f.Limit)
	}
	if f.Kind != "" {
		if !slices.Contains(DivergenceKinds(), f.Kind) {
			return arg, problem.New(problem.MalformedRequest, "%q is not a kind of divergence.", excerpt(string(f.Kind)))
		}
		kind := string(f.Kind)
		arg.Kind = &kind
	}
	if f.Cursor == "" {
		return arg, nil
	}
	at, id, err := parseDivergenceCursor(f.Cursor)
	if err != nil {
		return arg, problem.New(problem.MalformedRequest, "cursor is not one that was given out.")
	}
	arg.AfterFirstSeenAt, arg.AfterID = &at, &id
	return arg, nil
}

// divergenceCursor has the id as well: what one batch of a run finds shares its time.
func divergenceCursor(at time.Time, id int64) string {
	return base64.RawURLEncoding.EncodeToString([]byte(at.UTC().Format(time.RFC3339Nano) + " " + strconv.FormatInt(id, 10)))
}

func parseDivergenceCursor(cursor string) (time.Time, int64, error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return time.Time{}, 0, err
	}
	atText, idText, _ := strings.Cut(string(text), " ")
	at, err := time.Parse(time.RFC3339Nano, atText)
	if err != nil {
		return time.Time{}, 0, err
	}
	id, err := strconv.ParseInt(idText, 10, 64)
	return at, id, err
}

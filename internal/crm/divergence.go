package crm

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	if f.Kind != "" && !slices.Contains(DivergenceKinds(), f.Kind) {
		return nil, "", problem.New(problem.MalformedRequest, "%q is not a kind of divergence.", excerpt(string(f.Kind)))
	}
	queries := crmdb.New(s.db.Of(tenant))
	found, err := searchDivergences(ctx, queries, tenant, DivergenceSearch{
		Kind: f.Kind, Resolved: f.Resolved, Accepted: f.Accepted, PageQuery: PageQuery{Limit: f.Limit, Cursor: f.Cursor},
	})
	if err != nil {
		return nil, "", listError("divergences", err)
	}
	if len(found.Items) == 0 {
		if _, err := queries.TenantGet(ctx, tenant); errors.Is(err, pgx.ErrNoRows) {
			return nil, "", problem.New(problem.NotFound, "There is no tenant %q.", excerpt(tenant))
		} else if err != nil {
			return nil, "", fmt.Errorf("list divergences: %w", err)
		}
	}
	return found.Items, found.Next, nil
}

package crm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/problem"
)

// How much of the history around an operation its page has.
const (
	maxVersions = 100
	maxAround   = 50
)

// OperationDetail is what only the page of one operation shows, beside the operation.
type OperationDetail struct {
	// Request is the frozen request, set out in lines; what its retention has left of it if it was minimised.
	Request     string
	RequestHash []byte
	MinimisedAt *time.Time
	LeaseUntil  *time.Time
	// Supersedes and SupersededBy are keys; "" where there is none.
	Supersedes, SupersededBy string
	// Versions are the messages that brought the order, the newest first.
	Versions []OrderVersion
	// Divergences are reconciliation's findings about it, the newest first.
	Divergences []Divergence
	// Audit is what people did with it, the newest first.
	Audit []AuditEntry

	frozen frozenRequest
}

// OrderVersion is one message that brought an order, and what it led to.
type OrderVersion struct {
	ReceivedAt time.Time
	Version    int64
	Channel    Channel
	MessageID  string
	Outcome    Outcome
	Detail     string
}

// OperationDetail gives what stands around an operation, in one view of the data. The problem is not-found if the tenant
// has none of that key.
func (c *Console) OperationDetail(ctx context.Context, tenant, key string) (d OperationDetail, err error) {
	err = readConsole(ctx, c.db.Of(tenant), func(queries *crmdb.Queries) error {
		row, err := queries.OperationGetDetail(ctx, tenant, key)
		if err != nil {
			return err
		}
		d = OperationDetail{
			Request: indented(row.Request), RequestHash: row.RequestHash, MinimisedAt: row.MinimisedAt, LeaseUntil: row.LeaseUntil,
			Supersedes: row.SupersedesKey, SupersededBy: row.SupersededByKey,
			frozen: frozenRequest{text: row.Request, hash: hash(row.RequestHash), minimised: row.MinimisedAt != nil},
		}
		if d.Versions, err = listVersions(ctx, queries, tenant, row.Source, row.OrderID); err != nil {
			return err
		}
		divergences, err := searchDivergences(ctx, queries, tenant, DivergenceSearch{Key: key, PageQuery: PageQuery{Limit: maxAround}})
		if err != nil {
			return err
		}
		audit, err := listAudit(ctx, queries, tenant, AuditFilter{Subject: key, PageQuery: PageQuery{Limit: maxAround}})
		d.Divergences, d.Audit = divergences.Items, audit.Items
		return err
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return d, problem.New(problem.NotFound, "There is no operation with this key.")
	}
	return d, listError("what stands around an operation", err)
}

// OrderHistory is what stands around an order, beside its operations.
type OrderHistory struct {
	Versions    []OrderVersion // the newest first
	Divergences []Divergence   // the newest first
}

// OrderHistory gives the messages that brought an order, and reconciliation's findings about it; both are empty for an order
// that is not there. The ids are compared as Submit compares them.
func (c *Console) OrderHistory(ctx context.Context, tenant, source, order string) (h OrderHistory, err error) {
	source, order = normaliseID(source), normaliseID(order)
	err = readConsole(ctx, c.db.Of(tenant), func(queries *crmdb.Queries) error {
		if h.Versions, err = listVersions(ctx, queries, tenant, source, order); err != nil {
			return err
		}
		found, err := searchDivergences(ctx, queries, tenant, DivergenceSearch{
			Source: source, Order: order, PageQuery: PageQuery{Limit: maxAround},
		})
		h.Divergences = found.Items
		return err
	})
	return h, listError("what stands around an order", err)
}

func listVersions(ctx context.Context, queries *crmdb.Queries, tenant, source, order string) ([]OrderVersion, error) {
	rows, err := queries.InboxMessageListOfOrder(ctx, crmdb.InboxMessageListOfOrderParams{
		TenantID: tenant, Source: source, OrderID: order, MaxItems: maxVersions,
	})
	if err != nil {
		return nil, fmt.Errorf("list an order's versions: %w", err)
	}
	versions := make([]OrderVersion, len(rows))
	for i, r := range rows {
		versions[i] = OrderVersion{
			ReceivedAt: r.ReceivedAt, Version: r.Version, Channel: Channel(r.Channel), MessageID: r.MessageID,
			Outcome: Outcome(r.Outcome), Detail: r.Detail,
		}
	}
	return versions, nil
}

// indented is JSON in lines, or the bytes as they are if they are none.
func indented(text []byte) string {
	value := jsontext.Value(text).Clone()
	if err := value.Indent(jsontext.WithIndent("  ")); err != nil {
		return string(text)
	}
	return string(value)
}

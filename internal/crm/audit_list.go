package crm

import (
	"context"
	"time"

	"invoicebridge/internal/crmdb"
)

// AuditEntry is one thing that somebody changed by hand.
type AuditEntry struct {
	ID         int64     `json:"id"`
	OccurredAt time.Time `json:"occurred_at"`
	Actor      string    `json:"actor"`
	Action     string    `json:"action"`
	Subject    string    `json:"subject"`
	Reason     string    `json:"reason"`
	Via        string    `json:"via"`
	Address    string    `json:"address,omitzero"`
	RequestID  string    `json:"request_id,omitzero"`
}

// AuditFilter says which entries a list has. What is left empty does not narrow; texts are compared whole.
type AuditFilter struct {
	Actor, Action, Subject string
	From, To               time.Time // inclusive; exclusive
	PageQuery
}

// ListAudit gives one page of a tenant's audit, the newest first unless OldestFirst. A wrong filter is malformed-request.
func (c *Console) ListAudit(ctx context.Context, tenant string, f AuditFilter) (found Page[AuditEntry], err error) {
	if err := storableFilter(f.Actor, f.Action, f.Subject); err != nil {
		return found, err
	}
	err = readConsole(ctx, c.db.Of(tenant), func(queries *crmdb.Queries) error {
		found, err = listAudit(ctx, queries, tenant, f)
		return err
	})
	return found, listError("audit", err)
}

func listAudit(ctx context.Context, queries *crmdb.Queries, tenant string, f AuditFilter) (Page[AuditEntry], error) {
	rows, err := auditPaging(ctx, queries, crmdb.AuditEntryListNewestParams{
		TenantID: tenant, Actor: orNil(f.Actor), Action: orNil(f.Action), Subject: orNil(f.Subject),
		OccurredFrom: timeOrNil(f.From), OccurredTo: timeOrNil(f.To),
	}).page(f.PageQuery)
	return pageOf(rows, err, func(r crmdb.AuditEntryListNewestRow) AuditEntry {
		return AuditEntry{
			ID: r.ID, OccurredAt: r.OccurredAt, Actor: r.Actor, Action: r.Action, Subject: r.Subject, Reason: r.Reason,
			Via: r.Via, Address: r.Address, RequestID: r.RequestID,
		}
	})
}

func auditPaging(ctx context.Context, queries *crmdb.Queries, arg crmdb.AuditEntryListNewestParams) paging[crmdb.AuditEntryListNewestRow, int64] {
	return paging[crmdb.AuditEntryListNewestRow, int64]{
		newest: func(beyond *place[int64], limit int32) ([]crmdb.AuditEntryListNewestRow, error) {
			arg.BeyondAt, arg.BeyondID = beyond.parts()
			arg.MaxItems = limit
			return queries.AuditEntryListNewest(ctx, arg)
		},
		oldest: func(beyond *place[int64], limit int32) (told []crmdb.AuditEntryListNewestRow, err error) {
			arg.BeyondAt, arg.BeyondID = beyond.parts()
			arg.MaxItems = limit
			rows, err := queries.AuditEntryListOldest(ctx, crmdb.AuditEntryListOldestParams(arg))
			for _, r := range rows {
				told = append(told, crmdb.AuditEntryListNewestRow(r))
			}
			return told, err
		},
		at:    func(r crmdb.AuditEntryListNewestRow) place[int64] { return place[int64]{r.OccurredAt, r.ID} },
		parse: parseNumber, format: formatNumber,
	}
}

package crm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/logctx"
	"invoicebridge/internal/problem"
)

// Bounds of what is kept of what was refused. However much comes in, a tenant's refusals take at most
// RefusalsPerHour * (MaxRefusedBody + what they say) an hour; those beyond are counted.
const (
	MaxRefusedBody   = 8 << 10
	RefusalsPerHour  = 200
	maxRefusalErrors = 20
	refusalTimeLimit = 2 * time.Second
)

// Refusal is a call with orders that was turned away, or that had orders which were.
type Refusal struct {
	Tenant  string
	Channel Channel
	// Source and Order are those of the refused order, where there is one and it could be read.
	Source, Order string
	Problem       *problem.Problem
	// Body is what came; the beginning of it is kept. Size is how long the whole of it was; 0 is as long as Body.
	Body []byte
	Size int64
	By   audit.By
	// Import is the import that refused rows of its file, or zero.
	Import uuid.UUID
}

// RecordRefusal writes down what was refused, in a transaction of its own, so that an operator can see it. It is for after
// the refusal, whose caller must not notice: it takes at most 2 seconds, goes on when ctx has ended, and failing is
// only logged.
func (c *Console) RecordRefusal(ctx context.Context, r Refusal) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refusalTimeLimit)
	defer cancel()
	kept, err := crmdb.New(c.db.Of(r.Tenant)).IntakeRefusalInsert(ctx, r.params())
	switch {
	case err != nil:
		c.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "a refusal could not be written down",
			slog.String(logctx.TenantKey, r.Tenant), slog.String("problem", string(r.Problem.Type)), slog.Any("error", err))
	case !kept:
		c.opts.Logger.LogAttrs(ctx, slog.LevelDebug, "a refusal was counted, not kept: too many in this hour",
			slog.String(logctx.TenantKey, r.Tenant))
	}
}

func (r Refusal) params() crmdb.IntakeRefusalInsertParams {
	p := crmdb.IntakeRefusalInsertParams{
		TenantID: r.Tenant, Channel: string(r.Channel), Source: keptID(r.Source, maxSourceLength), OrderID: keptID(r.Order, maxOrderLength),
		Problem: string(r.Problem.Type), Detail: storable(r.Problem.Detail), Pointers: []string{}, Reasons: []string{},
		Body: r.Body[:min(len(r.Body), MaxRefusedBody)], BodySize: max(r.Size, int64(len(r.Body))),
		RequestID: r.By.RequestID, Actor: storable(r.By.Actor), Most: RefusalsPerHour,
	}
	if p.Body == nil {
		p.Body = []byte{}
	}
	for _, e := range r.Problem.Errors[:min(len(r.Problem.Errors), maxRefusalErrors)] {
		p.Pointers, p.Reasons = append(p.Pointers, storable(e.Pointer)), append(p.Reasons, storable(e.Detail))
	}
	if r.Import != uuid.Nil {
		p.ImportID = &r.Import
	}
	return p
}

// cutText is text that a column can hold, cut where it is longer than such a text can be.
func cutText(text string, most int) string {
	text = storable(text)
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}

// keptID is as much of an id as its column holds, in the one text that ids are looked for in.
func keptID(id string, most int) string { return normaliseID(cutText(normaliseID(id), most)) }

// IntakeRefusal is what was kept of a refusal.
type IntakeRefusal struct {
	ID         int64                `json:"id"`
	ReceivedAt time.Time            `json:"received_at"`
	Channel    Channel              `json:"channel"`
	Source     string               `json:"source,omitzero"`
	Order      string               `json:"order,omitzero"`
	Problem    problem.Type         `json:"problem"`
	Detail     string               `json:"detail,omitzero"`
	Errors     []problem.FieldError `json:"errors"`
	// Body is the beginning of what came; only GetRefusal fills it. BodySize is how many bytes the whole of it had.
	Body      string     `json:"body,omitzero"`
	BodySize  int64      `json:"body_size"`
	RequestID string     `json:"request_id,omitzero"`
	Actor     string     `json:"actor,omitzero"`
	ImportID  *uuid.UUID `json:"import_id,omitzero"`
}

// RefusalFilter says which refusals a list has. What is left empty does not narrow.
type RefusalFilter struct {
	Problem       problem.Type
	Channel       Channel
	Source, Order string
	From, To      time.Time // inclusive; exclusive
	PageQuery
}

// ListRefusals gives one page of what was refused, the newest first unless OldestFirst. A wrong filter is malformed-request.
func (c *Console) ListRefusals(ctx context.Context, tenant string, f RefusalFilter) (found Page[IntakeRefusal], err error) {
	if err := storableFilter(string(f.Problem), string(f.Channel), f.Source, f.Order); err != nil {
		return found, err
	}
	arg := crmdb.IntakeRefusalListNewestParams{
		TenantID: tenant, Problem: orNil(string(f.Problem)), Channel: orNil(string(f.Channel)),
		Source: orNil(normaliseID(f.Source)), OrderID: orNil(normaliseID(f.Order)),
		ReceivedFrom: timeOrNil(f.From), ReceivedTo: timeOrNil(f.To),
	}
	err = readConsole(ctx, c.db.Of(tenant), func(queries *crmdb.Queries) error {
		rows, err := refusalPaging(ctx, queries, arg).page(f.PageQuery)
		found, err = pageOf(rows, err, func(r crmdb.IntakeRefusalListNewestRow) IntakeRefusal {
			return refusalRow{
				ID: r.ID, ReceivedAt: r.ReceivedAt, Channel: r.Channel, Source: r.Source, OrderID: r.OrderID, Problem: r.Problem,
				Detail: r.Detail, Pointers: r.Pointers, Reasons: r.Reasons, BodySize: r.BodySize, RequestID: r.RequestID,
				Actor: r.Actor, ImportID: r.ImportID,
			}.refusal()
		})
		return err
	})
	return found, listError("refusals", err)
}

func refusalPaging(ctx context.Context, queries *crmdb.Queries, arg crmdb.IntakeRefusalListNewestParams) paging[crmdb.IntakeRefusalListNewestRow, int64] {
	return paging[crmdb.IntakeRefusalListNewestRow, int64]{
		newest: func(beyond *place[int64], limit int32) ([]crmdb.IntakeRefusalListNewestRow, error) {
			arg.BeyondAt, arg.BeyondID = beyond.parts()
			arg.MaxItems = limit
			return queries.IntakeRefusalListNewest(ctx, arg)
		},
		oldest: func(beyond *place[int64], limit int32) (told []crmdb.IntakeRefusalListNewestRow, err error) {
			arg.BeyondAt, arg.BeyondID = beyond.parts()
			arg.MaxItems = limit
			rows, err := queries.IntakeRefusalListOldest(ctx, crmdb.IntakeRefusalListOldestParams(arg))
			for _, r := range rows {
				told = append(told, crmdb.IntakeRefusalListNewestRow(r))
			}
			return told, err
		},
		at:    func(r crmdb.IntakeRefusalListNewestRow) place[int64] { return place[int64]{r.ReceivedAt, r.ID} },
		parse: parseNumber, format: formatNumber,
	}
}

// refusalRow is a refusal as the query of one gives it.
type refusalRow crmdb.IntakeRefusalGetRow

func (r refusalRow) refusal() IntakeRefusal {
	told := IntakeRefusal{
		ID: r.ID, ReceivedAt: r.ReceivedAt, Channel: Channel(r.Channel), Source: r.Source, Order: r.OrderID,
		Problem: problem.Type(r.Problem), Detail: r.Detail, Errors: make([]problem.FieldError, len(r.Pointers)),
		Body: strings.ToValidUTF8(string(r.Body), "\ufffd"), BodySize: r.BodySize, RequestID: r.RequestID, Actor: r.Actor,
		ImportID: r.ImportID,
	}
	for i := range r.Pointers {
		told.Errors[i] = problem.FieldError{Pointer: r.Pointers[i], Detail: r.Reasons[i]}
	}
	return told
}

// GetRefusal gives one refusal with the beginning of what came; the problem is not-found if the tenant has none of that id.
func (c *Console) GetRefusal(ctx context.Context, tenant string, id int64) (IntakeRefusal, error) {
	row, err := crmdb.New(c.db.Of(tenant)).IntakeRefusalGet(ctx, tenant, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return IntakeRefusal{}, problem.New(problem.NotFound, "There is no such refusal, or it was kept long enough.")
	}
	if err != nil {
		return IntakeRefusal{}, fmt.Errorf("get refusal: %w", err)
	}
	return refusalRow(row).refusal(), nil
}

// FullHour is an hour in which more was refused than is kept.
type FullHour struct {
	Hour    time.Time `json:"hour"`
	Refused int64     `json:"refused"`
}

// ListFullHours gives the hours of the last 24 in which more was refused than is kept, the newest first.
func (c *Console) ListFullHours(ctx context.Context, tenant string) ([]FullHour, error) {
	rows, err := crmdb.New(c.db.Of(tenant)).IntakeRefusalListFullHours(ctx, tenant, RefusalsPerHour)
	if err != nil {
		return nil, fmt.Errorf("list full hours: %w", err)
	}
	hours := make([]FullHour, len(rows))
	for i, r := range rows {
		hours[i] = FullHour(r)
	}
	return hours, nil
}

// storableFilter refuses texts that nothing in the database can have.
func storableFilter(texts ...string) error {
	if slices.ContainsFunc(texts, func(text string) bool { return storable(text) != text }) {
		return problem.New(problem.MalformedRequest, "The filter holds text that nothing here can have.")
	}
	return nil
}

// listError names the list in an error that is no problem.
func listError(what string, err error) error {
	if err == nil || problem.As(err) != nil {
		return err
	}
	return fmt.Errorf("list %s: %w", what, err)
}

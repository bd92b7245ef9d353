package crm

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/problem"
)

// MaxImportRefusals bounds how many of the rows that were not taken are kept with an import; its sums count all.
const MaxImportRefusals = 200

// Import is a file that was imported, with what became of its rows.
type Import struct {
	ID       uuid.UUID `json:"id"`
	File     string    `json:"file"`
	Format   string    `json:"format"`
	KeepGood bool      `json:"keep_good"`
	Actor    string    `json:"actor"`
	// FinishedAt is nil while it runs, and stays so if its process dies.
	StartedAt  time.Time  `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
	// SHA256 is that of the file's bytes, "" if they were not read to their end; Size is how many were read.
	SHA256 string `json:"sha256,omitzero"`
	Size   int64  `json:"size"`
	// Stored says whether anything of it is known to be stored.
	Stored    bool `json:"stored"`
	Rows      int  `json:"rows"`
	BlankRows int  `json:"blank_rows"`
	Orders    int  `json:"orders"`
	// Counts are the rows by outcome, in the order of the outcomes' names.
	Counts []ImportCount `json:"counts"`
	// Refusal says why the file was refused as a whole, Failure why the import could not go to its end.
	Refusal string `json:"refusal,omitzero"`
	Failure string `json:"failure,omitzero"`
	// Refused are the first rows that were not taken; only GetImport fills it.
	Refused []ImportRow `json:"refused,omitempty"`
	// MinimisedAt is when what the rows said was removed (docs/retention.md).
	MinimisedAt *time.Time `json:"minimised_at,omitzero"`
}

// ImportCount is how many rows had one outcome.
type ImportCount struct {
	Outcome string `json:"outcome"`
	Rows    int64  `json:"rows"`
}

// ImportRow is a row that was not taken.
type ImportRow struct {
	Line    int64  `json:"line"` // where it begins in the file, counted from 1
	Order   string `json:"order,omitzero"`
	Outcome string `json:"outcome"`
	Reason  string `json:"reason"`
}

// NotTaken is how many rows were not taken.
func (i Import) NotTaken() (n int64) {
	for _, c := range i.Counts {
		if notTaken(c.Outcome) {
			n += c.Rows
		}
	}
	return n
}

func notTaken(outcome string) bool {
	return outcome == "refused" || outcome == "not_stored" || outcome == "unknown"
}

// BeginImport writes down that a file is being imported, and gives its id. i has File, Format, KeepGood and Actor.
func (c *Console) BeginImport(ctx context.Context, tenant string, i Import) (uuid.UUID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.Nil, fmt.Errorf("begin import: %w", err)
	}
	err = crmdb.New(c.db.Of(tenant)).ImportInsert(ctx, crmdb.ImportInsertParams{
		ID: id, TenantID: tenant, FileName: storable(i.File), Format: i.Format, KeepGood: i.KeepGood, Actor: storable(i.Actor),
	})
	if err != nil {
		return uuid.Nil, fmt.Errorf("begin import: %w", err)
	}
	return id, nil
}

// FinishImport writes down what became of a file, once. Of i.Refused the first MaxImportRefusals are kept. It goes on when
// ctx has ended, for at most 10 seconds: what an interrupted import did is what somebody will want to know.
func (c *Console) FinishImport(ctx context.Context, tenant string, i Import) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeLimit)
	defer cancel()
	arg := crmdb.ImportFinishParams{
		TenantID: tenant, ID: i.ID, Size: &i.Size, Stored: i.Stored, RowCount: int32(i.Rows), BlankRows: int32(i.BlankRows),
		Orders: int32(i.Orders), Refusal: storable(i.Refusal), Failure: storable(i.Failure), Outcomes: []string{}, Counts: []int64{},
		RefusedLines: []int64{}, RefusedOrders: []string{}, RefusedOutcomes: []string{}, RefusedReasons: []string{},
	}
	if i.SHA256 != "" {
		sum, err := hex.DecodeString(i.SHA256)
		if err != nil {
			return fmt.Errorf("finish import: its SHA-256: %w", err)
		}
		arg.Sha256 = sum
	}
	for _, count := range i.Counts {
		arg.Outcomes, arg.Counts = append(arg.Outcomes, count.Outcome), append(arg.Counts, count.Rows)
	}
	for _, row := range i.Refused[:min(len(i.Refused), MaxImportRefusals)] {
		arg.RefusedLines, arg.RefusedOrders = append(arg.RefusedLines, row.Line), append(arg.RefusedOrders, storable(row.Order))
		arg.RefusedOutcomes, arg.RefusedReasons = append(arg.RefusedOutcomes, row.Outcome), append(arg.RefusedReasons, storable(row.Reason))
	}
	n, err := crmdb.New(c.db.Of(tenant)).ImportFinish(ctx, arg)
	if err == nil && n == 0 {
		err = errors.New("there is no such import that has not ended")
	}
	if err != nil {
		return fmt.Errorf("finish import: %w", err)
	}
	return nil
}

// importRow is an import as the query of one gives it.
type importRow crmdb.ImportGetRow

func (r importRow) told() Import {
	i := Import{
		ID: r.ID, File: r.FileName, Format: r.Format, KeepGood: r.KeepGood, Actor: r.Actor, StartedAt: r.StartedAt,
		FinishedAt: r.FinishedAt, SHA256: hex.EncodeToString(r.Sha256), Stored: r.Stored != nil && *r.Stored, Rows: int(r.RowCount),
		BlankRows: int(r.BlankRows), Orders: int(r.Orders), Counts: make([]ImportCount, len(r.Outcomes)), Refusal: r.Refusal,
		Failure: r.Failure, MinimisedAt: r.MinimisedAt,
	}
	if r.Size != nil {
		i.Size = *r.Size
	}
	for n := range r.Outcomes {
		i.Counts[n] = ImportCount{r.Outcomes[n], r.Counts[n]}
	}
	for n := range r.RefusedLines {
		i.Refused = append(i.Refused, ImportRow{r.RefusedLines[n], r.RefusedOrders[n], r.RefusedOutcomes[n], r.RefusedReasons[n]})
	}
	return i
}

// GetImport gives one import with the first rows that were not taken; the problem is not-found if the tenant has none of that id.
func (c *Console) GetImport(ctx context.Context, tenant string, id uuid.UUID) (Import, error) {
	row, err := crmdb.New(c.db.Of(tenant)).ImportGet(ctx, tenant, id)
	if errors.Is(err, pgx.ErrNoRows) {
		return Import{}, problem.New(problem.NotFound, "There is no such import.")
	}
	if err != nil {
		return Import{}, fmt.Errorf("get import: %w", err)
	}
	return importRow(row).told(), nil
}

// ListImports gives one page of a tenant's imports, the newest first unless OldestFirst.
func (c *Console) ListImports(ctx context.Context, tenant string, q PageQuery) (found Page[Import], err error) {
	arg := crmdb.ImportListNewestParams{TenantID: tenant}
	err = readConsole(ctx, c.db.Of(tenant), func(queries *crmdb.Queries) error {
		rows, err := importPaging(ctx, queries, arg).page(q)
		found, err = pageOf(rows, err, func(r crmdb.ImportListNewestRow) Import {
			return importRow{
				ID: r.ID, FileName: r.FileName, Format: r.Format, KeepGood: r.KeepGood, Actor: r.Actor, StartedAt: r.StartedAt,
				FinishedAt: r.FinishedAt, Sha256: r.Sha256, Size: r.Size, Stored: r.Stored, RowCount: r.RowCount,
				BlankRows: r.BlankRows, Orders: r.Orders, Outcomes: r.Outcomes, Counts: r.Counts, Refusal: r.Refusal,
				Failure: r.Failure, MinimisedAt: r.MinimisedAt,
			}.told()
		})
		return err
	})
	return found, listError("imports", err)
}

func importPaging(ctx context.Context, queries *crmdb.Queries, arg crmdb.ImportListNewestParams) paging[crmdb.ImportListNewestRow, uuid.UUID] {
	return paging[crmdb.ImportListNewestRow, uuid.UUID]{
		newest: func(beyond *place[uuid.UUID], limit int32) ([]crmdb.ImportListNewestRow, error) {
			arg.BeyondAt, arg.BeyondID = beyond.parts()
			arg.MaxItems = limit
			return queries.ImportListNewest(ctx, arg)
		},
		oldest: func(beyond *place[uuid.UUID], limit int32) (told []crmdb.ImportListNewestRow, err error) {
			arg.BeyondAt, arg.BeyondID = beyond.parts()
			arg.MaxItems = limit
			rows, err := queries.ImportListOldest(ctx, crmdb.ImportListOldestParams(arg))
			for _, r := range rows {
				told = append(told, crmdb.ImportListNewestRow(r))
			}
			return told, err
		},
		at:    func(r crmdb.ImportListNewestRow) place[uuid.UUID] { return place[uuid.UUID]{r.StartedAt, r.ID} },
		parse: parseUUID, format: formatUUID,
	}
}

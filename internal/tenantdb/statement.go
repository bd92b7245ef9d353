package tenantdb

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// scopeSQL stands before a statement that is in no transaction. Both go to the server in one pipeline, which is one implicit
// transaction; the settings end with it.
const scopeSQL = "SELECT set_config('role', '" + Role + "', true), set_config('invoicebridge.tenants', $1, true)"

// anewSQL is scopeSQL where PlannedAnew is asked for.
const anewSQL = scopeSQL + ", set_config('plan_cache_mode', 'force_custom_plan', true)"

// onceSQL is scopeSQL where PlannedOnce is asked for.
const onceSQL = scopeSQL + ", set_config('plan_cache_mode', CASE WHEN (SELECT reltuples FROM pg_class WHERE oid = to_regclass($2::text)) >= " +
	onceRows + " THEN 'force_generic_plan' ELSE 'auto' END, true)"

// onceRows: among fewer the planner can't tell a good index from a bad one, and a plan that is kept may be one for ever.
const onceRows = "1000"

// queue puts what makes the scope in front of what comes next in a batch.
func (s Scope) queue(batch *pgx.Batch) {
	switch {
	case s.once != "":
		batch.Queue(onceSQL, s.setting(), s.once)
	case s.anew:
		batch.Queue(anewSQL, s.setting())
	default:
		batch.Queue(scopeSQL, s.setting())
	}
}

// isScope says whether a statement is one that queue has put there.
func isScope(sql string) bool { return sql == scopeSQL || sql == anewSQL || sql == onceSQL }

// Exec runs one statement, which is committed when it returns without an error.
func (s Scope) Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	if s.unscoped {
		if err := s.check(ctx); err != nil {
			return pgconn.CommandTag{}, err
		}
		return s.pool.Exec(ctx, sql, args...)
	}
	rows, err := s.Query(ctx, sql, args...)
	if err != nil {
		return pgconn.CommandTag{}, err
	}
	rows.Close()
	return rows.CommandTag(), rows.Err()
}

// Query runs one statement. Its connection is busy until the rows are read to their end or closed; one that changes something
// is committed then.
func (s Scope) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	if s.unscoped {
		return s.pool.Query(ctx, sql, args...)
	}
	var batch pgx.Batch
	s.queue(&batch)
	batch.Queue(sql, args...)
	results := s.pool.SendBatch(ctx, &batch)
	if _, err := results.Exec(); err != nil {
		_ = results.Close() // which has met the same
		return nil, err
	}
	rows, err := results.Query()
	if err != nil {
		_ = results.Close() // which has met the same
		return nil, err
	}
	return &scopedRows{Rows: rows, results: results}, nil
}

// QueryRow runs one statement for its first row; an error comes with Scan.
func (s Scope) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	rows, err := s.Query(ctx, sql, args...)
	return scopedRow{rows, err}
}

// scopedRows gives the connection back with the rows' end, and tells what the end of the implicit transaction met.
type scopedRows struct {
	pgx.Rows
	results pgx.BatchResults
	closed  bool
	err     error
}

func (r *scopedRows) Next() bool {
	if r.Rows.Next() {
		return true
	}
	r.Close()
	return false
}

func (r *scopedRows) Close() {
	r.Rows.Close()
	if r.closed {
		return
	}
	r.closed = true
	r.err = r.results.Close()
}

func (r *scopedRows) Err() error {
	if err := r.Rows.Err(); err != nil {
		return err
	}
	return r.err
}

type scopedRow struct {
	rows pgx.Rows
	err  error
}

func (r scopedRow) Scan(dest ...any) error {
	if r.err != nil {
		return r.err
	}
	defer r.rows.Close()
	if !r.rows.Next() {
		if err := r.rows.Err(); err != nil {
			return err
		}
		return pgx.ErrNoRows
	}
	if err := r.rows.Scan(dest...); err != nil {
		return err
	}
	r.rows.Close()
	return r.rows.Err()
}

package tenantdb

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Pipeline gives a connection and a batch that begins a transaction for the tenants on it, for whoever puts the first statements
// behind that and sends all in one round trip. Nothing is sent yet. The batch's first answers are its beginning's, as many as it
// has statements here. The connection is to be released; one that is still in a transaction is closed then.
func (s Scope) Pipeline(ctx context.Context, options pgx.TxOptions) (*pgxpool.Conn, *pgx.Batch, error) {
	if err := s.check(ctx); err != nil {
		return nil, nil, err
	}
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, nil, err
	}
	begin := &pgx.Batch{}
	begin.BeginTx(options)
	if !s.unscoped {
		s.queue(begin)
	}
	return conn, begin, nil
}

// SendBatch runs statements in one round trip and one implicit transaction.
func (s Scope) SendBatch(ctx context.Context, statements *pgx.Batch) pgx.BatchResults {
	if err := s.check(ctx); err != nil {
		return failedBatch{err}
	}
	if s.unscoped {
		return s.pool.SendBatch(ctx, statements)
	}
	var batch pgx.Batch
	s.queue(&batch)
	batch.QueuedQueries = append(batch.QueuedQueries, statements.QueuedQueries...)
	results := s.pool.SendBatch(ctx, &batch)
	_, _ = results.Exec() // its error is that of all behind it
	return results
}

// failedBatch is one that was never sent.
type failedBatch struct{ err error }

func (f failedBatch) Exec() (pgconn.CommandTag, error) { return pgconn.CommandTag{}, f.err }
func (f failedBatch) Query() (pgx.Rows, error)         { return nil, f.err }
func (f failedBatch) QueryRow() pgx.Row                { return scopedRow{err: f.err} }
func (f failedBatch) Close() error                     { return f.err }
func (failedBatch) Tx() pgx.Tx                         { return nil }

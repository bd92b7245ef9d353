package invoice

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/erpdb"
)

// transaction is one of Issue. Its statements are collected, and those that are sent together take one round trip: the
// server runs them one after the other, and none behind one that fails. BEGIN goes with the first of them, COMMIT with the
// last.
type transaction struct {
	inner  pgx.Tx // there once the first statements are sent
	conn   *pgxpool.Conn
	queued *pgx.Batch
	sent   pgx.BatchResults
	begin  int // how many of the first statements begin it
}

// transact runs work in a transaction that touches rows of these tenants only. Work ends it by sendAndCommit; if it
// fails, or panics, all is rolled back. Nothing is sent before work sends it.
//
// All transactions of Issue begin here.
func (s *Service) transact(ctx context.Context, tenants []string, work func(tx *transaction) error) error {
	conn, begin, err := s.db.Of(tenants...).Pipeline(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer conn.Release() // a connection that is still in a transaction is closed
	tx := &transaction{conn: conn, queued: begin, begin: begin.Len()}
	if err := work(tx); err != nil {
		tx.undo(ctx)
		return err
	}
	return nil
}

// statements collects the statements of tx that are called on it. Their answers are read after send, in their order.
func (tx *transaction) statements() *erpdb.Queries {
	if tx.queued == nil {
		tx.queued = &pgx.Batch{}
	}
	return erpdb.New((*collector)(tx))
}

// send sends what is collected. After it the answers have to be read, all or until one is an error, and then received.
func (tx *transaction) send(ctx context.Context) error {
	tx.sent, tx.queued = tx.conn.SendBatch(ctx, tx.queued), nil
	if tx.inner == nil {
		tx.inner = tx.sent.Tx()
		for range tx.begin {
			if _, err := tx.sent.Exec(); err != nil {
				return fmt.Errorf("begin: %w", err)
			}
		}
	}
	return nil
}

// received ends the reading of what send has sent, so that more can be sent.
func (tx *transaction) received() error { return tx.sent.Close() }

// sendAndCommit sends what is collected, and COMMIT, which is reached if nothing before it fails. Read has to read the
// answers.
func (tx *transaction) sendAndCommit(ctx context.Context, read func() error) error {
	if tx.queued == nil {
		tx.queued = &pgx.Batch{}
	}
	tx.queued.Queue("commit")
	if err := tx.send(ctx); err != nil {
		return err
	}
	if err := read(); err != nil {
		return err
	}
	tag, err := tx.sent.Exec()
	if err = errors.Join(err, tx.received()); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if tag.String() != "COMMIT" {
		return pgx.ErrTxCommitRollback
	}
	return nil
}

// undo rolls back what was sent, if the connection still serves for that.
func (tx *transaction) undo(ctx context.Context) {
	if tx.sent != nil {
		_ = tx.sent.Close() // the error is known
	}
	if tx.inner != nil && !tx.conn.Conn().IsClosed() {
		_ = tx.inner.Rollback(ctx) // where it fails the connection goes, and with it the transaction
	}
}

// collector is a transaction as sqlc's queries see it: one that answers later.
type collector transaction

var errCollects = errors.New("only queries of a batch can be collected")

// SendBatch implements erpdb.DBTX.
func (c *collector) SendBatch(_ context.Context, b *pgx.Batch) pgx.BatchResults {
	c.queued.QueuedQueries = append(c.queued.QueuedQueries, b.QueuedQueries...)
	return (*answers)(c)
}

// Exec implements erpdb.DBTX. It fails.
func (*collector) Exec(context.Context, string, ...any) (pgconn.CommandTag, error) {
	return pgconn.CommandTag{}, errCollects
}

// Query implements erpdb.DBTX. It fails.
func (*collector) Query(context.Context, string, ...any) (pgx.Rows, error) { return nil, errCollects }

// QueryRow implements erpdb.DBTX. It fails.
func (*collector) QueryRow(context.Context, string, ...any) pgx.Row { return failedRow{} }

type failedRow struct{}

func (failedRow) Scan(...any) error { return errCollects }

// answers are those of what is sent by then.
type answers transaction

func (a *answers) Exec() (pgconn.CommandTag, error) { return a.sent.Exec() }
func (a *answers) Query() (pgx.Rows, error)         { return a.sent.Query() }
func (a *answers) QueryRow() pgx.Row                { return a.sent.QueryRow() }
func (a *answers) Close() error                     { return nil } // there are others behind
func (a *answers) Tx() pgx.Tx                       { return nil }

// one keeps the answer of a statement that is collected once.
func one[R any](query func(func(int, R, error))) (answer R, err error) {
	query(func(_ int, r R, e error) { answer, err = r, e })
	return answer, err
}

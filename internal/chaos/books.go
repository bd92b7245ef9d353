package chaos

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// books reads what there is at the end.
func (w *world) books(ctx context.Context) (b Books, err error) {
	b.Invoices, err = all(ctx, w.pools["erp"], `SELECT id::text, concat_ws(' ', tenant_id, source, order_id, role, sequence), order_id, operation_key, number,
			concat_ws(' ', tenant_id, series_prefix, series_year), series_number, document
		FROM invoices`, func(row pgx.CollectableRow) (i Invoice, err error) {
		var document []byte
		err = row.Scan(&i.ID, &i.Claim, &i.Order, &i.Key, &i.Number, &i.Series, &i.SeriesNumber, &document)
		i.Document = digest(document)
		return i, err
	})
	if err != nil {
		return b, err
	}
	b.Operations, err = all(ctx, w.pools["crm"], `SELECT key, order_id, status, coalesce(invoice_id::text, ''), request FROM operations`,
		func(row pgx.CollectableRow) (o Operation, err error) {
			var request []byte
			err = row.Scan(&o.Key, &o.Order, &o.Status, &o.Invoice, &request)
			o.Request = digest(request)
			return o, err
		})
	if err != nil {
		return b, err
	}
	b.Registrations, err = all(ctx, w.pools["erp"], `SELECT r.invoice_id::text, t.kind, r.status FROM registrations AS r
		JOIN targets AS t ON t.tenant_id = r.tenant_id AND t.id = r.target_id`,
		func(row pgx.CollectableRow) (r Registration, err error) {
			return r, row.Scan(&r.Invoice, &r.Target, &r.Status)
		})
	for _, e := range w.sim.Effects("").Items {
		number := e.ExternalReference
		if len(e.Numbers) > 0 {
			number = e.Numbers[0]
		}
		b.Effects = append(b.Effects, Effect{Target: e.Kind, Reference: number, Count: e.Count})
	}
	return b, err
}

func all[T any](ctx context.Context, pool *pgxpool.Pool, query string, scan func(pgx.CollectableRow) (T, error)) ([]T, error) {
	rows, err := pool.Query(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("read the books: %w", err)
	}
	list, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("read the books: %w", err)
	}
	return list, nil
}

// open counts what is not finished.
func (w *world) open(ctx context.Context) (n int, err error) {
	for pool, query := range map[string]string{
		"crm": `SELECT count(*) FROM operations WHERE status IN ('pending', 'processing', 'unknown')`,
		"erp": `SELECT count(*) FROM registrations WHERE status IN ('pending', 'processing', 'unknown')`,
	} {
		var k int
		if err := w.pools[pool].QueryRow(ctx, query).Scan(&k); err != nil {
			return 0, err
		}
		n += k
	}
	return n, nil
}

// lookAtStatuses reads the newest operations' and registrations' statuses: the history knows if one goes back.
func (w *world) lookAtStatuses(ctx context.Context) {
	w.lookAt(ctx, "crm", `SELECT key, status FROM operations ORDER BY created_at DESC LIMIT 2000`)
	w.lookAt(ctx, "erp", `SELECT target_id || ' registration ' || id, status FROM registrations ORDER BY created_at DESC LIMIT 2000`)
}

func (w *world) lookAt(ctx context.Context, pool, query string) {
	rows, err := w.pools[pool].Query(ctx, query)
	if err != nil {
		return // the database is away
	}
	var key, status string
	_, _ = pgx.ForEachRow(rows, []any{&key, &status}, func() error {
		w.history.status(key, status, status == statusSucceeded || status == "failed" || status == statusCancelled)
		return nil
	})
}

// digest is short and tells contents apart.
func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}

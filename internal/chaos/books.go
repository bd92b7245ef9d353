package chaos

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// books reads what there is at the end.
func (w *world) books(ctx context.Context) (b Books, err error) {
	b.Invoices, err = all(ctx, w.pools["erp"], `SELECT id::text, concat_ws(' ', tenant_id, source, order_id, role, sequence), order_id, operation_key, number,
			concat_ws(' ', tenant_id, series_prefix, series_year), series_number, document
		FROM invoices`, func(row pgx.CollectableRow) (i Invoice, err error) {
		err = row.Scan(&i.ID, &i.Claim, &i.Order, &i.Key, &i.Number, &i.Series, &i.SeriesNumber, &i.document)
		i.Document = digest(i.document)
		return i, err
	})
	if err != nil {
		return b, err
	}
	b.Operations, err = all(ctx, w.pools["crm"], `SELECT key, order_id, status, coalesce(invoice_id::text, ''), request, request_hash, minimised_at IS NOT NULL
		FROM operations`,
		func(row pgx.CollectableRow) (o Operation, err error) {
			var request, hash []byte
			var minimised bool
			err = row.Scan(&o.Key, &o.Order, &o.Status, &o.Invoice, &request, &hash, &minimised)
			o.Request = short(hash)
			o.Altered = !minimised && digest(request) != o.Request
			return o, err
		})
	if err != nil {
		return b, err
	}
	if err := b.contents(); err != nil {
		return b, err
	}
	for _, pool := range w.pools {
		reverted, err := all(ctx, pool, `SELECT what FROM chaos_reverted`, pgx.RowTo[string])
		if err != nil {
			return b, err
		}
		b.Reverted = append(b.Reverted, reverted...)
	}
	b.Targets = targets()
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

// contents finds the request that each invoice was made from: that of an operation is frozen with it, and those of clients
// differ in the price, which the document has.
func (b *Books) contents() error {
	frozen := map[string]string{}
	for _, o := range b.Operations {
		frozen[o.Key] = o.Request
	}
	for n := range b.Invoices {
		i := &b.Invoices[n]
		content, ordered := frozen[i.Key]
		if !ordered {
			var document struct {
				Lines []struct {
					Price string `json:"unit_price"`
				} `json:"lines"`
			}
			if err := json.Unmarshal(i.document, &document); err != nil {
				return fmt.Errorf("invoice %s: %w", i.Number, err)
			}
			for _, line := range document.Lines {
				content = digest([]byte(body(directSource, i.Order, line.Price)))
			}
		}
		i.Content = content
	}
	return nil
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

// watchWhatIsFinal has both databases take note of what is final and then otherwise, or gone, however shortly.
func (w *world) watchWhatIsFinal(ctx context.Context) error {
	for _, watched := range []struct{ pool, table, name string }{{"crm", "operations", "key"}, {"erp", "registrations", "id"}} {
		_, err := w.pools[watched.pool].Exec(ctx, `CREATE TABLE chaos_reverted (what text NOT NULL);
			CREATE FUNCTION chaos_note_reverted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
			BEGIN
				INSERT INTO chaos_reverted SELECT concat_ws(' ', TG_TABLE_NAME, OLD.`+watched.name+`, 'was', OLD.status, TG_OP, NEW.status);
				RETURN NULL;
			END $$;
			CREATE TRIGGER chaos_final_stays AFTER UPDATE ON `+watched.table+` FOR EACH ROW
				WHEN (OLD.status IN ('succeeded', 'failed', 'cancelled') AND NEW.status <> OLD.status)
				EXECUTE FUNCTION chaos_note_reverted();
			CREATE TRIGGER chaos_nothing_goes AFTER DELETE ON `+watched.table+` FOR EACH ROW EXECUTE FUNCTION chaos_note_reverted()`)
		if err != nil {
			return fmt.Errorf("watch %s: %w", watched.table, err)
		}
	}
	return nil
}

// digest is short and tells contents apart.
func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return short(sum[:])
}

func short(sum []byte) string { return hex.EncodeToString(sum[:8]) }

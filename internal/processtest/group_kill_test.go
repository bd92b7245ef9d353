package processtest

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/testdb"
)

// Deliveries share the transactions in which their attempts begin and their outcomes are written. The worker is killed in the
// middle of one: all of it is written, and none of it committed. A beginning may be committed nevertheless, for it is one
// statement, which the database has from its dead client.
func TestWorkerKilledInTheMiddleOfAGroupLosesNoOrderAndDoublesNone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, event, done string }{
		{"in which attempts begin", "INSERT", `SELECT count(*) FROM attempts`},
		{"in which outcomes are written", "UPDATE", `SELECT count(*) FROM operations WHERE status = 'succeeded'`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const orders = 40
			w := newWorld(t)
			erp := w.serveERP()
			rec := record(t, erp.URL(), func(to http.ResponseWriter, r *http.Request, _ []byte) bool {
				if r.Method == http.MethodPost {
					return false
				}
				to.WriteHeader(http.StatusServiceUnavailable) // or reconciliation would settle operations by asking
				return true
			})
			groups := holdGroups(t, w.crm, c.event)
			killed := w.serveCRM(rec.URL, "ATTEMPT_TIMEOUT=60s")
			names := make([]string, orders)
			for i := range names {
				names[i] = fmt.Sprint("SO-", i)
			}
			w.submit(killed.URL(), names...)
			testdb.Await(t, "the transaction of a group is held", groups.oneIsHeld)
			if n := number(t, w.crm, c.done); n >= orders {
				t.Fatalf("%d of %d are committed before the kill", n, orders)
			}
			killed.Kill()
			groups.release()
			testdb.Await(t, "the dead worker's transactions are gone", func() bool {
				return number(t, w.crm, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'crm-worker%'`) == 0
			})

			w.timePasses()
			sqlExec(t, w.crm, `UPDATE operations SET next_attempt_at = next_attempt_at - interval '1 hour' WHERE status = 'pending'`)
			w.serveCRM(rec.URL)
			testdb.Await(t, "another worker has settled all", w.settled)
			w.wantInvoices(orders)
			w.wantDelivered(orders)
			attempts := number(t, w.crm, `SELECT count(*) FROM attempts`)
			if told := number(t, w.crm, `SELECT count(*) FROM attempts WHERE outcome IN ('delivered', 'replayed', 'overtaken')`); told != attempts {
				t.Errorf("of %d attempts %d have their outcome", attempts, told)
			}
			if sent := rec.wantOneBodyPerKey(t); sent > attempts {
				t.Errorf("%d requests were sent, and %d attempts are on record", sent, attempts)
			}
		})
	}
}

// heldGroups are transactions that wait when they have changed attempts, one after the other.
type heldGroups struct {
	t    testing.TB
	pool *pgxpool.Pool
	conn *pgxpool.Conn // has what they wait for
}

// holdGroups holds each transaction that inserts or updates attempts, from now on. How many it has changed is in a sequence,
// which shows that before the commit.
func holdGroups(t testing.TB, pool *pgxpool.Pool, event string) *heldGroups {
	t.Helper()
	sqlExec(t, pool, `CREATE SEQUENCE attempts_held`)
	sqlExec(t, pool, `CREATE FUNCTION hold_group() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN
			IF EXISTS (SELECT FROM changed) THEN
				PERFORM setval('attempts_held', (SELECT count(*) FROM changed));
				PERFORM pg_advisory_xact_lock_shared(4711);
			END IF;
			RETURN NULL;
		END $$`)
	sqlExec(t, pool, `CREATE TRIGGER hold_group AFTER `+event+` ON attempts REFERENCING NEW TABLE AS changed
		FOR EACH STATEMENT EXECUTE FUNCTION hold_group()`)
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	g := &heldGroups{t, pool, conn}
	g.exec(`SELECT pg_advisory_lock(4711)`)
	return g
}

func (g *heldGroups) exec(sql string) {
	g.t.Helper()
	if _, err := g.conn.Exec(g.t.Context(), sql); err != nil {
		g.t.Fatal(err)
	}
}

// oneIsHeld says whether a transaction is held that has changed several attempts. One that has changed only one goes on, and the
// next one is held.
func (g *heldGroups) oneIsHeld() bool {
	g.t.Helper()
	if heldInserts(g.t, g.pool) == 0 {
		return false
	}
	if number(g.t, g.pool, `SELECT last_value FROM attempts_held`) > 1 {
		return true
	}
	g.exec(`SELECT pg_advisory_unlock(4711), pg_advisory_lock(4711)`) // gets the lock back at the end of whoever got it
	return false
}

func (g *heldGroups) release() {
	g.t.Helper()
	defer g.conn.Release()
	g.exec(`SELECT pg_advisory_unlock(4711)`)
}

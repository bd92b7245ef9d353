package idempotency

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/testdb"
)

// scope is what keys are unique in.
type scope struct{ tenant, operation string }

func issuing() scope { return scope{"t1", "issue_invoice"} }

func setup(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := testdb.ERP(t)
	for _, tenant := range []string{"t1", "t2"} {
		if _, err := erpdb.New(pool).TenantInsert(t.Context(), tenant, tenant); err != nil {
			t.Fatal(err)
		}
	}
	return pool
}

func begin(t *testing.T, pool *pgxpool.Pool) pgx.Tx {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func claims(t *testing.T, tenant string, keys ...string) (all []Claim) {
	t.Helper()
	for _, text := range keys {
		key, err := ParseKey([]string{text})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, Claim{Tenant: tenant, Key: key, Fingerprint: NewFingerprint(1, []byte(text)), ResourceID: uuid.New()})
	}
	return all
}

func terms(patience time.Duration) Terms { return Terms{Patience: patience, Retention: time.Hour} }

func reserve(t *testing.T, tx pgx.Tx, s scope, keys ...string) error {
	t.Helper()
	_, err := Reserve(t.Context(), tx, s.operation, claims(t, s.tenant, keys...), terms(20*time.Millisecond)).Done()
	return err
}

func TestReserveWritesEachKeyAsSucceededUntilItsRetentionEnds(t *testing.T) {
	t.Parallel()
	pool := setup(t)
	tx := begin(t, pool)
	made := claims(t, "t1", "b", "a")
	times, err := Reserve(t.Context(), tx, issuing().operation, made, terms(time.Second)).Done()
	if err != nil {
		t.Fatal(err)
	}
	if times.Expires.Sub(times.FirstSeen) != time.Hour {
		t.Errorf("%+v", times)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range made {
		var n int
		err := pool.QueryRow(t.Context(), `SELECT count(*) FROM idempotency_records WHERE tenant_id = 't1' AND key = $1
			AND operation = 'issue_invoice' AND status = 'succeeded' AND answer_status = 201 AND resource_id = $2
			AND fingerprint_version = 1 AND fingerprint = $3 AND first_seen_at = $4 AND expires_at = $5`,
			c.Key.String(), c.ResourceID, c.Fingerprint.Sum[:], times.FirstSeen, times.Expires).Scan(&n)
		if err != nil || n != 1 {
			t.Errorf("key %s: %d rows, %v", c.Key, n, err)
		}
	}
}

func TestReserveSaysThatACommittedKeyIsTaken(t *testing.T) {
	t.Parallel()
	pool := setup(t)
	first := begin(t, pool)
	if err := reserve(t, first, issuing(), "K1"); err != nil {
		t.Fatal(err)
	}
	if err := first.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := reserve(t, begin(t, pool), issuing(), "K0", "K1"); !errors.Is(err, ErrTaken) {
		t.Errorf("got %v", err)
	}
}

func TestReserveSaysThatAKeyIsInProgressOnceItsPatienceIsOver(t *testing.T) {
	t.Parallel()
	pool := setup(t)
	first := begin(t, pool)
	if err := reserve(t, first, issuing(), "K1"); err != nil {
		t.Fatal(err)
	}
	if err := reserve(t, begin(t, pool), issuing(), "K1"); !errors.Is(err, ErrInProgress) {
		t.Errorf("got %v", err)
	}
	if err := first.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := reserve(t, begin(t, pool), issuing(), "K1"); err != nil {
		t.Errorf("after the rollback: %v", err)
	}
}

func TestReserveKeepsScopesApart(t *testing.T) {
	t.Parallel()
	pool := setup(t)
	for _, s := range []scope{issuing(), {"t2", "issue_invoice"}, {"t1", "register"}} {
		if err := reserve(t, begin(t, pool), s, "K1"); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestReserveDoesNotTakeOtherErrorsForAnAnswer(t *testing.T) {
	t.Parallel()
	pool := setup(t)
	err := reserve(t, begin(t, pool), scope{"nobody", "issue_invoice"}, "K1")
	if err == nil || errors.Is(err, ErrTaken) || errors.Is(err, ErrInProgress) {
		t.Errorf("got %v", err)
	}
}

// Many keys in opposite sequences: they are sorted, so nobody waits for somebody who waits for it.
func TestReserveSortsItsKeys(t *testing.T) {
	t.Parallel()
	pool := setup(t)
	tx := begin(t, pool)
	if _, err := tx.Exec(t.Context(), "CREATE TEMP TABLE seen (n serial, key text) ON COMMIT DROP"); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), `CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN INSERT INTO seen (key) VALUES (NEW.tenant_id || '/' || NEW.key); RETURN NEW; END $$;
		CREATE TRIGGER note BEFORE INSERT ON idempotency_records FOR EACH ROW EXECUTE FUNCTION note()`); err != nil {
		t.Fatal(err)
	}
	all := append(claims(t, "t2", "a", "1"), claims(t, "t1", "b", "B", "10", "9", "a")...)
	if _, err := Reserve(t.Context(), tx, issuing().operation, all, terms(time.Second)).Done(); err != nil {
		t.Fatal(err)
	}
	var sequence string
	if err := tx.QueryRow(t.Context(), "SELECT string_agg(key, ' ' ORDER BY n) FROM seen").Scan(&sequence); err != nil {
		t.Fatal(err)
	}
	if sequence != "t1/10 t1/9 t1/B t1/a t1/b t2/1 t2/a" { // by bytes: the same for every process and every locale
		t.Errorf("locked in the sequence %s", sequence)
	}
}

func TestLockTimeoutIsNeverForEver(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "1", 0: "1", time.Microsecond: "1", 2 * time.Second: "2000",
	} {
		if got := LockTimeout(d); got != want {
			t.Errorf("%v is %s", d, got)
		}
	}
}

package postgres_test

import (
	"net"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"invoicebridge/internal/postgres"
	"invoicebridge/internal/testdb"
)

func TestPoolHasItsConnectionsWhenItIsReturned(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ maximum, minimum, atLeast, atMost int32 }{
		"all of them": {6, 0, 6, 6},
		"some":        {6, 2, 2, 4}, // pgx opens some by itself at the same time
		"too many":    {3, 9, 3, 3},
		"unsaid":      {0, 0, 8, 8},
	}
	dsn := testdb.Empty(t)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, err := postgres.OpenPool(t.Context(), postgres.PoolConfig{DSN: dsn, MaxConns: c.maximum, MinConns: c.minimum})
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			if got := pool.Stat().TotalConns(); got < c.atLeast || got > c.atMost {
				t.Errorf("%d connections are open, want %d to %d", got, c.atLeast, c.atMost)
			}
		})
	}
}

func TestPoolSetsItsNameAndParametersInEachSession(t *testing.T) {
	t.Parallel()
	pool, err := postgres.OpenPool(t.Context(), postgres.PoolConfig{
		DSN: testdb.Empty(t), MaxConns: 2, ApplicationName: "a service",
		RuntimeParams: map[string]string{"plan_cache_mode": "force_generic_plan"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	got := queryText(t, pool, "SELECT current_setting('application_name') || ', ' || current_setting('plan_cache_mode')")
	if got != "a service, force_generic_plan" {
		t.Errorf("the session has %s", got)
	}
}

func TestASessionWhoseClientIsGoneGivesUpItsLocks(t *testing.T) {
	t.Parallel()
	dsn := testdb.Empty(t)
	pool, err := postgres.OpenPool(t.Context(), postgres.PoolConfig{DSN: dsn, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if got := queryText(t, pool, "SHOW idle_in_transaction_session_timeout"); got != "1min" {
		t.Errorf("a transaction whose client is silent ends after %s", got)
	}
	// Those of TCP show only on a connection by it; that they are told says the list of what the session was started with.
	got := queryText(t, pool, "SELECT string_agg(name, ' ' ORDER BY name) FROM pg_settings WHERE source = 'client' AND name LIKE 'tcp%'")
	if got != "tcp_keepalives_count tcp_keepalives_idle tcp_keepalives_interval tcp_user_timeout" {
		t.Errorf("the session was started with %s", got)
	}

	hasty := changed(t, dsn, func(u *url.URL, q url.Values) { q.Set("idle_in_transaction_session_timeout", "1") })
	gone, err := postgres.OpenPool(t.Context(), postgres.PoolConfig{DSN: hasty, MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer gone.Close()
	session, err := gone.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer session.Release()
	if err := session.Conn().PgConn().Exec(t.Context(), "BEGIN; SELECT pg_advisory_xact_lock(1)").Close(); err != nil {
		t.Fatal(err)
	}
	// nobody ends the transaction, and this waits for its lock
	if _, err := pool.Exec(t.Context(), "SELECT pg_advisory_xact_lock(1)"); err != nil {
		t.Errorf("%v: what the address says does not come first", err)
	}
}

func TestPoolTellsOfEachConnectionThatIsOpened(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	pool, err := postgres.OpenPool(t.Context(), postgres.PoolConfig{
		DSN: testdb.Empty(t), MaxConns: 1, Opened: func() { opened.Add(1) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if n := opened.Load(); n != 1 {
		t.Fatalf("told of %d connections, want 1", n)
	}
	_, _ = pool.Exec(t.Context(), "SELECT pg_terminate_backend(pg_backend_pid())") // which has no answer
	if _, err := pool.Exec(t.Context(), "SELECT"); err != nil {
		t.Fatal(err)
	}
	if n := opened.Load(); n != 2 {
		t.Errorf("told of %d connections, want 2: who uses the new one must have been told before", n)
	}
}

// changed is a working address with something wrong in it.
func changed(t *testing.T, dsn string, change func(*url.URL, url.Values)) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	change(u, query)
	u.RawQuery = query.Encode()
	return u.String()
}

func TestPoolSaysWhatIsWrongAndNeverThePassword(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, freePort, _ := net.SplitHostPort(listener.Addr().String())
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	dsn := testdb.Empty(t)
	cases := map[string]struct{ dsn, want string }{
		"no server": {"postgres://me:secret@127.0.0.1:" + freePort + "/shop", `database "shop" on 127.0.0.1:` + freePort + " can't be reached"},
		"wrong password": {
			changed(t, dsn, func(u *url.URL, _ url.Values) { u.User = url.UserPassword("postgres", "secret") }),
			`refuses user "postgres"`,
		},
		"no such database": {
			changed(t, dsn, func(u *url.URL, _ url.Values) { u.Path = "/nowhere" }), `database "nowhere" on`,
		},
		"malformed URL":   {"postgres://me:secret@127.0.0.1:port/shop", "database address"},
		"malformed words": {"host=127.0.0.1 password=secret port=x", "database address"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := postgres.OpenPool(t.Context(), postgres.PoolConfig{DSN: c.dsn, MaxConns: 3})
			if err == nil {
				t.Fatal("a pool was opened")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q is missing in: %v", c.want, err)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the password stands in: %v", err)
			}
		})
	}
}

// pgx alone takes some twenty allocations for each id, which was a twentieth of what creating an invoice cost the service.
func TestIDsAreSentAsTheyAre(t *testing.T) { // alone: it looks at what is allocated
	pool, err := postgres.OpenPool(t.Context(), postgres.PoolConfig{DSN: testdb.Empty(t), MaxConns: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	ids := make([]uuid.UUID, 100)
	for i := range ids {
		ids[i] = uuid.New()
	}
	var got []uuid.UUID
	if err := pool.QueryRow(t.Context(), "SELECT $1::uuid[]", ids).Scan(&got); err != nil || !slices.Equal(ids, got) {
		t.Fatalf("sent %v, received %v, %v", ids, got, err)
	}
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	types := conn.Conn().TypeMap()
	allocations := testing.AllocsPerRun(10, func() {
		if _, err := types.Encode(pgtype.UUIDArrayOID, pgtype.BinaryFormatCode, ids, nil); err != nil {
			t.Error(err)
		}
	})
	if allocations > float64(4*len(ids)) {
		t.Errorf("%.0f allocations for %d ids", allocations, len(ids))
	}
}

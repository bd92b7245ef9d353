package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"invoicebridge/internal/tenantdb"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"
	"golang.org/x/sync/errgroup"
)

const (
	connectTimeout    = 5 * time.Second // unless the DSN says otherwise
	healthCheckPeriod = 15 * time.Second
	connLifetime      = time.Hour // so that a moved or upgraded server gets its share of connections back
)

// abandoned are settings of each session for when its client is gone without a word: a machine that lost its power, a network
// that lost its path. PostgreSQL keeps such a session, with the locks of its transaction (on a series' counter, say, for which
// every other invoice of a tenant then waits), until the operating system gives up, by default after two hours. What the
// database's address says about them comes first. On a Unix socket, which can't be lost so, the tcp ones do nothing.
//
// See https://www.postgresql.org/docs/current/runtime-config-connection.html and …/runtime-config-client.html.
func abandoned() map[string]string {
	return map[string]string{
		"idle_in_transaction_session_timeout": "60s", // no transaction here waits for anything but the database
		"tcp_keepalives_idle":                 "15",  // seconds of silence before the first probe
		"tcp_keepalives_interval":             "5",
		"tcp_keepalives_count":                "3",
		"tcp_user_timeout":                    "30s", // until what was sent has to be acknowledged
	}
}

// PoolConfig is what a service says about its connections.
type PoolConfig struct {
	DSN             string
	ApplicationName string            // shown by pg_stat_activity
	MaxConns        int32             // 0 is 8: more raise the latency, not the rate
	MinConns        int32             // opened, at least, before OpenPool returns and kept open; 0 is MaxConns
	RuntimeParams   map[string]string // settings of each session, for example plan_cache_mode
	Tracer          pgx.QueryTracer   // sees what the connections do; nil: nobody does
	Slow            *SlowQueries      // sees what takes long; nil: nobody does
	Opened          func()            // called when a connection was opened, before it is used; nil: nobody is told
}

// tracers are all that see what the connections do.
func (cfg PoolConfig) tracers() (tracers []pgx.QueryTracer) {
	if cfg.Tracer != nil {
		tracers = append(tracers, cfg.Tracer)
	}
	if cfg.Slow != nil {
		tracers = append(tracers, cfg.Slow)
	}
	return tracers
}

// OpenPool opens a pool whose connections are there when it returns, so that the first requests after "ready" pay
// for none. It fails, in a sentence without the password, if the DSN is malformed or the server does not answer.
func OpenPool(ctx context.Context, cfg PoolConfig) (*pgxpool.Pool, error) {
	config, err := poolConfig(cfg)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open database pool: %w", err)
	}
	if err := warm(ctx, pool, int(config.MinConns)); err != nil {
		pool.Close()
		return nil, explain(config.ConnConfig, err)
	}
	return pool, nil
}

func poolConfig(cfg PoolConfig) (*pgxpool.Config, error) {
	config, err := parseDSN(cfg.DSN)
	if err != nil {
		return nil, err
	}
	config.MaxConns = cfg.MaxConns
	if config.MaxConns <= 0 {
		config.MaxConns = 8
	}
	config.MinConns = min(cfg.MinConns, config.MaxConns)
	if config.MinConns <= 0 {
		config.MinConns = config.MaxConns
	}
	config.HealthCheckPeriod = healthCheckPeriod
	config.MaxConnLifetime = connLifetime
	config.MaxConnLifetimeJitter = connLifetime / 10
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	if tracers := cfg.tracers(); len(tracers) > 0 {
		config.ConnConfig.Tracer = tenantdb.Tracer(tracers...)
	}
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		pgxuuid.Register(conn.TypeMap()) // else each id of an array is written as text, and read again, before it is sent
		if cfg.Opened != nil {
			cfg.Opened()
		}
		return nil
	}
	for name, value := range abandoned() {
		if _, said := config.ConnConfig.RuntimeParams[name]; !said {
			config.ConnConfig.RuntimeParams[name] = value
		}
	}
	for name, value := range cfg.RuntimeParams {
		config.ConnConfig.RuntimeParams[name] = value
	}
	if cfg.ApplicationName != "" {
		config.ConnConfig.RuntimeParams["application_name"] = cfg.ApplicationName
	}
	return config, nil
}

// CheckDSN says whether dsn can be read as the address of a database. The error does not repeat it.
func CheckDSN(dsn string) error {
	_, err := parseDSN(dsn)
	return err
}

// errNoAddress has nothing of pgx's error: that repeats the address, and finds the password in it only where the address is in good
// form but for one thing.
var errNoAddress = errors.New("the database address is not one such as postgres://localhost:5432/name, or names a file that " +
	"can't be read; it is not repeated here, as a password may stand in it")

func parseDSN(dsn string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, errNoAddress
	}
	return config, nil
}

// warm holds n connections at once: only then are there n different ones.
func warm(ctx context.Context, pool *pgxpool.Pool, n int) error {
	conns := make([]*pgxpool.Conn, n)
	group, groupCtx := errgroup.WithContext(ctx)
	for i := range conns {
		group.Go(func() (err error) {
			if conns[i], err = pool.Acquire(groupCtx); err != nil {
				return err
			}
			return conns[i].Ping(groupCtx)
		})
	}
	err := group.Wait()
	for _, conn := range conns {
		if conn != nil {
			conn.Release()
		}
	}
	return err
}

// explain says in the words of whoever set the address what is wrong with it.
func explain(cfg *pgx.ConnConfig, err error) error {
	where := fmt.Sprintf("database %q on %s", cfg.Database, net.JoinHostPort(cfg.Host, fmt.Sprint(cfg.Port)))
	var answer *pgconn.PgError
	var failed *pgconn.ConnectError
	switch {
	case !errors.As(err, &answer):
		if errors.As(err, &failed) {
			return fmt.Errorf("%s can't be reached, is the server up? %w", where, err)
		}
	case answer.Code == "28P01" || answer.Code == "28000": // invalid_password, invalid_authorization_specification
		return fmt.Errorf("%s refuses user %q: %w", where, cfg.User, err)
	case answer.Code == "3D000": // invalid_catalog_name
		return fmt.Errorf("%s does not exist: create it first: %w", where, err)
	case answer.Code == "53300": // too_many_connections
		return fmt.Errorf("%s has no connection left: raise max_connections or lower the pools: %w", where, err)
	}
	return fmt.Errorf("%s: %w", where, err)
}

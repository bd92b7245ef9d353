package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/db"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/postgres"
	"invoicebridge/internal/telemetry"
	"invoicebridge/internal/tenantdb"
)

// ERPConfig is what the ERP service needs to know. Durations and numbers that are 0 stand for their defaults,
// except ReplayCache.
type ERPConfig struct {
	Listen          string        `name:"listen" env:"ERP_LISTEN" default:"127.0.0.1:8080" help:"Address to listen on; port 0 takes a free one."`
	DatabaseURL     string        `name:"database-url" env:"ERP_DATABASE_URL" placeholder:"URL" help:"Address of the ERP's PostgreSQL database, such as postgres://user:secret@host/erp."`
	MaxConns        int32         `name:"max-conns" env:"ERP_MAX_CONNS" default:"8" help:"Connections to the database; more than 16 raise the latency, not the rate."`
	MaxInFlight     int           `name:"max-in-flight" env:"ERP_MAX_IN_FLIGHT" default:"512" help:"Requests of the API at work or waiting at once; those above are answered 503 before they are looked at."`
	MaxPerTenant    int           `name:"max-in-flight-per-tenant" env:"ERP_MAX_IN_FLIGHT_PER_TENANT" default:"0" help:"How many of them may be one tenant's; those above are answered 429. 0: half."`
	KeyRetention    time.Duration `name:"key-retention" env:"ERP_KEY_RETENTION" default:"2160h" help:"How long a used key's reservation is kept at least. The invoice remembers its key for ever."`
	RequestTimeout  time.Duration `name:"request-timeout" env:"ERP_REQUEST_TIMEOUT" default:"20s" help:"Time for one request; what runs into it is answered 503."`
	ReplayCache     int64         `name:"replay-cache" env:"ERP_REPLAY_CACHE" default:"64" help:"Memory for answers that may be asked for again, in MiB; 0: every replay is read from the database."`
	ShutdownTimeout time.Duration `name:"shutdown-timeout" env:"ERP_SHUTDOWN_TIMEOUT" default:"20s" help:"Time for running requests and registrations to end after the service was told to stop."`

	Registering RegisterConfig `embed:""`
	Reconcile   ERPReconcile   `embed:""`
	Retention   ERPRetention   `embed:""`
	Queue       QueueConfig    `embed:"" envprefix:"ERP_"`
	Schema      SchemaConfig   `embed:"" envprefix:"ERP_"`
	Access      AccessConfig   `embed:"" envprefix:"ERP_"`
	Watch       WatchConfig    `embed:"" envprefix:"ERP_"`
	Debug       DebugConfig    `embed:"" envprefix:"ERP_"`
	Conns       ConnTimes      `embed:"" envprefix:"ERP_"`
	// NoGroupCommit is for measuring what group commit is worth.
	NoGroupCommit bool `name:"disable-group-commit" env:"ERP_DISABLE_GROUP_COMMIT" hidden:"" help:"Every request has a transaction of its own. Only for measuring."`

	// Traces is not for configuration, but for those who run the service in their own process. Zero: the OTEL_ variables
	// decide.
	Traces telemetry.Config `kong:"-"`
}

// Check checks the configuration as a whole and names each mistake with its variable. It is not called Validate:
// kong would call that by itself and stop at the first configuration with a mistake.
func (c ERPConfig) Check() error {
	var mistakes []error
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		mistakes = append(mistakes, mistake("ERP_LISTEN", "%q is no address such as 127.0.0.1:8080", c.Listen))
	}
	mistakes = append(mistakes, validateDatabaseURL("ERP_DATABASE_URL", c.DatabaseURL))
	if c.MaxConns < 0 || c.MaxConns > 1000 {
		mistakes = append(mistakes, mistake("ERP_MAX_CONNS", "%d is not from 1 to 1000", c.MaxConns))
	}
	mistakes = append(mistakes, checkInFlight("ERP_", c.MaxInFlight, c.MaxPerTenant))
	if c.ReplayCache < 0 || c.ReplayCache > 1<<20 {
		mistakes = append(mistakes, mistake("ERP_REPLAY_CACHE", "%d is not from 0 to 1048576 MiB", c.ReplayCache))
	}
	if c.KeyRetention != 0 && c.KeyRetention < time.Hour {
		mistakes = append(mistakes, mistake("ERP_KEY_RETENTION", "%s is less than an hour: callers may still be trying", c.KeyRetention))
	}
	mistakes = append(mistakes, validateTimeout("ERP_REQUEST_TIMEOUT", c.RequestTimeout), validateTimeout("ERP_SHUTDOWN_TIMEOUT", c.ShutdownTimeout), c.Registering.check(),
		c.Reconcile.check(orDefault(c.Registering.TotalTime, invoice.DefaultRegistrationTime)), c.Retention.check(c.KeyRetention), c.Queue.check("ERP_"), c.Access.check("ERP_"), c.Watch.check("ERP_"), c.Debug.check("ERP_"), c.Conns.check("ERP_"))
	return errors.Join(mistakes...)
}

func checkInFlight(prefix string, most, share int) error {
	var all, one error
	if most < 0 {
		all = mistake(prefix+"MAX_IN_FLIGHT", "%d is not positive", most)
	}
	if share < 0 || most > 0 && share > most {
		one = mistake(prefix+"MAX_IN_FLIGHT_PER_TENANT", "%d is more than there are for all tenants, or negative", share)
	}
	return errors.Join(all, one)
}

func validateTimeout(variable string, d time.Duration) error {
	if d != 0 && (d < time.Second || d > 10*time.Minute) {
		return mistake(variable, "%s is not from 1s to 10m", d)
	}
	return nil
}

func validateDatabaseURL(variable, dsn string) error {
	if dsn == "" {
		return mistake(variable, "is not set: say where the database is, such as postgres://user:secret@localhost:5432/name")
	}
	if err := postgres.CheckDSN(dsn); err != nil {
		return mistake(variable, "%v", err)
	}
	return nil
}

// ERPSchema is what the ERP's database must look like for this program.
func ERPSchema() postgres.Schema {
	return postgres.Schema{
		Name: "erp", FS: db.ERPMigrations(), River: true, MigrateCommand: "erp-api migrate up", Foreign: "orders",
	}
}

// RunERP serves the ERP until ctx ends, and returns nil after a graceful stop. It refuses to start on a schema that
// is older or newer than the program knows, on a database that answers commits before they are on disk, and on targets
// that can't be served as they are set. ready, where given, is told the address once requests are accepted.
//
// It stops in this order, all within the shutdown time: no new requests, and those at work end; no new registrations, and
// those at work end; those that still have not are interrupted, which leaves them unknown, to be settled by whoever comes
// next.
func RunERP(ctx context.Context, cfg ERPConfig, log *slog.Logger, ready func(addr string)) error {
	if err := cfg.Check(); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	cfg.ShutdownTimeout = orDefault(cfg.ShutdownTimeout, 20*time.Second)
	cfg.RequestTimeout = orDefault(cfg.RequestTimeout, 20*time.Second)
	traces, err := telemetry.Start(ctx, "erp-api", cfg.Traces, log)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	flush := traces.ShareOf(cfg.ShutdownTimeout)
	defer traces.Close(flush)
	cfg.ShutdownTimeout -= flush
	slow := postgres.NewSlowQueries(cfg.Watch.SlowQuery, log)
	replays := invoice.NewReplays(cfg.ReplayCache << 20)
	pool, err := postgres.OpenPool(ctx, postgres.PoolConfig{
		DSN: cfg.DatabaseURL, ApplicationName: "erp-api", MaxConns: cfg.MaxConns, Tracer: traces.Queries(), Slow: slow,
		Opened: replays.Forget,
	})
	if err != nil {
		return err
	}
	defer closePool(pool, log)
	if err := cfg.Schema.check(ctx, pool, ERPSchema(), log); err != nil {
		return err
	}
	if err := postgres.CheckDurability(ctx, pool, log); err != nil {
		return err
	}
	if err := tenantdb.New(pool).Check(ctx); err != nil {
		return err
	}
	registering, err := newRegistering(ctx, cfg, pool, traces, slow, log)
	if err != nil {
		return err
	}
	defer registering.close()
	watching, err := cfg.Watch.start(ctx, pool, slow, log)
	if err != nil {
		return err
	}
	defer watching.stop()
	closeDebug, err := cfg.Debug.listen(ctx, log)
	if err != nil {
		return err
	}
	defer closeDebug()
	certificate, err := cfg.Access.TLS.server(log)
	if err != nil {
		return err
	}
	stopping := new(Stopping)
	able := &readiness{pool: pool, schema: ERPSchema(), stopping: stopping, working: registering.working()}
	invoices := invoice.NewService(pool, invoice.Options{
		Logger: log, KeyRetention: cfg.KeyRetention, Registrations: registering.queue, Committed: registering.metrics.Committed,
		Reconciliations: registering.queue, ReconcileOverlap: cfg.Reconcile.Overlap,
		Replays: replays,
	})
	store := erpstore.New(pool)
	deps, err := cfg.Access.deps(store, log)
	if err != nil {
		return err
	}
	deps.Tokens, deps.Ready, deps.Pool = auth.NewVerifier(store), able.check, pool
	deps.Queue, deps.Audit = watching.ui, auth.NewAdmin(store)
	deps.RequestTimeout, deps.MaxInFlight, deps.MaxPerTenant = cfg.RequestTimeout, cfg.MaxInFlight, cfg.MaxPerTenant
	handler, err := httpapi.NewERP(httpapi.ERPDeps{
		Deps:     deps,
		Invoices: cfg.issuer(invoices), Registrations: invoices, Desk: invoices, TokenDesk: auth.NewAdmin(store),
		Collectors: slices.Concat([]prometheus.Collector{registering.metrics, registering.purge.metrics, registering.reconciliation.metrics}, replayMetrics(replays), watching.collectors),
	})
	if err != nil {
		return err
	}
	server := Server{
		Name: "erp", Listen: cfg.Listen, Handler: traces.Handler(handler), Log: log, TLS: certificate, RequestTimeout: cfg.RequestTimeout, Conns: cfg.Conns,
		ShutdownTimeout: registering.share(cfg.ShutdownTimeout), Stopping: stopping, Ready: ready,
	}
	if err := registering.start(ctx); err != nil {
		return err
	}
	served := server.Run(ctx)
	return errors.Join(served, registering.stop())
}

// issuer is invoices with group commit in front of it, unless that is off.
func (c ERPConfig) issuer(invoices *invoice.Service) httpapi.Invoices {
	if c.NoGroupCommit {
		return invoices
	}
	return invoice.NewBatcher(invoices)
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}

// closePool returns after a while in any case: a connection that somebody still holds must not keep the program
// from ending.
func closePool(pool *pgxpool.Pool, log *slog.Logger) {
	done := make(chan struct{})
	go func() {
		pool.Close()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		log.Warn("connections still in use at the end are left to the operating system")
	}
}

package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/db"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/postgres"
	"invoicebridge/internal/telemetry"
	"invoicebridge/internal/tenantdb"
)

// Defaults of a CRMConfig, and limits of its settings.
const (
	defaultCRMShutdown = 25 * time.Second
	minAttemptTimeout  = 100 * time.Millisecond // so that a test may lose its patience quickly
	maxAttemptTimeout  = 2 * time.Minute
	// riverMaxConns are the connections of the queue's own pool: fetching, completing, and a listener.
	riverMaxConns = 4
	// otherERPCalls are those that pages and reconciliation make beside the deliveries.
	otherERPCalls = 8
)

// CRMConfig is what the CRM side needs to know. Durations and numbers that are 0 stand for their defaults.
type CRMConfig struct {
	Listen          string        `name:"listen" env:"CRM_LISTEN" default:"127.0.0.1:8081" help:"Address to listen on; port 0 takes a free one."`
	DatabaseURL     string        `name:"database-url" env:"CRM_DATABASE_URL" placeholder:"URL" help:"Address of the CRM side's PostgreSQL database, such as postgres://user:secret@host/crm."`
	MaxConns        int32         `name:"max-conns" env:"CRM_MAX_CONNS" default:"8" help:"Connections to the database for orders and deliveries; more than 16 raise the latency, not the rate."`
	MaxInFlight     int           `name:"max-in-flight" env:"CRM_MAX_IN_FLIGHT" default:"512" help:"Requests of the API at work or waiting at once; those above are answered 503 before they are looked at."`
	MaxPerTenant    int           `name:"max-in-flight-per-tenant" env:"CRM_MAX_IN_FLIGHT_PER_TENANT" default:"0" help:"How many of them may be one tenant's; those above are answered 429. 0: half."`
	RequestTimeout  time.Duration `name:"request-timeout" env:"CRM_REQUEST_TIMEOUT" default:"20s" help:"Time for one request; what runs into it is answered 503."`
	Workers         int           `name:"workers" env:"CRM_WORKERS" default:"64" help:"Deliveries at once."`
	ERPURL          string        `name:"erp-url" env:"ERP_URL" placeholder:"URL" help:"Where the ERP's paths begin, such as https://erp.example/api."`
	ERPTokens       []string      `name:"erp-token" env:"ERP_TOKENS" sep:";" placeholder:"TENANT=TOKEN" help:"The ERP's bearer token of a tenant; once per tenant, in the variable separated by semicolons. TENANT=@PATH reads it from a file."`
	AttemptTimeout  time.Duration `name:"attempt-timeout" env:"ATTEMPT_TIMEOUT" default:"30s" help:"Time for one attempt at the ERP, the answer's body included."`
	TotalTime       time.Duration `name:"total-time" env:"TOTAL_TIME" default:"24h" help:"How long after its first attempt an open operation is tried before an operator is asked."`
	SweepInterval   time.Duration `name:"sweep-interval" env:"CRM_SWEEP_INTERVAL" default:"1m" help:"How often operations are looked for that lost their job."`
	ShutdownTimeout time.Duration `name:"shutdown-timeout" env:"SHUTDOWN_TIMEOUT" default:"25s" help:"Time for running requests and deliveries to end after the service was told to stop."`

	Reconcile CRMReconcile `embed:""`
	Retention CRMRetention `embed:""`
	Queue     QueueConfig  `embed:"" envprefix:"CRM_"`
	Schema    SchemaConfig `embed:"" envprefix:"CRM_"`
	Access    AccessConfig `embed:"" envprefix:"CRM_"`
	Watch     WatchConfig  `embed:"" envprefix:"CRM_"`
	Debug     DebugConfig  `embed:"" envprefix:"CRM_"`
	Conns     ConnTimes    `embed:"" envprefix:"CRM_"`

	// BackOff is the pause between attempts; not for configuration, but for those who run the service in their
	// own process. Zero: crm.DefaultBackOff.
	BackOff crm.BackOff `kong:"-"`
	// Traces is the same. Zero: the OTEL_ variables decide.
	Traces telemetry.Config `kong:"-"`
}

// Validate checks the configuration as a whole and names each mistake with its variable.
func (c CRMConfig) Validate() error {
	mistakes := []error{validateDatabaseURL("CRM_DATABASE_URL", c.DatabaseURL)}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		mistakes = append(mistakes, mistake("CRM_LISTEN", "%q is no address such as 127.0.0.1:8081", c.Listen))
	}
	if c.MaxConns < 0 || c.MaxConns > 1000 {
		mistakes = append(mistakes, mistake("CRM_MAX_CONNS", "%d is not from 1 to 1000", c.MaxConns))
	}
	mistakes = append(mistakes, checkInFlight("CRM_", c.MaxInFlight, c.MaxPerTenant))
	if c.Workers < 0 || c.Workers > 1000 {
		mistakes = append(mistakes, mistake("CRM_WORKERS", "%d is not from 1 to 1000", c.Workers))
	}
	if c.TotalTime != 0 && c.TotalTime < time.Second {
		mistakes = append(mistakes, mistake("TOTAL_TIME", "%s is less than a second", c.TotalTime))
	}
	if c.SweepInterval != 0 && c.SweepInterval < time.Second {
		mistakes = append(mistakes, mistake("CRM_SWEEP_INTERVAL", "%s is less than a second", c.SweepInterval))
	}
	mistakes = append(mistakes, validateTimeout("CRM_REQUEST_TIMEOUT", c.RequestTimeout),
		validateTimeout("SHUTDOWN_TIMEOUT", c.ShutdownTimeout), c.validateAttemptTimeout(), c.Retention.check(), c.Queue.check("CRM_"), c.Access.check("CRM_"), c.Watch.check("CRM_"), c.Debug.check("CRM_"), c.Conns.check("CRM_"),
		c.Reconcile.check(orDefault(c.TotalTime, crm.DefaultTotalTime), c.Retention.keep().WithDefaults().PersonalData))
	if _, err := c.erpClient(); err != nil {
		mistakes = append(mistakes, mistake("ERP_URL", "%v", err))
	}
	if _, err := readERPTokens(c.ERPTokens, os.ReadFile); err != nil {
		mistakes = append(mistakes, err)
	}
	return errors.Join(mistakes...)
}

func (c CRMConfig) validateAttemptTimeout() error {
	if c.AttemptTimeout != 0 && (c.AttemptTimeout < minAttemptTimeout || c.AttemptTimeout > maxAttemptTimeout) {
		return mistake("ATTEMPT_TIMEOUT", "%s is not from %s to %s", c.AttemptTimeout, minAttemptTimeout, maxAttemptTimeout)
	}
	return nil
}

func (c CRMConfig) erpClient() (*erpapi.Client, error) { return c.tracedClient(nil) }

func (c CRMConfig) tracedClient(traces *telemetry.Traces) (*erpapi.Client, error) {
	return erpapi.NewClient(erpapi.ClientConfig{
		BaseURL: c.ERPURL, AttemptTimeout: c.AttemptTimeout, KeptConnections: cmp.Or(c.Workers, jobs.DefaultWorkers) + otherERPCalls,
		Wrap: traces.Wrap("erp"),
	})
}

// CRMSchema is what the CRM side's database must look like for this program.
func CRMSchema() postgres.Schema {
	return postgres.Schema{
		Name: "crm", FS: db.CRMMigrations(), River: true, MigrateCommand: "crm-worker migrate up", Foreign: "invoices",
	}
}

// RunCRM takes orders and delivers their operations until ctx ends, and returns nil after a graceful stop. It
// refuses to start on a schema that is older or newer than the program knows, and on a database that answers commits
// before they are on disk. ready, where given, is told the address once requests are accepted.
//
// It stops in this order, all within the shutdown time: no new requests, and those at work end; no new deliveries,
// and those at work end; those that still have not are interrupted, which leaves their operations unknown, to be
// sent again under the same key by whoever comes next.
func RunCRM(ctx context.Context, cfg CRMConfig, log *slog.Logger, ready func(addr string)) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	cfg.ShutdownTimeout = orDefault(cfg.ShutdownTimeout, defaultCRMShutdown)
	cfg.RequestTimeout = orDefault(cfg.RequestTimeout, 20*time.Second)
	traces, err := telemetry.Start(ctx, "crm-worker", cfg.Traces, log)
	if err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	flush := traces.ShareOf(cfg.ShutdownTimeout)
	defer traces.Close(flush)
	cfg.ShutdownTimeout -= flush
	slow := postgres.NewSlowQueries(cfg.Watch.SlowQuery, log)
	pool, err := openCRMPool(ctx, cfg, traces, slow, log)
	if err != nil {
		return err
	}
	defer closePool(pool, log)
	queuePool, err := postgres.OpenPool(ctx, postgres.PoolConfig{
		DSN: cfg.Queue.url(cfg.DatabaseURL), ApplicationName: "crm-worker queue", MaxConns: riverMaxConns, Tracer: traces.Queries(), Slow: slow,
		RuntimeParams: jobs.SessionSettings(),
	})
	if err != nil {
		return err
	}
	defer closePool(queuePool, log)
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
	side, err := newCRMSide(cfg, pool, queuePool, watching, traces, log)
	if err != nil {
		return err
	}
	return side.run(ctx, ready)
}

func openCRMPool(ctx context.Context, cfg CRMConfig, traces *telemetry.Traces, slow *postgres.SlowQueries, log *slog.Logger) (*pgxpool.Pool, error) {
	pool, err := postgres.OpenPool(ctx, postgres.PoolConfig{
		DSN: cfg.DatabaseURL, ApplicationName: "crm-worker", MaxConns: cfg.MaxConns, Tracer: traces.Queries(), Slow: slow,
	})
	if err != nil {
		return nil, err
	}
	if err := cfg.Schema.check(ctx, pool, CRMSchema(), log); err != nil {
		pool.Close()
		return nil, err
	}
	if err := postgres.CheckDurability(ctx, pool, log); err != nil {
		pool.Close()
		return nil, err
	}
	if err := tenantdb.New(pool).Check(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

// crmSide is the CRM side's service, put together.
type crmSide struct {
	server Server
	worker *jobs.Client
	client *erpapi.Client
	log    *slog.Logger
	// shutdown is the time for everything that runs to end.
	shutdown time.Duration
}

// shareOfShutdown is the part of the shutdown time that running requests get to end by themselves, and after them
// running deliveries. What remains is for interrupted deliveries to write down that they were.
func shareOfShutdown(all time.Duration) time.Duration { return all * 2 / 5 }

// newCRMSide makes the parts. The working client comes last: everything its jobs need is there by then.
func newCRMSide(cfg CRMConfig, pool, queuePool *pgxpool.Pool, watching *watching, traces *telemetry.Traces, log *slog.Logger) (*crmSide, error) {
	client, err := cfg.tracedClient(traces)
	if err != nil {
		return nil, err
	}
	tokens, err := readERPTokens(cfg.ERPTokens, os.ReadFile)
	if err != nil {
		return nil, err
	}
	inserter, err := jobs.NewInserter(pool, log, jobs.WithTraces(traces.Provider()))
	if err != nil {
		return nil, err
	}
	metrics := jobs.NewMetrics(pool, log)
	purge := newCRMPurge(cfg.Retention, pool, log)
	keys := jobs.NewKeyRetentionMetrics(cfg.LongestRetry())
	deliverer := crm.NewDeliverer(pool, crm.WatchKeyRetention(client, cfg.LongestRetry(), log, keys.KeyKept), crm.DelivererOptions{
		Token: tokens.of, Worker: workerName(), TotalTime: cfg.TotalTime, BackOff: cfg.BackOff, Logger: log, Observer: metrics,
	})
	reconciliation := newCRMReconciliation(cfg.Reconcile, pool, client, tokens, jobs.NewSweeper(pool, inserter, deliverer, 0), log)
	certificate, err := cfg.Access.TLS.server(log)
	if err != nil {
		return nil, err
	}
	stopping := new(Stopping)
	able := &readiness{pool: pool, schema: CRMSchema(), stopping: stopping}
	store := crmstore.New(pool)
	deps, err := cfg.Access.deps(store, log)
	if err != nil {
		return nil, err
	}
	deps.Tokens, deps.Ready, deps.Pool = auth.NewVerifier(store), able.check, pool
	deps.Queue, deps.Audit = watching.ui, auth.NewAdmin(store)
	deps.RequestTimeout, deps.MaxInFlight, deps.MaxPerTenant = cfg.RequestTimeout, cfg.MaxInFlight, cfg.MaxPerTenant
	orders := crm.NewService(pool, inserter, crm.Options{
		Logger: log, Submitted: metrics.OrderSubmitted, Actions: inserter, ERP: client, Token: tokens.of,
		ReconcileOverlap: cfg.Reconcile.overlap(),
	})
	handler, err := httpapi.NewCRM(httpapi.CRMDeps{
		Deps:   deps,
		Orders: orders,
		Console: crm.NewConsole(pool, crm.ConsoleOptions{
			ERP: client, Token: tokens.of, Queue: jobs.NewQueueDepth(pool), Logger: log,
		}),
		Collectors: slices.Concat([]prometheus.Collector{metrics, purge.metrics, reconciliation.metrics}, keys.Collectors(), watching.collectors),
	})
	if err != nil {
		return nil, err
	}
	worker, err := jobs.NewClient(queuePool, jobs.Deps{
		Deliverer: deliverer, Inserter: inserter, Metrics: metrics, Logger: log,
	}, jobs.Config{
		Workers: cfg.Workers, SweepInterval: cfg.SweepInterval,
		SoftStopTimeout: shareOfShutdown(cfg.ShutdownTimeout), Purge: purge.job, Reconcile: reconciliation.job,
		Replays: jobs.Replays{Runs: orders, Logger: log}, Traces: traces.Provider(), PollOnly: cfg.Queue.PollOnly,
	})
	if err != nil {
		return nil, err
	}
	able.working = worker.Working
	return &crmSide{
		server: Server{
			Name: "crm", Listen: cfg.Listen, Handler: traces.Handler(handler), Log: log, TLS: certificate, RequestTimeout: cfg.RequestTimeout, Conns: cfg.Conns,
			ShutdownTimeout: shareOfShutdown(cfg.ShutdownTimeout), Stopping: stopping,
		},
		worker: worker, client: client, log: log, shutdown: cfg.ShutdownTimeout,
	}, nil
}

// run works until ctx ends.
func (s *crmSide) run(ctx context.Context, ready func(addr string)) error {
	// Not ctx: its end would stop the worker before, or beside, the server.
	if err := s.worker.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	s.server.Ready = ready
	served := s.server.Run(ctx)
	return errors.Join(served, s.stopWorker())
}

func (s *crmSide) stopWorker() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.shutdown-shareOfShutdown(s.shutdown))
	defer cancel()
	defer s.client.CloseIdleConnections()
	err := s.worker.Stop(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		// What still runs is an attempt that was committed before its request left; the next process takes it up
		// when its lease ends.
		s.log.Warn("deliveries still running at the end of the shutdown time are left to the next process")
		return nil
	}
	return err
}

// workerName names this process in the attempts it makes.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

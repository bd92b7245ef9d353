package app_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/app"
	"invoicebridge/internal/postgres"
	"invoicebridge/internal/testdb"
)

// running is a server with a handler of the test's own.
type running struct {
	url      string
	stop     context.CancelFunc
	ended    chan error
	stopping *app.Stopping
}

func run(t *testing.T, shutdown time.Duration, h http.HandlerFunc) running {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	r := running{stop: stop, ended: make(chan error, 1), stopping: new(app.Stopping)}
	address := make(chan string, 1)
	s := app.Server{
		Name: "test", Listen: "127.0.0.1:0", Handler: h, Log: slog.New(slog.DiscardHandler), RequestTimeout: time.Minute,
		ShutdownTimeout: shutdown, Stopping: r.stopping, Ready: func(addr string) { address <- addr },
	}
	go func() { r.ended <- s.Run(ctx) }()
	r.url = "http://" + <-address
	return r
}

type outcome struct {
	body string
	err  error
}

func (r running) get() <-chan outcome {
	out := make(chan outcome, 1)
	go func() {
		response, err := http.Get(r.url)
		if err != nil {
			out <- outcome{err: err}
			return
		}
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		out <- outcome{string(body), err}
	}()
	return out
}

func TestStopLetsRunningRequestsEndAndTakesNoNewOnes(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	r := run(t, time.Minute, func(w http.ResponseWriter, _ *http.Request) {
		close(entered)
		<-release
		_, _ = io.WriteString(w, "whole")
	})
	answer := r.get()
	<-entered
	r.stop()
	testdb.Await(t, "readiness is off", r.stopping.Begun)
	testdb.Await(t, "no new connection is taken", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
		if err == nil {
			conn.Close()
		}
		return err != nil
	})
	select {
	case err := <-r.ended:
		t.Fatalf("the server ended (%v) with a request at work", err)
	default:
	}
	close(release)
	if got := <-answer; got.err != nil || got.body != "whole" {
		t.Errorf("the running request got %q, %v", got.body, got.err)
	}
	if err := <-r.ended; err != nil {
		t.Errorf("a graceful stop is no error: %v", err)
	}
}

func TestStopCutsRequestsOffAtTheEndOfTheShutdownTime(t *testing.T) {
	t.Parallel()
	entered, cancelled := make(chan struct{}), make(chan error, 1)
	r := run(t, 50*time.Millisecond, func(_ http.ResponseWriter, request *http.Request) {
		close(entered)
		<-request.Context().Done()
		cancelled <- request.Context().Err()
	})
	answer := r.get()
	<-entered
	r.stop()
	if err := <-r.ended; err != nil {
		t.Errorf("a stop at the end of the time is no error: %v", err)
	}
	if err := <-cancelled; !errors.Is(err, context.Canceled) {
		t.Errorf("the request's context ended with %v", err)
	}
	if got := <-answer; got.err == nil {
		t.Errorf("the request got an answer: %q", got.body)
	}
}

func TestPortInUseIsToldWithItsAddress(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s := app.Server{Name: "erp", Listen: taken.Addr().String(), Log: slog.New(slog.DiscardHandler)}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), taken.Addr().String()) {
		t.Errorf("got %v, want an error that names %s", err, taken.Addr())
	}
}

func TestEveryMistakeInTheConfigurationIsNamedWithItsVariable(t *testing.T) {
	t.Parallel()
	err := app.ERPConfig{
		Listen: "8080", DatabaseURL: "postgres://u:hush@/x?port=none", MaxConns: -1, MaxInFlight: -1, MaxPerTenant: -1, ReplayCache: -1,
		KeyRetention: time.Minute, RequestTimeout: time.Hour, ShutdownTimeout: time.Nanosecond,
		Registering: app.RegisterConfig{Workers: -1, TargetTimeout: time.Hour, TotalTime: 1, HeldTime: 1, SweepInterval: 1},
	}.Check()
	if err == nil {
		t.Fatal("nothing was found wrong")
	}
	for _, variable := range []string{
		"ERP_LISTEN", "ERP_DATABASE_URL", "ERP_MAX_CONNS", "ERP_MAX_IN_FLIGHT", "ERP_MAX_IN_FLIGHT_PER_TENANT", "ERP_REPLAY_CACHE", "ERP_KEY_RETENTION", "ERP_REQUEST_TIMEOUT", "ERP_SHUTDOWN_TIMEOUT",
		"ERP_REGISTER_WORKERS", "ERP_TARGET_TIMEOUT", "ERP_REGISTER_TOTAL_TIME", "ERP_REGISTER_HELD_TIME", "ERP_REGISTER_SWEEP_INTERVAL",
	} {
		if strings.Count(err.Error(), variable+": ") != 1 {
			t.Errorf("%s is not named once:\n%v", variable, err)
		}
	}
	if strings.Contains(err.Error(), "hush") {
		t.Errorf("the password is told:\n%v", err)
	}
	ok := app.ERPConfig{Listen: "127.0.0.1:0", DatabaseURL: "postgres://localhost/erp"}
	if err := ok.Check(); err != nil {
		t.Errorf("zero values stand for defaults: %v", err)
	}
	log := app.LogConfig{Format: "xml", Level: "loud"}.Check()
	if log == nil || !strings.Contains(log.Error(), "LOG_FORMAT") || !strings.Contains(log.Error(), "LOG_LEVEL") {
		t.Errorf("log configuration: %v", log)
	}
}

func TestERPRefusesToServeOnASchemaItDoesNotKnow(t *testing.T) {
	t.Parallel()
	serve := func(dsn string) error {
		return app.RunERP(t.Context(), app.ERPConfig{Listen: "127.0.0.1:0", DatabaseURL: dsn}, slog.New(slog.DiscardHandler),
			func(string) { t.Error("it serves") })
	}
	if err := serve(testdb.Empty(t)); !errors.Is(err, postgres.ErrSchemaOutdated) || !strings.Contains(err.Error(), "erp-api migrate up") {
		t.Errorf("an empty database: %v", err)
	}
	if err := serve(newer(t, testdb.ERP(t))); !errors.Is(err, postgres.ErrSchemaNewer) {
		t.Errorf("a newer database: %v", err)
	}
}

// M5.
func TestAReleaseCanBeTakenBackWhereItsOperatorSaysSo(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(ctx context.Context, ready func(string)) error{
		"erp": func(ctx context.Context, ready func(string)) error {
			return app.RunERP(ctx, app.ERPConfig{Listen: "127.0.0.1:0", DatabaseURL: newer(t, testdb.ERP(t)), Schema: app.SchemaConfig{AllowNewer: true}},
				slog.New(slog.DiscardHandler), ready)
		},
		"crm": func(ctx context.Context, ready func(string)) error {
			return app.RunCRM(ctx, app.CRMConfig{Listen: "127.0.0.1:0", DatabaseURL: newer(t, testdb.CRM(t)), ERPURL: "http://127.0.0.1:1",
				ERPTokens: []string{"acme=ibt_x"}, Schema: app.SchemaConfig{AllowNewer: true}}, slog.New(slog.DiscardHandler), ready)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			served := false
			if err := run(ctx, func(string) { served = true; stop() }); err != nil || !served {
				t.Errorf("it does not start: %v", err)
			}
		})
	}
}

// newer makes a database's schema newer than this program, and gives its address.
func newer(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	if _, err := pool.Exec(t.Context(), "INSERT INTO schema_version (version_id, is_applied) VALUES (99999, true)"); err != nil {
		t.Fatal(err)
	}
	return testdb.DSN(t, pool)
}

func TestNeitherServiceTakesTheOthersDatabase(t *testing.T) {
	t.Parallel()
	for other, check := range map[*pgxpool.Pool]postgres.Schema{
		testdb.CRM(t): app.ERPSchema(), testdb.ERP(t): app.CRMSchema(),
	} {
		if err := postgres.CheckSchema(t.Context(), other, check); !errors.Is(err, postgres.ErrSchemaForeign) {
			t.Errorf("%s is served from the other's database: %v", check.Name, err)
		}
		if _, err := postgres.Migrate(t.Context(), testdb.DSN(t, other), check, nil); !errors.Is(err, postgres.ErrSchemaForeign) {
			t.Errorf("%s migrates the other's database: %v", check.Name, err)
		}
	}
}

func TestERPTellsWhichDatabaseCannotBeReached(t *testing.T) {
	t.Parallel()
	err := app.RunERP(t.Context(), app.ERPConfig{Listen: "127.0.0.1:0", DatabaseURL: "postgres://u:hush@127.0.0.1:1/erp"},
		slog.New(slog.DiscardHandler), nil)
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1") || strings.Contains(err.Error(), "hush") {
		t.Errorf("got %v, want an error with the address and without the password", err)
	}
}

func TestLoggerHasTheConfiguredFormAndLevel(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, err := app.NewLogger(&out, app.LogConfig{Format: "json", Level: "warn"})
	if err != nil {
		t.Fatal(err)
	}
	log.Info("quiet")
	log.Warn("loud")
	if got := out.String(); strings.Contains(got, "quiet") || !strings.HasPrefix(got, "{") || !strings.Contains(got, `"msg":"loud"`) {
		t.Errorf("logged: %s", got)
	}
}

package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/retention"
	"invoicebridge/internal/testdb"
)

const day = 24 * time.Hour

func goodERPConfig() ERPConfig {
	return ERPConfig{Listen: "127.0.0.1:0", DatabaseURL: "postgres://localhost/erp"}
}

// wantRefusal: the error has a line of the first variable that names each of the others.
func wantRefusal(t *testing.T, err error, variable string, others ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("accepted, though %s is wrong", variable)
		return
	}
	for line := range strings.Lines(err.Error()) {
		if !strings.Contains(line, variable+": ") {
			continue
		}
		for _, other := range others {
			if !strings.Contains(line, other) {
				t.Errorf("the line does not name %s:\n%s", other, line)
			}
		}
		return
	}
	t.Errorf("%s is not named:\n%v", variable, err)
}

func TestAReservationMustOutliveTheLongestRetry(t *testing.T) {
	t.Parallel()
	if invoice.DefaultKeyRetention < retention.DefaultRetryTimes().Longest() {
		t.Errorf("the defaults do not fit each other")
	}
	cfg := goodERPConfig()
	cfg.KeyRetention = 20 * day
	wantRefusal(t, cfg.Check(), "ERP_KEY_RETENTION", "480h", "ERP_LONGEST_RETRY=792h10m")
	wantRefusal(t, RunERP(t.Context(), cfg, slog.New(slog.DiscardHandler), func(string) { t.Error("it serves") }), "ERP_KEY_RETENTION", "ERP_LONGEST_RETRY")
	cfg.Retention.LongestRetry = 20 * day
	if err := cfg.Check(); err != nil {
		t.Errorf("just as long is long enough: %v", err)
	}
	cfg.Retention.LongestRetry++
	wantRefusal(t, cfg.Check(), "ERP_KEY_RETENTION", "ERP_LONGEST_RETRY")
	cfg.Retention.LongestRetry = time.Minute
	wantRefusal(t, cfg.Check(), "ERP_LONGEST_RETRY")
}

func TestMessagesMustBeRecognisedForAsLongAsTheyMayCome(t *testing.T) {
	t.Parallel()
	cfg := goodCRMConfig()
	cfg.Retention.Inbox = 29 * day
	wantRefusal(t, cfg.Validate(), "CRM_INBOX_RETENTION", "696h", "MAX_SOURCE_DELAY=720h")
	cfg.Retention.MaxSourceDelay = 29 * day
	if err := cfg.Validate(); err != nil {
		t.Error(err)
	}
	cfg.Retention.PersonalData = day
	wantRefusal(t, cfg.Validate(), "CRM_RECONCILE_OVERLAP", "48h", "CRM_PERSONAL_DATA_RETENTION=24h")
	cfg.Retention = CRMRetention{CRMKeep: CRMKeep{MaxSourceDelay: -1, Attempts: 1, Pace: retention.Pace{Batch: -1}}, Schedule: retention.Schedule{RunTime: 1}}
	for _, variable := range []string{"MAX_SOURCE_DELAY", "CRM_ATTEMPT_RETENTION", "CRM_PURGE_BATCH", "CRM_PURGE_RUN_TIME"} {
		wantRefusal(t, cfg.Validate(), variable)
	}
}

func TestBothSidesSettingsAreCheckedTogether(t *testing.T) {
	t.Parallel()
	erp, side := goodERPConfig(), goodCRMConfig()
	if err := CheckTogether(erp, side); err != nil {
		t.Errorf("the defaults do not fit each other: %v", err)
	}
	side.TotalTime = 70 * day
	wantRefusal(t, CheckTogether(erp, side), "ERP_KEY_RETENTION", "TOTAL_TIME", "CRM_RECONCILE_OVERLAP", "MAX_SOURCE_DELAY", "2448h10m")
}

func TestTheDefaultRetryTimesAreThoseOfTheServices(t *testing.T) {
	t.Parallel()
	want := retention.RetryTimes{
		Total: crm.DefaultTotalTime, Rescue: retention.RescueTime, ReconciliationWindow: crm.DefaultReconcileOverlap,
		SourceDelay: retention.DefaultMaxSourceDelay,
	}
	if diff := cmp.Diff(want, retention.DefaultRetryTimes()); diff != "" {
		t.Error(diff)
	}
	var flags struct {
		ERP ERPRetention `embed:""`
	}
	parse(t, &flags)
	if want := retention.DefaultRetryTimes().Longest(); flags.ERP.LongestRetry != want {
		t.Errorf("the flag's default is %s, want %s", flags.ERP.LongestRetry, want)
	}
	if flags.ERP.Pace.Batch != retention.DefaultBatch || flags.ERP.Schedule.RunTime != retention.DefaultRunTime {
		t.Errorf("defaults are %+v", flags.ERP)
	}
}

func parse(t *testing.T, into any, args ...string) *kong.Context {
	t.Helper()
	parser, err := kong.New(into, kong.Vars{"database_env": "NO_SUCH_VARIABLE", "actor": "tester"})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(args)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// runPurge runs a command "purge" as a program would.
func runPurge(t *testing.T, into any, env AdminEnv, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	env.Stdout = &out
	parsed := parse(t, into, append([]string{"purge"}, args...)...)
	parsed.BindTo(t.Context(), (*context.Context)(nil))
	if err := parsed.Run(slog.New(slog.DiscardHandler), &env); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestPurgeByHandCountsFirstThenPurgesAndIsWrittenDown(t *testing.T) {
	t.Parallel()
	erp, side := testdb.ERP(t), testdb.CRM(t)
	exec(t, erp, "INSERT INTO tenants (id, name) VALUES ('acme', 'Acme'), ('other', 'Other')")
	exec(t, erp, `INSERT INTO key_conflicts (tenant_id, operation, key, occurred_at, caller, differences)
		SELECT 'acme', 'o', 'k', now() - n * interval '1 day', 'c', '{}' FROM unnest('{1,364,366,900}'::int[]) AS n`)
	exec(t, side, "INSERT INTO tenants (id, name) VALUES ('acme', 'Acme')")
	exec(t, side, `INSERT INTO inbox_messages (tenant_id, source, channel, order_id, version, content_hash, outcome, received_at)
		SELECT 'acme', 's', 'api', 'o', 1, decode(repeat('00', 32), 'hex'), 'created', now() - n * interval '1 day' FROM unnest('{1,50,100}'::int[]) AS n`)
	var erpCommands struct {
		Purge ERPPurgeCommand `cmd:""`
	}
	var crmCommands struct {
		Purge CRMPurgeCommand `cmd:""`
	}
	erpEnv := AdminEnv{Schema: ERPSchema(), Store: func(p *pgxpool.Pool) auth.AdminStore { return erpstore.New(p) }}
	crmEnv := AdminEnv{Schema: CRMSchema(), Store: func(p *pgxpool.Pool) auth.AdminStore { return crmstore.New(p) }}
	erpURL, crmURL := "--database-url="+testdb.DSN(t, erp), "--database-url="+testdb.DSN(t, side)

	for _, step := range []struct {
		got, want string
	}{
		{runPurge(t, &erpCommands, erpEnv, erpURL, "--dry-run"), "key_conflicts 2 0"},
		{fmt.Sprint(count(t, erp, "key_conflicts"), count(t, erp, "audit_entries")), "4 0"},
		{runPurge(t, &erpCommands, erpEnv, erpURL, "--reason=audit"), "key_conflicts 2 0"},
		{fmt.Sprint(count(t, erp, "key_conflicts"), count(t, erp, "audit_entries WHERE actor = 'tester' AND action = 'retention.purge' AND reason = 'audit'")), "2 2"},
		{runPurge(t, &crmCommands, crmEnv, crmURL, "--inbox-retention=960h", "--max-source-delay=24h"), "inbox_messages 2 0"},
		{fmt.Sprint(count(t, side, "inbox_messages"), count(t, side, "audit_entries")), "1 1"},
	} {
		if !strings.Contains(strings.Join(strings.Fields(step.got), " "), step.want) {
			t.Errorf("got\n%s\nwant in it %q", step.got, step.want)
		}
	}
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func count(t *testing.T, pool *pgxpool.Pool, from string) (n int) {
	t.Helper()
	if err := pool.QueryRow(context.Background(), "SELECT count(*) FROM "+from).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestTheMetricsTellHowLongTheERPKeepsKeysAndHowLongItMust(t *testing.T) {
	first := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	r := startCRM(t, func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Idempotency-First-Seen", first.Format(http.TimeFormat))
		w.Header().Set("Idempotency-Expires", first.Add(10*day).Format(http.TimeFormat))
		issuing(w, req)
	}, func(*CRMConfig) {})
	r.submit()
	r.until(crm.StatusSucceeded)
	metrics := r.metrics()
	for _, want := range []string{"crm_erp_key_retention_seconds 864000", "crm_longest_retry_seconds 2.8518e+06", `crm_purge_overdue_seconds{table="orders"} 0`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("%s is not in the metrics:\n%s", want, metrics)
		}
	}
	r.stopped()
}

func (r *runningCRM) metrics() string {
	r.t.Helper()
	return scrape(r.t, r.url, crmstore.New(r.pool))
}

// scrape reads the figures with a token for them, of the tenant acme.
func scrape(t *testing.T, url string, store auth.AdminStore) string {
	t.Helper()
	_, token, err := auth.NewAdmin(store).CreateToken(t.Context(), "acme", auth.RoleMetrics, "test", audit.By{Actor: "test"})
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestTheERPPurgesByItself(t *testing.T) {
	t.Parallel()
	pool := testdb.ERP(t)
	exec(t, pool, "INSERT INTO tenants (id, name) VALUES ('acme', 'Acme')")
	exec(t, pool, `INSERT INTO idempotency_records (tenant_id, operation, key, fingerprint_version, fingerprint, status, answer_status,
			resource_id, first_seen_at, completed_at, expires_at)
		SELECT 'acme', 'issue_invoice', n::text, 1, decode(repeat('00', 32), 'hex'), 'succeeded', 201,
			gen_random_uuid(), now() - interval '90 days', now(), now() + n * interval '1 day' FROM generate_series(-3, 2) AS n`)
	cfg := goodERPConfig()
	cfg.DatabaseURL = testdb.DSN(t, pool)
	ctx, stop := context.WithCancel(t.Context())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- RunERP(ctx, cfg, slog.New(slog.DiscardHandler), func(addr string) { ready <- addr }) }()
	var addr string
	select {
	case addr = <-ready:
	case err := <-ended:
		t.Fatalf("RunERP: %v", err)
	}
	testdb.Await(t, "the purge's metrics", func() bool {
		metrics := scrape(t, "http://"+addr, erpstore.New(pool))
		return strings.Contains(metrics, `erp_purged_rows_total{table="idempotency_records"} 4`) &&
			strings.Contains(metrics, `erp_purge_overdue_seconds{table="idempotency_records"} 0`)
	})
	if n := count(t, pool, "idempotency_records"); n != 2 {
		t.Errorf("%d reservations left", n)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("the service ended with %v", err)
	}
}

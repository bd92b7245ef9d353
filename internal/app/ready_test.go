package app

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/testdb"
)

// probed is a CRM side that anybody may ask whether it is ready.
type probed struct {
	t    *testing.T
	pool *pgxpool.Pool
	able *readiness
	log  strings.Builder
}

func setupProbed(t *testing.T, dsn string) *probed {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 2
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return &probed{t: t, pool: pool, able: &readiness{
		pool: pool, schema: CRMSchema(), stopping: new(Stopping), working: func() bool { return true },
	}}
}

func (p *probed) exec(sql string) {
	p.t.Helper()
	if _, err := p.pool.Exec(context.Background(), sql); err != nil {
		p.t.Fatal(err)
	}
}

// ask gives the status of /readyz and the words of what is missing, and fails if the answer tells where the database is or
// what was asked of it.
func (p *probed) ask() (status int, missing []string) {
	p.t.Helper()
	handler, err := httpapi.NewCRM(httpapi.CRMDeps{
		Deps:   httpapi.Deps{Tokens: auth.NewVerifier(crmstore.New(p.pool)), Ready: p.able.check, Logger: slog.New(slog.NewTextHandler(&p.log, nil))},
		Orders: crm.NewService(p.pool, nil, crm.Options{}),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	response, err := http.Get(server.URL + "/readyz")
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	db := p.pool.Config().ConnConfig
	for _, secret := range []string{db.Host, db.Password, db.Database, db.User + "@", "SELECT", "SQLSTATE", "dial"} {
		if secret != "" && strings.Contains(string(body), secret) {
			p.t.Errorf("the answer tells %q: %s", secret, body)
		}
	}
	var document struct {
		Type    string            `json:"type"`
		Detail  string            `json:"detail"`
		Missing []httpapi.Missing `json:"missing"`
	}
	if err := json.Unmarshal(body, &document); err != nil {
		p.t.Fatalf("%v: %s", err, body)
	}
	for _, m := range document.Missing {
		missing = append(missing, m.What)
		if m.Detail == "" || !strings.Contains(document.Detail, m.Detail) {
			p.t.Errorf("%s has the sentence %q, the whole is %q", m.What, m.Detail, document.Detail)
		}
	}
	if response.StatusCode == http.StatusServiceUnavailable &&
		(document.Type != "/problems/unavailable" || response.Header.Get("Retry-After") == "") {
		p.t.Errorf("it is no problem that says when to come again: %v %s", response.Header, body)
	}
	return response.StatusCode, missing
}

func (p *probed) lacks(words ...string) {
	p.t.Helper()
	want := http.StatusServiceUnavailable
	if len(words) == 0 {
		want = http.StatusOK
	}
	status, missing := p.ask()
	if diff := cmp.Diff(words, missing); diff != "" || status != want {
		p.t.Errorf("status is %d, want %d; missing (-want +got):\n%s", status, want, diff)
	}
	for _, word := range words {
		if !strings.Contains(p.log.String(), word) {
			p.t.Errorf("the log does not say %s:\n%s", word, p.log.String())
		}
	}
}

func TestReadinessSaysAllThatIsMissingAndReturnsWithIt(t *testing.T) {
	t.Parallel()
	p := setupProbed(t, testdb.NewCRMDSN(t))
	p.lacks()
	p.able.stopping.begun.Store(true)
	p.lacks("stopping")
	p.able.working = func() bool { return false }
	p.lacks("stopping", "worker-stopped")
	p.able.stopping.begun.Store(false)
	p.lacks("worker-stopped")
	p.able.working = nil // a process that is to work on no jobs
	p.lacks()
}

// M5: the old binary goes on working during a roll-out.
func TestASchemaThatLacksSomethingIsNotReadyAndOneThatHasMoreIs(t *testing.T) {
	t.Parallel()
	p := setupProbed(t, testdb.NewCRMDSN(t))
	p.exec("INSERT INTO schema_version (version_id, is_applied) VALUES (99999, true)")
	p.lacks()
	p.exec("DELETE FROM schema_version WHERE version_id = 99999")
	p.exec("DELETE FROM schema_version WHERE version_id = (SELECT max(version_id) FROM schema_version)")
	p.lacks("schema-older")
	setupProbed(t, testdb.NewERPDSN(t)).lacks("schema-foreign")
}

func TestConnectionsThatAreAllInUseAreNotReadyUntilOneIsFree(t *testing.T) {
	t.Parallel()
	p := setupProbed(t, testdb.NewCRMDSN(t))
	var used []*pgxpool.Conn
	for range p.pool.Config().MaxConns {
		conn, err := p.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		used = append(used, conn)
	}
	p.lacks("connections-exhausted")
	used[0].Release()
	p.lacks()
	used[1].Release()
}

func TestADatabaseThatIsAwayIsNotReadyAndNotNamed(t *testing.T) {
	t.Parallel()
	p := setupProbed(t, "postgres://ann:hush@/orders?host="+t.TempDir())
	p.lacks("database-unreachable")
	p.able.stopping.begun.Store(true)
	p.lacks("stopping", "database-unreachable")
}

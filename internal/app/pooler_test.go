package app_test

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/app"
	"invoicebridge/internal/testdb"
)

// bouncer is a PgBouncer in transaction mode, set as docs/deployment.md has it, with two sessions for each database.
type bouncer struct {
	t                *testing.T
	program, dir, at string
	as               *syscall.SysProcAttr
	cmd              *exec.Cmd
}

// startBouncer skips the test where there is none.
func startBouncer(t *testing.T, databases ...string) *bouncer {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer"
		if _, err := os.Stat(program); err != nil {
			t.Skip("PgBouncer is not installed: apt-get install pgbouncer")
		}
	}
	b := &bouncer{t: t, program: program}
	if b.dir, err = os.MkdirTemp("", "bouncer"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(b.dir) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.at = listener.Addr().String()
	_ = listener.Close()
	_, port, _ := net.SplitHostPort(b.at)
	settings := "[databases]\n"
	for _, address := range databases {
		config, err := pgx.ParseConfig(address)
		if err != nil {
			t.Fatal(err)
		}
		settings += fmt.Sprintf("%s = host=%s port=%d user=%s password=%s\n", config.Database, config.Host, config.Port, config.User, config.Password)
		b.runAsOwnerOf(config.Host)
	}
	settings += "[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = " + port + `
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
max_client_conn = 200
ignore_startup_parameters = extra_float_digits,plan_cache_mode,synchronous_commit,idle_in_transaction_session_timeout,tcp_keepalives_idle,tcp_keepalives_interval,tcp_keepalives_count,tcp_user_timeout
`
	file := filepath.Join(b.dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	if b.as != nil {
		for _, path := range []string{b.dir, file} {
			if err := os.Chown(path, int(b.as.Credential.Uid), int(b.as.Credential.Gid)); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.start()
	t.Cleanup(b.stop)
	return b
}

// runAsOwnerOf has it run as who may reach the server's socket: as root it does not run.
func (b *bouncer) runAsOwnerOf(dir string) {
	if os.Geteuid() != 0 {
		return
	}
	owner := &syscall.Credential{Uid: 65534, Gid: 65534}
	if info, err := os.Stat(dir); err == nil {
		if at, known := info.Sys().(*syscall.Stat_t); known && at.Uid != 0 {
			owner = &syscall.Credential{Uid: at.Uid, Gid: at.Gid}
		}
	}
	b.as = &syscall.SysProcAttr{Credential: owner}
}

func (b *bouncer) start() {
	b.t.Helper()
	b.cmd = exec.Command(b.program, filepath.Join(b.dir, "pgbouncer.ini")) //nolint:gosec // found above
	b.cmd.SysProcAttr = b.as
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	testdb.Await(b.t, "PgBouncer listens", func() bool {
		conn, err := net.Dial("tcp", b.at)
		if err != nil {
			return false
		}
		return conn.Close() == nil
	})
}

// stop ends it at once, with all that goes through it.
func (b *bouncer) stop() {
	_ = b.cmd.Process.Kill()
	_ = b.cmd.Wait()
}

// through is a database's address through it.
func (b *bouncer) through(address string) string {
	b.t.Helper()
	config, err := pgx.ParseConfig(address)
	if err != nil {
		b.t.Fatal(err)
	}
	at := url.URL{
		Scheme: "postgres", User: url.User(config.User), Host: b.at, Path: "/" + config.Database,
		RawQuery: "sslmode=disable&default_query_exec_mode=cache_describe",
	}
	return at.String()
}

// M4: everything goes through two sessions, of which each transaction has another, and through a death of the pooler.
func TestBothServicesWorkThroughAPoolerInTransactionMode(t *testing.T) {
	var pooler *bouncer
	w := tracing(t, func(erp *app.ERPConfig, side *app.CRMConfig) {
		pooler = startBouncer(t, erp.DatabaseURL, side.DatabaseURL)
		erp.DatabaseURL, erp.Queue.PollOnly = pooler.through(erp.DatabaseURL), true
		side.DatabaseURL, side.Queue.PollOnly = pooler.through(side.DatabaseURL), true
		erp.Registering.TargetTimeout, side.AttemptTimeout = time.Second, time.Second
	})
	const orders = 40
	side := walker{t: t, base: w.crmURL, token: w.crmToken}
	for i := range orders {
		if i == orders/2 {
			pooler.stop()
			pooler.start()
		}
		testdb.Await(t, "the order is taken", func() bool { // connections that have died are found when they are used
			return side.call("POST", "/v1/orders", orderJSON(fmt.Sprint("SO-", i)), nil,
				http.StatusCreated, http.StatusOK, http.StatusServiceUnavailable, http.StatusInternalServerError).status <= http.StatusCreated
		})
	}
	testdb.Await(t, "all are registered", func() bool {
		var n int
		w.scan(w.erp, &n, "SELECT count(*) FROM registrations WHERE status = 'succeeded'")
		return n == orders
	})
	testdb.Await(t, "all are told", func() bool {
		var n int
		w.scan(w.crm, &n, "SELECT count(*) FROM operations WHERE status = 'succeeded'")
		return n == orders
	})
	var invoices, last, locks int
	w.scan(w.erp, &invoices, "SELECT count(*) FROM invoices")
	w.scan(w.erp, &last, "SELECT sum(last_number) FROM invoice_counters")
	w.scan(w.erp, &locks, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database IN (SELECT oid FROM pg_database WHERE datname = current_database())")
	if invoices != orders || last != orders || locks != 0 {
		t.Errorf("%d invoices, numbers up to %d, %d advisory locks held, of %d orders", invoices, last, locks, orders)
	}
	for line := range strings.Lines(w.log.String()) {
		if strings.Contains(line, "prepared statement") {
			t.Error(line)
		}
	}
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

var errNoPooler = errors.New("pgbouncer is not on PATH: apt-get install pgbouncer")

// pooler is a PgBouncer in transaction mode.
type pooler struct {
	address string
	cmd     *exec.Cmd
	ended   chan struct{}
}

// poolSize is how many sessions of the server the replicas share.
const poolSize = 16

// startPooler starts one in front of a site's ERP database, with the settings of docs/deployment.md.
func (s *site) startPooler(ctx context.Context) (*pooler, error) {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		if program = "/usr/sbin/pgbouncer"; !isFile(program) {
			return nil, errNoPooler
		}
	}
	ports, err := freePorts(ctx, 1)
	if err != nil {
		return nil, err
	}
	server, err := pgx.ParseConfig(s.erpDSN)
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(ports[0])
	if err != nil {
		return nil, err
	}
	settings := fmt.Sprintf(`[databases]
%s = host=%s port=%d dbname=%s user=%s password=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = %d
max_client_conn = 500
ignore_startup_parameters = extra_float_digits,plan_cache_mode,synchronous_commit,idle_in_transaction_session_timeout,tcp_keepalives_idle,tcp_keepalives_interval,tcp_keepalives_count,tcp_user_timeout
log_connections = 0
log_disconnections = 0
`, s.erp, server.Host, server.Port, server.Database, server.User, server.Password, port, poolSize)
	dir, owner, err := s.lab.poolerHome(settings)
	if err != nil {
		return nil, err
	}
	p := &pooler{address: ports[0], ended: make(chan struct{})}
	log, err := os.Create(filepath.Join(s.lab.dir, "pgbouncer.log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), program, filepath.Join(dir, "pgbouncer.ini")) //nolint:gosec // found above
	p.cmd.Stdout, p.cmd.Stderr = log, log
	if os.Geteuid() == 0 { // which PgBouncer refuses to be
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}}
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start pgbouncer: %w", err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.ended)
	}()
	if err := p.untilReady(ctx, s.erp); err != nil {
		p.stop()
		return nil, fmt.Errorf("%w: %s", err, lastLines(log.Name(), 10))
	}
	return p, nil
}

// poolerHome writes the settings where only the server's user can read them, and says who that is.
func (l *lab) poolerHome(settings string) (dir string, owner *syscall.Stat_t, err error) {
	dir = filepath.Join(l.server.Dir(), "pgbouncer")
	info, err := os.Stat(filepath.Join(l.server.Dir(), "data"))
	if err != nil {
		return "", nil, err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", nil, errors.New("whose the server's data are is not known")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, err
	}
	file := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		return "", nil, err
	}
	for _, path := range []string{dir, file} {
		if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
			return "", nil, err
		}
	}
	return dir, owner, nil
}

// dsn is a database's address through the pooler. Statements have no names: the session that one was prepared in may be
// another client's by the next transaction.
func (p *pooler) dsn(database string) string {
	return "postgres://postgres@" + p.address + "/" + database + "?sslmode=disable&default_query_exec_mode=cache_describe"
}

func (p *pooler) untilReady(ctx context.Context, database string) error {
	ctx, cancel := context.WithTimeout(ctx, serveLimit)
	defer cancel()
	return await(ctx, "pgbouncer is ready", 50*time.Millisecond, func(ctx context.Context) (bool, error) {
		select {
		case <-p.ended:
			return false, errors.New("it has ended")
		default:
		}
		var one int
		err := scan(ctx, strings.Replace(p.dsn(database), "cache_describe", "exec", 1), "SELECT 1", &one)
		return err == nil, nil // it does not listen yet
	})
}

func (p *pooler) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGINT)
	timer := time.NewTimer(stopLimit)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		_ = p.cmd.Process.Kill()
		<-p.ended
	}
}

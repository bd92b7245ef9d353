package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/fleet"
	"invoicebridge/internal/postgres"
)

// serverSettings make a commit what it is in production, on a disk. Memory and checkpoints are those of a small server that
// somebody has looked after; all of it is said in the output.
func (cfg Config) serverSettings() map[string]string {
	settings := map[string]string{
		"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "shared_buffers": "1GB", "max_wal_size": "6GB",
		"checkpoint_timeout": "15min", "autovacuum": "on", "autovacuum_naptime": "1min", "max_connections": "300",
		"maintenance_work_mem": "512MB", "effective_cache_size": "8GB", "random_page_cost": "1.1",
	}
	if cfg.Smoke { // a test of the harness wears out no disk
		settings["fsync"], settings["full_page_writes"], settings["shared_buffers"], settings["max_wal_size"] = "off", "off", "128MB", "256MB"
	}
	return settings
}

// disk is where the server's data are. Memory would be no measurement of durable commits.
func (cfg Config) disk() string {
	switch {
	case cfg.DataDir != "":
		return cfg.DataDir
	case cfg.Smoke:
		return ""
	}
	return "/var/tmp"
}

// tellSettings gives the server's version and the settings that matter, as the server itself says them.
func (l *lab) tellSettings(ctx context.Context) (string, error) {
	names := []string{
		"fsync", "synchronous_commit", "full_page_writes", "wal_level", "wal_sync_method", "shared_buffers", "max_wal_size", "checkpoint_timeout",
		"autovacuum", "max_connections",
	}
	conn, err := pgx.Connect(ctx, l.server.DSN("postgres"))
	if err != nil {
		return "", err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	told := make([]string, len(names))
	for i, name := range names {
		var value string
		if err := conn.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value); err != nil {
			return "", fmt.Errorf("setting %s: %w", name, err)
		}
		told[i] = name + "=" + value
	}
	return "PostgreSQL " + l.server.Version() + ": " + strings.Join(told, ", "), nil
}

// findPgbench looks beside the server's programs, and then on PATH.
func findPgbench(dir string) (string, error) {
	if beside := filepath.Join(dir, "pgbench"); isFile(beside) {
		return beside, nil
	}
	path, err := exec.LookPath("pgbench")
	if err != nil {
		return "", fmt.Errorf("pgbench is needed to compare with, and is neither in %s nor on PATH: apt-get install postgresql-contrib "+
			"or postgresql brings it", dir)
	}
	return path, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// The databases that each phase gets a copy of.
const (
	erpTemplate = "bench_erp_template"
	crmTemplate = "bench_crm_template"
)

// tokens are bearer tokens by tenant, of the role writer.
type tokens struct{ erp, crm []string }

func tenantName(n int) string { return fmt.Sprintf("t%d", n) }

// makeTemplates migrates both databases, with their tenants and tokens in them.
func (l *lab) makeTemplates(ctx context.Context) error {
	l.say("migrating the databases, %d tenants", l.scale.tenants)
	for _, side := range []struct {
		database, program, variable string
		store                       func(*pgxpool.Pool) auth.AdminStore
		tokens                      *[]string
	}{
		{erpTemplate, fleet.ERP, "ERP_DATABASE_URL", func(p *pgxpool.Pool) auth.AdminStore { return erpstore.New(p) }, &l.tokens.erp},
		{crmTemplate, fleet.CRM, "CRM_DATABASE_URL", func(p *pgxpool.Pool) auth.AdminStore { return crmstore.New(p) }, &l.tokens.crm},
	} {
		if err := l.server.CreateDatabase(ctx, side.database); err != nil {
			return err
		}
		dsn := l.server.DSN(side.database)
		if _, err := l.programs.Command(ctx, side.program, []string{side.variable + "=" + dsn}, "migrate", "up"); err != nil {
			return err
		}
		pool, err := postgres.OpenPool(ctx, postgres.PoolConfig{DSN: dsn, ApplicationName: "bench", MaxConns: 2})
		if err != nil {
			return err
		}
		*side.tokens, err = l.makeTenants(ctx, auth.NewAdmin(side.store(pool)))
		pool.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) makeTenants(ctx context.Context, admin *auth.Admin) (tokens []string, err error) {
	by := audit.By{Actor: "bench", Reason: "bench"}
	for n := range l.scale.tenants {
		if err := admin.CreateTenant(ctx, tenantName(n), tenantName(n), by); err != nil {
			return nil, err
		}
		_, token, err := admin.CreateToken(ctx, tenantName(n), "writer", "bench", by)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, token)
	}
	return tokens, nil
}

// admin runs statements on the maintenance database, outside of any transaction.
func (l *lab) admin(ctx context.Context, statements ...string) error {
	return execute(ctx, l.server.DSN("postgres"), statements...)
}

// execute runs statements on one connection of their own.
func execute(ctx context.Context, dsn string, statements ...string) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%.120s: %w", statement, err)
		}
	}
	return nil
}

// scan runs a query that gives one row.
func scan(ctx context.Context, dsn, query string, into ...any) error {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if err := conn.QueryRow(ctx, query).Scan(into...); err != nil {
		return fmt.Errorf("%.120s: %w", query, err)
	}
	return nil
}

// pause waits, less long if ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// await asks every so often until holds answers true, and gives up when ctx ends.
func await(ctx context.Context, what string, every time.Duration, holds func(ctx context.Context) (bool, error)) error {
	for {
		ok, err := holds(ctx)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("while waiting until %s: %w", what, ctx.Err())
		case err != nil:
			return fmt.Errorf("while waiting until %s: %w", what, err)
		case ok:
			return nil
		}
		pause(ctx, every)
	}
}

func lastLines(path string, n int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(slices.Clone(lines[max(0, len(lines)-n):]), "\n")
}

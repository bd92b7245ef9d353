package bench

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// What pgbench does in place of the ERP: the same rows in the same tables, with nothing around them. In one statement, and
// in one statement each that are sent together.
var (
	//go:embed scripts/create_single.sql
	createSingle string
	//go:embed scripts/create_pipeline.sql
	createPipeline string
	//go:embed scripts/answer.sql
	selectAnswer string
)

var tpsLine = regexp.MustCompile(`(?m)^tps = ([0-9.]+) \(without initial connection time\)`)

// runPgbench runs a script by so many clients for the window, with prepared statements, and gives its transactions a second.
func (l *lab) runPgbench(ctx context.Context, dsn, script string, clients int, variables map[string]string) (tps float64, err error) {
	file, err := os.CreateTemp(l.dir, "*.sql")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if _, err := file.WriteString(script); err != nil {
		return 0, err
	}
	if err := file.Close(); err != nil {
		return 0, err
	}
	seconds := max(1, int(l.scale.window.Seconds()))
	args := []string{
		"-n", "-M", "prepared", "-f", file.Name(), "-c", strconv.Itoa(clients), "-j", strconv.Itoa(min(clients, 2)), "-T", strconv.Itoa(seconds),
	}
	for name, value := range variables {
		args = append(args, "-D", name+"="+value)
	}
	ctx, cancel := context.WithTimeout(ctx, l.scale.window+time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.pgbench, args...) //nolint:gosec // found by findPgbench
	if cmd.Env, err = libpqEnvironment(dsn); err != nil {
		return 0, err
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("pgbench: %w: %.1000s", err, stderr.String())
	}
	found := tpsLine.FindSubmatch(stdout.Bytes())
	if found == nil {
		return 0, fmt.Errorf("pgbench says no rate: %.1000s %.1000s", stdout.String(), stderr.String())
	}
	return strconv.ParseFloat(string(found[1]), 64)
}

// libpqEnvironment is the address of a database as libpq's programs take it, out of the sight of others on the machine.
func libpqEnvironment(dsn string) ([]string, error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	return append(os.Environ(), "PGHOST="+config.Host, "PGPORT="+strconv.Itoa(int(config.Port)), "PGUSER="+config.User,
		"PGPASSWORD="+config.Password, "PGDATABASE="+config.Database), nil
}

// byPgbench measures a script.
func (s *site) byPgbench(what, script string, clients int, variables map[string]string) measure {
	return measure{what, "/s", func(ctx context.Context) (float64, error) {
		return s.lab.runPgbench(ctx, s.erpDSN, script, clients, variables)
	}}
}

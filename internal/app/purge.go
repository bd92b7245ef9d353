package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/retention"
)

// purge is a service's periodic purge, with its metrics.
type purge struct {
	job     jobs.Purge
	metrics *jobs.PurgeMetrics
}

func newPurge(side string, steps []retention.Step, pace retention.Pace, schedule retention.Schedule, log *slog.Logger) purge {
	metrics := jobs.NewPurgeMetrics(side, steps, log)
	schedule = schedule.WithDefaults()
	purger := retention.NewPurger(steps, retention.Options{Pace: pace, RunTime: schedule.RunTime, Logger: log, Observer: metrics})
	return purge{jobs.Purge{Purger: purger, Schedule: schedule, Logger: log}, metrics}
}

func newCRMPurge(cfg CRMRetention, pool *pgxpool.Pool, log *slog.Logger) purge {
	return newPurge("crm", crmSteps(pool, cfg.CRMKeep), cfg.Pace, cfg.Schedule, log)
}

func newERPPurge(cfg ERPRetention, pool *pgxpool.Pool, log *slog.Logger) purge {
	return newPurge("erp", erpSteps(pool, cfg.ERPKeep), cfg.Pace, cfg.Schedule, log)
}

func crmSteps(pool *pgxpool.Pool, k CRMKeep) []retention.Step {
	return append(crm.RetentionSteps(pool, k.keep()), crmstore.New(pool).RetentionSteps()...)
}

func erpSteps(pool *pgxpool.Pool, k ERPKeep) []retention.Step {
	return append(invoice.RetentionSteps(pool, k.keep()), erpstore.New(pool).RetentionSteps()...)
}

// purgeFlags are what both services' commands "purge" have in common.
type purgeFlags struct {
	DatabaseFlag
	ActorFlags
	DryRun bool `name:"dry-run" help:"Only count what would be removed or minimised."`
}

// ERPPurgeCommand is the ERP's command "purge". It does at once, and to the end, what the service does by itself.
type ERPPurgeCommand struct {
	purgeFlags
	ERPKeep
}

// Run purges.
func (c *ERPPurgeCommand) Run(ctx context.Context, env *AdminEnv, log *slog.Logger) error {
	if err := c.check(); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return c.run(ctx, env, log, c.Pace, invoice.AuditPurge, func(pool *pgxpool.Pool) []retention.Step {
		return erpSteps(pool, c.ERPKeep)
	})
}

// CRMPurgeCommand is the CRM side's command "purge". It does at once, and to the end, what the service does by itself.
type CRMPurgeCommand struct {
	purgeFlags
	CRMKeep
}

// Run purges.
func (c *CRMPurgeCommand) Run(ctx context.Context, env *AdminEnv, log *slog.Logger) error {
	if err := c.check(); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	return c.run(ctx, env, log, c.Pace, crm.AuditPurge, func(pool *pgxpool.Pool) []retention.Step {
		return crmSteps(pool, c.CRMKeep)
	})
}

type auditPurge func(ctx context.Context, pool *pgxpool.Pool, actor, subject, reason string) error

// run purges at the service's pace. A run that is interrupted has done what it reports; the next goes on.
func (f purgeFlags) run(ctx context.Context, env *AdminEnv, log *slog.Logger, pace retention.Pace, audit auditPurge, steps func(*pgxpool.Pool) []retention.Step) error {
	pool, err := f.Open(ctx, env.Schema)
	if err != nil {
		return err
	}
	defer pool.Close()
	purger := retention.NewPurger(steps(pool), retention.Options{Pace: pace, Logger: log})
	work, title := purger.Purge, "TABLE\tPURGED\tREFUSED"
	if f.DryRun {
		work, title = purger.DryRun, "TABLE\tWOULD BE PURGED\tREFUSED"
	} else if err := audit(ctx, pool, f.Actor, env.Schema.Name, f.Reason); err != nil {
		return err // nothing is done that is not written down
	}
	progress := newPurgeProgress(os.Stderr)
	results, err := work(ctx, progress.show)
	progress.end()
	told := Table(env.Stdout, title, results, func(r retention.Result) string {
		return fmt.Sprintf("%s\t%d\t%d", r.Table, r.Rows, r.Refused)
	})
	return errors.Join(err, told)
}

// purgeProgress shows the growing number of rows, where somebody is looking: on a terminal. How many there will be is
// not known.
type purgeProgress struct {
	bar  *progressbar.ProgressBar
	rows map[string]int64
}

func newPurgeProgress(out *os.File) *purgeProgress {
	p := &purgeProgress{rows: map[string]int64{}}
	if term.IsTerminal(int(out.Fd())) {
		p.bar = progressbar.NewOptions64(-1, progressbar.OptionSetWriter(io.Writer(out)), progressbar.OptionSetDescription("purge"),
			progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("rows"),
			progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
	}
	return p
}

func (p *purgeProgress) show(r retention.Result) {
	if p.bar == nil {
		return
	}
	p.rows[r.Table] = r.Rows
	var all int64
	for _, rows := range p.rows {
		all += rows
	}
	p.bar.Describe("purge " + r.Table)
	_ = p.bar.Set64(all) // what can't be drawn is not worth a failed purge
}

func (p *purgeProgress) end() {
	if p.bar != nil {
		_ = p.bar.Exit()
		_ = p.bar.Clear()
	}
}

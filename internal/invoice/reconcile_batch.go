package invoice

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/kept"
)

// maxToldLength bounds what a divergence says of each side, in bytes.
const maxToldLength = 1000

// targetFinding is a divergence as a batch found it.
type targetFinding struct {
	kind, owner, subject string
	source, order, key   string
	ours, theirs, action string
	repaired             bool
}

// targetBatch is what one step found, to be written in one transaction.
type targetBatch struct {
	compared, unanswered int64
	findings             map[[2]string]targetFinding // by kind and subject
	looked               []int64                     // open divergences that were looked at; those not found again are gone
}

func (b *targetBatch) add(f targetFinding) { b.findings[[2]string{f.kind, f.subject}] = f }

// commit writes a batch and how far the run has come, together or not at all. What an attempt has settled is settled
// already: if this fails, only its divergence is missing, and the attempt itself tells of it.
func (run *targetRun) commit(ctx context.Context, b *targetBatch, phase, cursor string) error {
	var found, repaired int64
	err := pgx.BeginFunc(ctx, run.pool, func(tx pgx.Tx) (err error) {
		queries := erpdb.New(tx)
		if _, err := queries.ReconciliationRunLock(ctx, run.id, run.phase, run.cursor); errors.Is(err, pgx.ErrNoRows) {
			return ErrOvertaken
		} else if err != nil {
			return err
		}
		if found, repaired, err = run.write(ctx, queries, b); err != nil {
			return err
		}
		return queries.ReconciliationRunAdvance(ctx, erpdb.ReconciliationRunAdvanceParams{
			ID: run.id, Phase: phase, Cursor: cursor, Compared: b.compared, Found: found, Repaired: repaired, Finished: phase == phaseDone,
		})
	})
	if err != nil {
		return fmt.Errorf("write a batch: %w", err)
	}
	run.report.Compared += b.compared
	run.report.Found += found
	run.report.Repaired += repaired
	run.report.Unanswered += b.unanswered
	return nil
}

func (run *targetRun) write(ctx context.Context, queries *erpdb.Queries, b *targetBatch) (found, repaired int64, err error) {
	arg := erpdb.DivergenceUpsertParams{TenantID: run.tenant}
	for f := range maps.Values(b.findings) {
		f.ours, f.theirs, f.action = kept.Text(f.ours, "", maxToldLength), kept.Text(f.theirs, "", maxToldLength), kept.Text(f.action, "", maxToldLength)
		if f.repaired {
			repaired++
			if err := queries.DivergenceInsertResolved(ctx, run.resolved(f)); err != nil {
				return 0, 0, fmt.Errorf("note a repair: %w", err)
			}
			continue
		}
		arg.Kinds, arg.Owners, arg.Subjects = append(arg.Kinds, f.kind), append(arg.Owners, f.owner), append(arg.Subjects, f.subject)
		arg.Sources, arg.OrderIds, arg.Keys = append(arg.Sources, f.source), append(arg.OrderIds, f.order), append(arg.Keys, f.key)
		arg.Ours, arg.Theirs, arg.Actions = append(arg.Ours, f.ours), append(arg.Theirs, f.theirs), append(arg.Actions, f.action)
	}
	if len(arg.Kinds) > 0 {
		rows, err := queries.DivergenceUpsert(ctx, arg)
		if err != nil {
			return 0, 0, fmt.Errorf("write divergences: %w", err)
		}
		for _, row := range rows {
			if row.IsNew {
				found++
			}
		}
	}
	if len(b.looked) > 0 {
		_, err = queries.DivergenceResolve(ctx, erpdb.DivergenceResolveParams{
			TenantID: run.tenant, Ids: b.looked, SeenBefore: run.startedAt, Action: "gone: both sides agree",
		})
	}
	return found + repaired, repaired, err
}

func (run *targetRun) resolved(f targetFinding) erpdb.DivergenceInsertResolvedParams {
	return erpdb.DivergenceInsertResolvedParams{
		TenantID: run.tenant, Kind: f.kind, Owner: f.owner, Subject: f.subject, Source: f.source, OrderID: f.order, Key: f.key,
		Ours: f.ours, Theirs: f.theirs, Action: f.action,
	}
}

// ReconcileStanding is how reconciliation with targets stands, over all tenants.
type ReconcileStanding struct {
	Open map[string]int64 // open divergences; every kind is there
	// Age is how long ago the newest finished run of a tenant ended, of the tenant where that is longest. Ran is false
	// where no tenant has a finished run.
	Age time.Duration
	Ran bool
}

// Standing reads how reconciliation stands.
func (r *Reconciler) Standing(ctx context.Context) (ReconcileStanding, error) {
	queries := erpdb.New(r.pool)
	s := ReconcileStanding{Open: map[string]int64{}}
	for _, kind := range DivergenceKinds() {
		s.Open[kind] = 0
	}
	open, err := queries.DivergenceCountOpen(ctx)
	if err != nil {
		return s, fmt.Errorf("count open divergences: %w", err)
	}
	for _, row := range open {
		s.Open[row.Kind] = row.Divergences
	}
	ages, err := queries.ReconciliationRunAges(ctx, ReconcileScope)
	if err != nil {
		return s, fmt.Errorf("read the ages of runs: %w", err)
	}
	for _, row := range ages {
		s.Ran = true
		s.Age = max(s.Age, time.Duration(row.AgeSeconds*float64(time.Second)))
	}
	return s, nil
}

package crm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"invoicebridge/internal/crmdb"
)

// finding is a divergence as a batch found it.
type finding struct {
	kind    DivergenceKind
	owner   string
	subject string
	id      orderID
	key     string
	ours    string
	theirs  string
	action  string
}

type findingKey struct {
	kind    DivergenceKind
	subject string
}

// Whose books have to be put right.
const (
	ownerCRM = "crm"
	ownerERP = "erp"
)

// repair puts the books of the CRM side right. apply says whether it did: somebody may have been faster.
type repair struct {
	apply   func(ctx context.Context, queries *crmdb.Queries) (bool, error)
	finding finding
}

// reconcileBatch is what one step found, to be written in one transaction.
type reconcileBatch struct {
	token      string // of the ERP, to be kept out of every text
	compared   int64
	unanswered int64
	enqueued   int64 // of what was never sent
	matched    []uuid.UUID
	findings   map[findingKey]finding
	repairs    []repair
	looked     []int64 // open divergences that were looked at; those that were not found again are gone
}

func newReconcileBatch(token string) *reconcileBatch {
	return &reconcileBatch{token: token, findings: map[findingKey]finding{}}
}

func (b *reconcileBatch) add(f finding) { b.findings[findingKey{f.kind, f.subject}] = f }

// commit writes a batch: findings, repairs and how far the run has come, together or not at all.
func (run *reconcileRun) commit(ctx context.Context, b *reconcileBatch, next position) error {
	var found, repaired int64
	err := pgx.BeginFunc(ctx, run.pool, func(tx pgx.Tx) (err error) {
		queries := crmdb.New(tx)
		if _, err := queries.ReconciliationRunLock(ctx, run.id, run.at.phase, run.at.cursor); errors.Is(err, pgx.ErrNoRows) {
			return ErrOvertaken
		} else if err != nil {
			return err
		}
		if found, repaired, err = run.write(ctx, queries, b); err != nil {
			return err
		}
		finished := next.phase == phaseDone
		if finished {
			if err := queries.ReconciliationMatchDelete(ctx, run.id); err != nil {
				return err
			}
		}
		return queries.ReconciliationRunAdvance(ctx, crmdb.ReconciliationRunAdvanceParams{
			ID: run.id, Phase: next.phase, Cursor: next.cursor, Compared: b.compared, Found: found, Repaired: repaired, Finished: finished,
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

func (run *reconcileRun) write(ctx context.Context, queries *crmdb.Queries, b *reconcileBatch) (found, repaired int64, err error) {
	if len(b.matched) > 0 {
		if err := queries.ReconciliationMatchInsert(ctx, run.id, b.matched); err != nil {
			return 0, 0, fmt.Errorf("note matches: %w", err)
		}
	}
	slices.SortFunc(b.repairs, func(a, b repair) int { return strings.Compare(a.finding.key, b.finding.key) }) // one order of locks
	for _, r := range b.repairs {
		done, err := r.apply(ctx, queries)
		if err != nil {
			return 0, 0, fmt.Errorf("repair %s: %w", r.finding.key, err)
		}
		if !done {
			continue
		}
		repaired++
		if err := queries.DivergenceInsertResolved(ctx, run.resolved(b, r.finding)); err != nil {
			return 0, 0, fmt.Errorf("note a repair: %w", err)
		}
		run.log.InfoContext(ctx, "divergence repaired", "kind", r.finding.kind, "key", r.finding.key, "action", r.finding.action)
	}
	if found, err = run.upsert(ctx, queries, b); err != nil {
		return 0, 0, err
	}
	if len(b.looked) > 0 {
		_, err = queries.DivergenceResolve(ctx, crmdb.DivergenceResolveParams{
			TenantID: run.tenant, Ids: b.looked, SeenBefore: run.startedAt, Action: "gone: both sides agree",
		})
	}
	return found + repaired, repaired + b.enqueued, err
}

func (run *reconcileRun) resolved(b *reconcileBatch, f finding) crmdb.DivergenceInsertResolvedParams {
	return crmdb.DivergenceInsertResolvedParams{
		TenantID: run.tenant, Kind: string(f.kind), Owner: f.owner, Subject: f.subject, Source: f.id.source, OrderID: f.id.order,
		Key: f.key, Ours: keepable(f.ours, b.token), Theirs: keepable(f.theirs, b.token), Action: keepable(f.action, b.token),
	}
}

// upsert writes what stays open, and says how much of it is new.
func (run *reconcileRun) upsert(ctx context.Context, queries *crmdb.Queries, b *reconcileBatch) (found int64, err error) {
	arg := crmdb.DivergenceUpsertParams{TenantID: run.tenant}
	for f := range maps.Values(b.findings) {
		arg.Kinds, arg.Owners = append(arg.Kinds, string(f.kind)), append(arg.Owners, f.owner)
		arg.Subjects, arg.Keys = append(arg.Subjects, keepable(f.subject, "")), append(arg.Keys, keepable(f.key, ""))
		arg.Sources, arg.OrderIds = append(arg.Sources, keepable(f.id.source, "")), append(arg.OrderIds, keepable(f.id.order, ""))
		arg.Ours, arg.Theirs = append(arg.Ours, keepable(f.ours, b.token)), append(arg.Theirs, keepable(f.theirs, b.token))
		arg.Actions = append(arg.Actions, keepable(f.action, b.token))
	}
	if len(arg.Kinds) == 0 {
		return 0, nil
	}
	rows, err := queries.DivergenceUpsert(ctx, arg)
	if err != nil {
		return 0, fmt.Errorf("write divergences: %w", err)
	}
	for _, row := range rows {
		if row.IsNew {
			found++
		}
	}
	return found, nil
}

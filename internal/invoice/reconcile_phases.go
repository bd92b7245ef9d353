package invoice

import (
	"context"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"invoicebridge/internal/erpdb"
)

// step asks about one batch of registrations.
func (run *targetRun) step(ctx context.Context, b *targetBatch) (phase, cursor string, err error) {
	switch run.phase {
	case phaseFinal:
		return run.compareFinal(ctx, b)
	case phaseOpen:
		return run.compareOpen(ctx, b)
	case phaseKnown:
		return run.compareKnown(ctx, b)
	}
	return "", "", fmt.Errorf("a newer program's phase %q", run.phase)
}

func (run *targetRun) compareFinal(ctx context.Context, b *targetBatch) (phase, cursor string, err error) {
	arg := erpdb.ReconciliationListRegistrationsParams{
		TenantID: run.tenant, WindowFrom: run.report.From, BeforeCreatedAt: run.report.To, MaxItems: run.opts.Batch,
	}
	if run.cursor != "" {
		after, err := parseCursor(run.cursor)
		if err != nil {
			return "", "", fmt.Errorf("the run's cursor: %w", err)
		}
		arg.BeforeCreatedAt, arg.BeforeID = after.createdAt, after.id
	}
	rows, err := erpdb.New(run.pool).ReconciliationListRegistrations(ctx, arg)
	if err != nil {
		return "", "", fmt.Errorf("list registrations: %w", err)
	}
	for _, row := range rows {
		if _, err := run.compare(ctx, b, row.ID); err != nil {
			return "", "", err
		}
	}
	if len(rows) < int(run.opts.Batch) {
		return phaseOpen, "", nil
	}
	last := rows[len(rows)-1]
	return phaseFinal, position{last.CreatedAt, last.ID}.cursor(), nil
}

func (run *targetRun) compareOpen(ctx context.Context, b *targetBatch) (phase, cursor string, err error) {
	var after uuid.UUID
	if run.cursor != "" {
		if err := after.UnmarshalText([]byte(run.cursor)); err != nil {
			return "", "", fmt.Errorf("the run's cursor: %w", err)
		}
	}
	ids, err := erpdb.New(run.pool).ReconciliationListOpenRegistrations(ctx, run.tenant, after, run.opts.Batch)
	if err != nil {
		return "", "", fmt.Errorf("list open registrations: %w", err)
	}
	for _, id := range ids {
		if _, err := run.compare(ctx, b, id); err != nil {
			return "", "", err
		}
	}
	if len(ids) < int(run.opts.Batch) {
		return phaseKnown, "0", nil
	}
	return phaseOpen, ids[len(ids)-1].String(), nil
}

// compareKnown looks again at open divergences that the run has not met: what of them is gone is resolved, however old it
// is.
func (run *targetRun) compareKnown(ctx context.Context, b *targetBatch) (phase, cursor string, err error) {
	after, err := strconv.ParseInt(run.cursor, 10, 64)
	if err != nil {
		return "", "", fmt.Errorf("the run's cursor: %w", err)
	}
	rows, err := erpdb.New(run.pool).DivergenceListUnseen(ctx, erpdb.DivergenceListUnseenParams{
		TenantID: run.tenant, SeenBefore: run.startedAt, AfterID: after, Kinds: DivergenceKinds(), MaxItems: run.opts.Batch,
	})
	if err != nil {
		return "", "", fmt.Errorf("list open divergences: %w", err)
	}
	for _, row := range rows {
		id, err := uuid.Parse(row.Subject)
		if err != nil {
			continue // nobody of ours wrote that
		}
		answered, err := run.compare(ctx, b, id)
		if err != nil {
			return "", "", err
		}
		if answered {
			b.looked = append(b.looked, row.ID)
		}
	}
	if len(rows) < int(run.opts.Batch) {
		return phaseDone, "", nil
	}
	return phaseKnown, strconv.FormatInt(rows[len(rows)-1].ID, 10), nil
}

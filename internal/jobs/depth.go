package jobs

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/crmdb"
)

// QueueDepth tells the console how much the CRM side's queue holds.
type QueueDepth struct{ pool *pgxpool.Pool }

// NewQueueDepth makes a QueueDepth on the CRM side's database.
func NewQueueDepth(pool *pgxpool.Pool) QueueDepth { return QueueDepth{pool} }

// QueueDepth counts the jobs of all queues and tenants by their state; those that are completed or cancelled are not told.
func (q QueueDepth) QueueDepth(ctx context.Context) ([]crm.QueueState, error) {
	rows, err := crmdb.New(q.pool).FigureListJobs(ctx)
	if err != nil {
		return nil, fmt.Errorf("count jobs: %w", err)
	}
	counts := map[string]int64{}
	for _, r := range rows {
		counts[r.State] += r.Jobs
	}
	states := make([]crm.QueueState, 0, len(counts))
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		states = append(states, crm.QueueState{State: state, Jobs: counts[state]})
	}
	return states, nil
}

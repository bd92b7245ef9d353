package crm

import (
	"context"
	"fmt"
	"time"

	"invoicebridge/internal/crmdb"
)

// ReconcileStanding is how reconciliation stands, over all tenants.
type ReconcileStanding struct {
	Open map[DivergenceKind]int64 // open divergences; every kind is there
	// Age is how long ago the newest finished run of a tenant ended, of the tenant where that is longest. Ran is false
	// where no tenant has a finished run.
	Age time.Duration
	Ran bool
}

// Standing reads how reconciliation stands.
func (r *Reconciler) Standing(ctx context.Context) (ReconcileStanding, error) {
	queries := crmdb.New(r.pool)
	s := ReconcileStanding{Open: map[DivergenceKind]int64{}}
	for _, kind := range DivergenceKinds() {
		s.Open[kind] = 0
	}
	open, err := queries.DivergenceCountOpen(ctx)
	if err != nil {
		return s, fmt.Errorf("count open divergences: %w", err)
	}
	for _, row := range open {
		s.Open[DivergenceKind(row.Kind)] = row.Divergences
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

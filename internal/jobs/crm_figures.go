package jobs

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/crmdb"
)

// newCRMFigures are the figures of the CRM side's database: what is open, what has ended, the queue, and the whole.
func newCRMFigures(pool *pgxpool.Pool, log *slog.Logger) figureGroups {
	queries := crmdb.New(pool)
	count := prometheus.NewDesc("crm_operations", "Operations by state.", []string{"state"}, nil)
	return figureGroups{
		newOpenOperationFigures(queries, count, log),
		newFigureGroup("crm", "final", finalFiguresEvery, finalFiguresLimit, log, queries.FigureListFinalOperations,
			func(rows []crmdb.FigureListFinalOperationsRow, metrics chan<- prometheus.Metric) {
				counts := map[string]int64{}
				for _, row := range rows {
					counts[row.Status] = row.Operations
				}
				for _, state := range finalOperationStates() {
					gauge(metrics, count, float64(counts[string(state)]), string(state))
				}
			}), // count is described by the group before
		newQueueFigures("crm", log, func(ctx context.Context) (r queueReading, err error) {
			rows, err := queries.FigureListJobs(ctx)
			if err != nil {
				return r, fmt.Errorf("count jobs: %w", err)
			}
			for _, row := range rows {
				r.counts = append(r.counts, jobCount(row))
			}
			if r.oldestRunningSeconds, err = queries.FigureOldestRunningJob(ctx); err != nil {
				return r, fmt.Errorf("look for the oldest running job: %w", err)
			}
			return r, nil
		}),
		newPeopleFigures("crm", "sources", texts(crm.DivergenceKinds()), true, log, func(ctx context.Context) (peopleReading, error) {
			return readCRMPeople(ctx, queries)
		}),
		newDatabaseFigures("crm", log, queries.FigureDatabaseSize, queries.FigureCountSessions),
	}
}

func readCRMPeople(ctx context.Context, queries *crmdb.Queries) (r peopleReading, err error) {
	accepted, err := queries.FigureListAcceptedDivergences(ctx)
	if err != nil {
		return r, fmt.Errorf("count accepted divergences: %w", err)
	}
	r.accepted = map[string]int64{}
	for _, row := range accepted {
		r.accepted[row.Kind] = row.Divergences
	}
	pauses, err := queries.FigurePauses(ctx)
	if err != nil {
		return r, fmt.Errorf("count paused sources: %w", err)
	}
	r.pauses, r.oldestPauseSeconds = pauses.Pauses, pauses.OldestSeconds
	open, err := queries.FigureOpenResolutions(ctx)
	if err != nil {
		return r, fmt.Errorf("count open resolutions: %w", err)
	}
	r.resolutions, r.oldestOpenSeconds = open.Resolutions, open.OldestSeconds
	if r.oldestRunSeconds, err = queries.FigureOldestOpenRun(ctx); err != nil {
		return r, fmt.Errorf("look for the oldest open run: %w", err)
	}
	return r, nil
}

func openOperationStates() []crm.OperationStatus {
	return []crm.OperationStatus{crm.StatusPending, crm.StatusProcessing, crm.StatusUnknown}
}

func finalOperationStates() []crm.OperationStatus {
	return []crm.OperationStatus{crm.StatusSucceeded, crm.StatusFailed, crm.StatusCancelled}
}

// openOperations is what a reading brings of the operations that are open.
type openOperations struct {
	rows           []crmdb.FigureListOpenOperationsRow
	overdueSeconds float64
}

func newOpenOperationFigures(queries *crmdb.Queries, count *prometheus.Desc, log *slog.Logger) *figureGroup {
	oldest := prometheus.NewDesc("crm_operations_oldest_seconds", "Age of the oldest operation in an open state, those with an operator or of a paused source left out; 0 if there is none.", []string{"state"}, nil)
	open := prometheus.NewDesc("crm_oldest_open_operation_seconds", "Age of the oldest operation that is neither final nor with an operator, nor of a paused source; 0 if there is none.", nil, nil)
	paused := prometheus.NewDesc("crm_oldest_paused_operation_seconds", "Age of the oldest operation, not with an operator, that a paused source holds back; 0 if there is none.", nil, nil)
	flagged := prometheus.NewDesc("crm_operations_needing_attention", "Open operations that wait for an operator, by what for; they are counted in their state, too.", []string{"reason"}, nil)
	flag := prometheus.NewDesc("crm_operations_needing_attention_oldest_seconds", "How long the first of the operations that wait for an operator has been waiting; 0 if there is none.", nil, nil)
	overdue := prometheus.NewDesc("crm_operations_overdue_seconds", "How long the next step of the open operation that is longest due has been due, or its worker's lease over; 0 if there is none.", nil, nil)
	read := func(ctx context.Context) (o openOperations, err error) {
		if o.rows, err = queries.FigureListOpenOperations(ctx); err != nil {
			return o, fmt.Errorf("count open operations: %w", err)
		}
		if o.overdueSeconds, err = queries.FigureMostOverdue(ctx); err != nil {
			return o, fmt.Errorf("look for the most overdue operation: %w", err)
		}
		return o, nil
	}
	tell := func(o openOperations, metrics chan<- prometheus.Metric) {
		counts, ages, reasons := map[string]int64{}, map[string]float64{}, map[string]int64{}
		oldestOpen, oldestPaused, oldestFlag := 0.0, 0.0, 0.0
		for _, row := range o.rows {
			counts[row.Status] += row.Operations
			switch {
			case row.Flagged:
				reasons[known(row.FlaggedFor, crm.Reasons())] += row.Operations
				oldestFlag = max(oldestFlag, row.OldestFlagSeconds)
			case row.Paused: // somebody meant it to wait
				oldestPaused = max(oldestPaused, row.OldestSeconds)
			default:
				ages[row.Status] = row.OldestSeconds
				oldestOpen = max(oldestOpen, row.OldestSeconds)
			}
		}
		for _, state := range openOperationStates() {
			gauge(metrics, count, float64(counts[string(state)]), string(state))
			gauge(metrics, oldest, ages[string(state)], string(state))
		}
		for _, reason := range crm.Reasons() {
			gauge(metrics, flagged, float64(reasons[string(reason)]), string(reason))
		}
		gauge(metrics, flagged, float64(reasons["other"]), "other")
		gauge(metrics, open, oldestOpen)
		gauge(metrics, paused, oldestPaused)
		gauge(metrics, flag, oldestFlag)
		gauge(metrics, overdue, o.overdueSeconds)
	}
	return newFigureGroup("crm", "open", openFiguresEvery, 0, log, read, tell, count, oldest, open, paused, flagged, flag, overdue)
}

// newDatabaseFigures are the figures of a side's database as a whole, and who is logged in.
func newDatabaseFigures(side string, log *slog.Logger, size, sessions func(ctx context.Context) (int64, error)) *figureGroup {
	bytes := prometheus.NewDesc("database_size_bytes", "Size of the service's database on disk.", nil, nil)
	open := prometheus.NewDesc("sessions_open", "Sessions of people that have not ended.", nil, nil)
	read := func(ctx context.Context) (r [2]int64, err error) {
		if r[0], err = size(ctx); err != nil {
			return r, fmt.Errorf("read the database's size: %w", err)
		}
		if r[1], err = sessions(ctx); err != nil {
			return r, fmt.Errorf("count sessions: %w", err)
		}
		return r, nil
	}
	tell := func(r [2]int64, metrics chan<- prometheus.Metric) {
		gauge(metrics, bytes, float64(r[0]))
		gauge(metrics, open, float64(r[1]))
	}
	return newFigureGroup(side, "database", finalFiguresEvery, 0, log, read, tell, bytes, open)
}

package jobs

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/invoice"
)

// newERPFigures are the figures of the ERP's database: what is open, what has ended, the queue, and the whole.
func newERPFigures(pool *pgxpool.Pool, log *slog.Logger) figureGroups {
	queries := erpdb.New(pool)
	count := prometheus.NewDesc("erp_registrations", "Registrations by state.", []string{"state"}, nil)
	return figureGroups{
		newOpenRegistrationFigures(queries, count, log),
		newFigureGroup("erp", "final", finalFiguresEvery, finalFiguresLimit, log, queries.FigureListFinalRegistrations,
			func(rows []erpdb.FigureListFinalRegistrationsRow, metrics chan<- prometheus.Metric) {
				counts := map[string]int64{}
				for _, row := range rows {
					counts[row.Status] = row.Registrations
				}
				for _, state := range finalRegistrationStates() {
					gauge(metrics, count, float64(counts[string(state)]), string(state))
				}
			}), // count is described by the group before
		newQueueFigures("erp", log, func(ctx context.Context) (r queueReading, err error) {
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
		newPeopleFigures("erp", "targets", texts(invoice.DivergenceKinds()), false, log, func(ctx context.Context) (peopleReading, error) {
			return readERPPeople(ctx, queries)
		}),
		newDatabaseFigures("erp", log, queries.FigureDatabaseSize, queries.FigureCountSessions),
	}
}

func readERPPeople(ctx context.Context, queries *erpdb.Queries) (r peopleReading, err error) {
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
		return r, fmt.Errorf("count paused targets: %w", err)
	}
	r.pauses, r.oldestPauseSeconds = pauses.Pauses, pauses.OldestSeconds
	if r.oldestRunSeconds, err = queries.FigureOldestOpenRun(ctx); err != nil {
		return r, fmt.Errorf("look for the oldest open run: %w", err)
	}
	return r, nil
}

func openRegistrationStates() []invoice.RegistrationStatus {
	return []invoice.RegistrationStatus{invoice.RegistrationPending, invoice.RegistrationProcessing, invoice.RegistrationUnknown}
}

func finalRegistrationStates() []invoice.RegistrationStatus {
	return []invoice.RegistrationStatus{invoice.RegistrationSucceeded, invoice.RegistrationFailed}
}

// openRegistrations is what a reading brings of the registrations that are open or have a flag.
type openRegistrations struct {
	open           []erpdb.FigureListOpenRegistrationsRow
	flagged        []erpdb.FigureListFlaggedRegistrationsRow
	overdueSeconds float64
}

func readOpenRegistrations(ctx context.Context, queries *erpdb.Queries) (o openRegistrations, err error) {
	if o.open, err = queries.FigureListOpenRegistrations(ctx); err != nil {
		return o, fmt.Errorf("count open registrations: %w", err)
	}
	if o.flagged, err = queries.FigureListFlaggedRegistrations(ctx); err != nil {
		return o, fmt.Errorf("count flagged registrations: %w", err)
	}
	if o.overdueSeconds, err = queries.FigureMostOverdue(ctx, string(invoice.ReasonNothingIsSafe)); err != nil {
		return o, fmt.Errorf("look for the most overdue registration: %w", err)
	}
	return o, nil
}

func newOpenRegistrationFigures(queries *erpdb.Queries, count *prometheus.Desc, log *slog.Logger) *figureGroup {
	oldest := prometheus.NewDesc("erp_registrations_oldest_seconds", "Age of the oldest registration in an open state, those at a paused target left out; 0 if there is none.", []string{"state"}, nil)
	open := prometheus.NewDesc("erp_oldest_open_registration_seconds", "Age of the oldest registration that is not final, nor at a paused target; 0 if there is none.", nil, nil)
	paused := prometheus.NewDesc("erp_oldest_paused_registration_seconds", "Age of the oldest open registration at a paused target; 0 if there is none.", nil, nil)
	flagged := prometheus.NewDesc("erp_registrations_needing_attention", "Registrations that wait for an operator, by what for; they are counted in their state, too.", []string{"reason"}, nil)
	flag := prometheus.NewDesc("erp_registrations_needing_attention_oldest_seconds", "How long the first of the registrations that wait for an operator has been waiting; 0 if there is none.", nil, nil)
	overdue := prometheus.NewDesc("erp_registrations_overdue_seconds", "How long the next step of the open registration that is longest due has been due, or its worker's lease over; 0 if there is none.", nil, nil)
	tell := func(o openRegistrations, metrics chan<- prometheus.Metric) {
		counts, ages, reasons := map[string]int64{}, map[string]float64{}, map[string]int64{}
		oldestOpen, oldestPaused, oldestFlag := 0.0, 0.0, 0.0
		for _, row := range o.open {
			counts[row.Status] += row.Registrations
			if row.Paused { // somebody meant it to wait
				oldestPaused = max(oldestPaused, row.OldestSeconds)
				continue
			}
			ages[row.Status] = row.OldestSeconds
			oldestOpen = max(oldestOpen, row.OldestSeconds)
		}
		for _, row := range o.flagged {
			reasons[known(row.Reason, invoice.RegistrationReasons())] += row.Registrations
			oldestFlag = max(oldestFlag, row.OldestSeconds)
		}
		for _, state := range openRegistrationStates() {
			gauge(metrics, count, float64(counts[string(state)]), string(state))
			gauge(metrics, oldest, ages[string(state)], string(state))
		}
		for _, reason := range invoice.RegistrationReasons() {
			gauge(metrics, flagged, float64(reasons[string(reason)]), string(reason))
		}
		gauge(metrics, flagged, float64(reasons["other"]), "other")
		gauge(metrics, open, oldestOpen)
		gauge(metrics, paused, oldestPaused)
		gauge(metrics, flag, oldestFlag)
		gauge(metrics, overdue, o.overdueSeconds)
	}
	return newFigureGroup("erp", "open", openFiguresEvery, 0, log,
		func(ctx context.Context) (openRegistrations, error) { return readOpenRegistrations(ctx, queries) },
		tell, count, oldest, open, paused, flagged, flag, overdue)
}

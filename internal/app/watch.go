package app

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/postgres"
)

// WatchConfig is what a service tells of its database. Its variables begin with the name of the service. What is 0 stands
// for its default.
type WatchConfig struct {
	SlowQuery      time.Duration `name:"slow-query" env:"SLOW_QUERY" default:"500ms" help:"From what time on a statement is logged, by its name, and counted as slow."`
	OldTransaction time.Duration `name:"old-transaction" env:"OLD_TRANSACTION" default:"5m" help:"From what age on an open transaction in the database, whoever's it is, is named in the log."`
}

// check names each mistake with its variable.
func (c WatchConfig) check(prefix string) error {
	var mistakes []error
	if c.SlowQuery != 0 && c.SlowQuery < time.Millisecond {
		mistakes = append(mistakes, mistake(prefix+"SLOW_QUERY", "%s is less than 1ms: every statement would be logged", c.SlowQuery))
	}
	if c.OldTransaction != 0 && c.OldTransaction < time.Second {
		mistakes = append(mistakes, mistake(prefix+"OLD_TRANSACTION", "%s is less than a second", c.OldTransaction))
	}
	return errors.Join(mistakes...)
}

// watching is what runs beside a service's work: looks at its database, and River UI at its queue.
type watching struct {
	ui         *jobs.UI
	collectors []prometheus.Collector
	// stop ends it all and returns when it has ended.
	stop func()
}

// start begins to watch the database of a pool whose slow queries slow sees.
func (c WatchConfig) start(ctx context.Context, pool *pgxpool.Pool, slow *postgres.SlowQueries, log *slog.Logger) (*watching, error) {
	ui, err := jobs.NewUI(pool, httpapi.QueuePrefix, log)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	if err := ui.Start(ctx); err != nil {
		cancel()
		return nil, err
	}
	transactions := postgres.NewTransactions(pool, c.OldTransaction, log)
	var running sync.WaitGroup
	running.Go(func() { transactions.Run(ctx) })
	return &watching{
		ui: ui, collectors: []prometheus.Collector{slow, transactions},
		stop: func() { cancel(); running.Wait() },
	}, nil
}

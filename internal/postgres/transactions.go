package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// DefaultOldTransaction is how long a transaction is open before somebody is told.
const DefaultOldTransaction = 5 * time.Minute

const (
	transactionsInterval  = 15 * time.Second
	transactionsTimeLimit = 5 * time.Second
	maxOldTransactions    = 20 // named at once
)

// Transactions watches for transactions that stay open, whoever's they are. One old snapshot keeps vacuum from removing
// what the queue has finished with, and so slows everything that reads the queue; one idle in a transaction keeps its
// locks, too. It is a prometheus.Collector.
//
// Other users' transactions show only to a user that may see them (a member of pg_read_all_stats).
type Transactions struct {
	pool  *pgxpool.Pool
	limit time.Duration
	log   *slog.Logger

	oldest, idle *prometheus.Desc

	mu      sync.Mutex
	ages    transactionAges
	known   bool
	sayFrom map[transactionID]time.Duration // the age from which on one that was told is told again
}

// transactionAges are 0 where there is no such transaction.
type transactionAges struct{ oldest, idle time.Duration }

// transactionID tells a transaction from a later one of the same connection.
type transactionID struct {
	pid   int32
	began time.Time
}

// openTransaction is one line of pg_stat_activity.
type openTransaction struct {
	id                               transactionID
	application, user, client, state string
	age, inState                     time.Duration
}

// NewTransactions makes Transactions that look at nothing until Run; limit 0 is DefaultOldTransaction.
func NewTransactions(pool *pgxpool.Pool, limit time.Duration, log *slog.Logger) *Transactions {
	if limit <= 0 {
		limit = DefaultOldTransaction
	}
	return &Transactions{
		pool: pool, limit: limit, log: log, sayFrom: map[transactionID]time.Duration{},
		oldest: prometheus.NewDesc("database_oldest_transaction_seconds",
			"How long the oldest open transaction in this database has been open; 0 if there is none. The log names it when it is old.", nil, nil),
		idle: prometheus.NewDesc("database_idle_in_transaction_seconds",
			"How long the transaction that has been idle for longest has done nothing; 0 if there is none.", nil, nil),
	}
}

// Describe implements prometheus.Collector.
func (t *Transactions) Describe(ch chan<- *prometheus.Desc) { ch <- t.oldest; ch <- t.idle }

// Collect implements prometheus.Collector: what the last look found. If that failed, there is nothing to tell.
func (t *Transactions) Collect(ch chan<- prometheus.Metric) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.known {
		return
	}
	ch <- prometheus.MustNewConstMetric(t.oldest, prometheus.GaugeValue, t.ages.oldest.Seconds())
	ch <- prometheus.MustNewConstMetric(t.idle, prometheus.GaugeValue, t.ages.idle.Seconds())
}

// Run looks from time to time until ctx ends.
func (t *Transactions) Run(ctx context.Context) {
	tick := time.NewTicker(transactionsInterval)
	defer tick.Stop()
	for {
		if err := t.Look(ctx); err != nil && ctx.Err() == nil {
			t.log.WarnContext(ctx, "open transactions could not be looked at", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// Look looks once: it renews the figures, and tells the log of each old transaction, again whenever its age has doubled.
func (t *Transactions) Look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, transactionsTimeLimit)
	defer cancel()
	open, err := listTransactions(ctx, t.pool)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.known = err == nil; t.known {
		t.note(ctx, open)
	}
	return err
}

// note renews the figures and tells what is old.
func (t *Transactions) note(ctx context.Context, open []openTransaction) {
	t.ages = transactionAges{}
	told := map[transactionID]time.Duration{}
	for _, tx := range open {
		t.ages.oldest = max(t.ages.oldest, tx.age)
		if tx.idle() {
			t.ages.idle = max(t.ages.idle, tx.inState)
		}
		if tx.age < t.limit {
			continue
		}
		told[tx.id] = t.sayFrom[tx.id]
		if tx.age >= told[tx.id] && len(told) <= maxOldTransactions {
			told[tx.id] = 2 * tx.age
			t.log.WarnContext(ctx, "old transaction: it keeps vacuum from cleaning up, and may hold locks", "pid", tx.id.pid,
				"application", tx.application, "user", tx.user, "client", tx.client, "state", tx.state,
				"age", tx.age.Round(time.Second), "in_state", tx.inState.Round(time.Second), "limit", t.limit)
		}
	}
	t.sayFrom = told
}

func (tx openTransaction) idle() bool {
	return tx.state == "idle in transaction" || tx.state == "idle in transaction (aborted)"
}

// listTransactions gives the open transactions of the pool's database but the one that asks, oldest first. The server's
// own workers (vacuum among them) are left out.
func listTransactions(ctx context.Context, pool *pgxpool.Pool) ([]openTransaction, error) {
	rows, _ := pool.Query(ctx, `-- name: TransactionListOpen :many
		SELECT pid, xact_start, application_name, coalesce(usename::text, ''), coalesce(host(client_addr), 'local'), coalesce(state, ''),
			extract(epoch FROM clock_timestamp() - xact_start)::float8, extract(epoch FROM clock_timestamp() - state_change)::float8
		FROM pg_stat_activity
		WHERE datname = current_database() AND backend_type = 'client backend' AND xact_start IS NOT NULL AND pid <> pg_backend_pid()
		ORDER BY xact_start, pid`) // the error comes with the rows
	open, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (tx openTransaction, err error) {
		var age, inState float64
		err = row.Scan(&tx.id.pid, &tx.id.began, &tx.application, &tx.user, &tx.client, &tx.state, &age, &inState)
		tx.age, tx.inState = seconds(age), seconds(inState)
		return tx, err
	})
	if err != nil {
		return nil, fmt.Errorf("list open transactions: %w", err)
	}
	return open, nil
}

func seconds(s float64) time.Duration { return max(0, time.Duration(s*float64(time.Second))) }

package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/httpapi"
	"invoicebridge/internal/postgres"
)

// readiness says whether a service may get work, and what it lacks if not.
type readiness struct {
	pool     *pgxpool.Pool
	schema   postgres.Schema
	stopping *Stopping
	// working says whether jobs are worked on; nil: this process is to work on none.
	working func() bool
}

// check returns nil only if the service can do its work right now; else an httpapi.NotReady with everything that is
// missing.
func (r *readiness) check(ctx context.Context) error {
	var missing httpapi.NotReady
	lacks := func(what, detail string, cause error) {
		missing = append(missing, httpapi.Missing{What: what, Detail: detail, Cause: cause})
	}
	if r.stopping.Begun() {
		lacks("stopping", "The service is stopping.", nil)
	}
	if r.working != nil && !r.working() {
		lacks("worker-stopped", "The queue's jobs are not worked on.", nil)
	}
	if what, detail, err := r.database(ctx); err != nil {
		lacks(what, detail, err)
	}
	if len(missing) == 0 {
		return nil
	}
	return missing
}

// database looks whether there is a connection to be had, and the schema behind it.
func (r *readiness) database(ctx context.Context) (what, detail string, err error) {
	conn, err := r.pool.Acquire(ctx)
	if err != nil {
		if stat := r.pool.Stat(); errors.Is(err, context.DeadlineExceeded) && stat.AcquiredConns() >= stat.MaxConns() {
			return "connections-exhausted", fmt.Sprintf("All %d connections to the database are in use.", stat.MaxConns()), err
		}
		return "database-unreachable", "The database can't be reached.", err
	}
	conn.Release()
	err = postgres.CheckSchema(ctx, r.pool, r.schema)
	switch {
	case err == nil, errors.Is(err, postgres.ErrSchemaNewer): // a roll-out has begun; until it comes here, this one works
		return "", "", nil
	case errors.Is(err, postgres.ErrSchemaOutdated):
		return "schema-older", "The database's schema is too old: " + err.Error() + ".", err
	case errors.Is(err, postgres.ErrSchemaForeign):
		return "schema-foreign", "The database is another service's.", err
	}
	return "database-unreachable", "The database does not answer.", err
}

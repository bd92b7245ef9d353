// Package tenantdb is a service's database as one tenant sees it. What is done for a tenant runs under a role of the
// database that row-level security holds to the rows of the tenants that the transaction names, so that a statement
// whose WHERE forgets the tenant finds nothing of anybody else's. Role and policies are made by the migrations
// (separate_tenants).
package tenantdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Role is the database role that work for a tenant runs under. It can't log in, owns nothing, and bypasses no policy.
const Role = "invoicebridge_tenant"

// ErrForeign says that work for a caller asked for more than the caller's tenant. It is a mistake in the program.
var ErrForeign = errors.New("work for a caller of one tenant reaches for another's data")

// DB is a pool that can't be used without saying for whom. It has no statements of its own: Of, AsCaller and Unscoped give what
// has them, so that whoever forgets the tenant does not get past the compiler.
type DB struct{ pool *pgxpool.Pool }

// New makes a DB on a pool, whose user must be a member of Role.
func New(pool *pgxpool.Pool) DB { return DB{pool} }

// Of is for work for these tenants, usually one: it sees their rows and can write no others. A name that no tenant can have adds
// none, and without any nothing is seen.
func (db DB) Of(tenants ...string) Scope { return Scope{pool: db.pool, tenants: tenants} }

// Unscoped is for work of the service itself, across tenants: jobs, sweeps. It is refused in the context of a caller.
func (db DB) Unscoped() Scope { return Scope{pool: db.pool, unscoped: true} }

// AsCaller is Of for the tenant of the caller in ctx, and Unscoped where there is none: before it is known who calls, and
// for commands.
func (db DB) AsCaller(ctx context.Context) Scope {
	if tenant, known := caller(ctx); known {
		return db.Of(tenant)
	}
	return db.Unscoped()
}

type callerKey struct{}

// WithCaller marks a context as that of work for a caller of a tenant, whose identity has been proved. In it, other tenants'
// scopes and the unscoped one are refused with ErrForeign, whatever the code asks for.
func WithCaller(ctx context.Context, tenant string) context.Context {
	return context.WithValue(ctx, callerKey{}, tenant)
}

// Together is for what several callers share, of different tenants perhaps: a context that is no single one's any more. Each of them
// must have been held to its own tenant before.
func Together(ctx context.Context) context.Context {
	if _, known := caller(ctx); !known {
		return ctx
	}
	return context.WithValue(ctx, callerKey{}, nil)
}

func caller(ctx context.Context) (tenant string, known bool) {
	tenant, known = ctx.Value(callerKey{}).(string)
	return tenant, known
}

// Permits returns ErrForeign if ctx is that of a caller of another tenant.
func Permits(ctx context.Context, tenant string) error {
	if own, known := caller(ctx); known && own != tenant {
		return fmt.Errorf("%w: of %q to %q", ErrForeign, own, tenant)
	}
	return nil
}

// Scope runs statements and transactions for the tenants it was made for. It implements sqlc's DBTX, and what pgx.BeginFunc and
// pgx.BeginTxFunc need. Role and tenants are set in the transaction and end with it, so connections can be shared, also by a
// pooler in transaction mode; and in the same round trip as what begins it, so they cost none.
type Scope struct {
	pool     *pgxpool.Pool
	tenants  []string
	unscoped bool
	anew     bool
	once     string
}

// PlannedOnce is the same scope, whose single statements each session plans once for all arguments, as soon as the table that decides
// how long they take is known to have a thousand rows. It is for what takes longer to plan than to do, and reads by unique indexes. It does
// not hold for transactions, and unscoped it changes nothing.
func (s Scope) PlannedOnce(table string) Scope {
	s.anew, s.once = false, table
	return s
}

// PlannedAnew is the same scope, whose statements are planned for just what they are asked with, each time. It is for filters that may or
// may not be given: a plan that a session keeps for all of them can use none of their indexes. Unscoped it changes nothing.
func (s Scope) PlannedAnew() Scope {
	s.anew, s.once = true, ""
	return s
}

func (s Scope) check(ctx context.Context) error {
	own, known := caller(ctx)
	switch {
	case !known:
		return nil
	case s.unscoped:
		return fmt.Errorf("%w: of %q to all", ErrForeign, own)
	}
	for _, tenant := range s.tenants {
		if tenant != own {
			return fmt.Errorf("%w: of %q to %q", ErrForeign, own, tenant)
		}
	}
	return nil
}

// setting is the value of invoicebridge.tenants: names without a comma or a quote in them, separated by commas.
func (s Scope) setting() string {
	switch {
	case len(s.tenants) == 1 && isTenant(s.tenants[0]):
		return s.tenants[0]
	case slices.ContainsFunc(s.tenants, func(t string) bool { return !isTenant(t) }):
		return strings.Join(slices.DeleteFunc(slices.Clone(s.tenants), func(t string) bool { return !isTenant(t) }), ",")
	}
	return strings.Join(s.tenants, ",")
}

// isTenant is the CHECK tenants_id_form.
func isTenant(id string) bool {
	for i := range len(id) {
		switch c := id[i]; {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-' && i > 0:
		default:
			return false
		}
	}
	return len(id) > 0 && len(id) <= 63
}

// Begin begins a transaction for the tenants.
func (s Scope) Begin(ctx context.Context) (pgx.Tx, error) { return s.BeginTx(ctx, pgx.TxOptions{}) }

// BeginTx is Begin with options.
func (s Scope) BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	if err := s.check(ctx); err != nil {
		return nil, err
	}
	if !s.unscoped {
		options.BeginQuery = beginSQL(options) + "; SET LOCAL ROLE " + Role + "; SET LOCAL invoicebridge.tenants = '" + s.setting() + "'"
		if s.anew {
			options.BeginQuery += "; SET LOCAL plan_cache_mode = force_custom_plan"
		}
	}
	return s.pool.BeginTx(ctx, options)
}

func beginSQL(options pgx.TxOptions) string {
	sql := "begin"
	if options.IsoLevel != "" {
		sql += " isolation level " + string(options.IsoLevel)
	}
	if options.AccessMode != "" {
		sql += " " + string(options.AccessMode)
	}
	if options.DeferrableMode != "" {
		sql += " " + string(options.DeferrableMode)
	}
	return sql
}

// Check says, in a sentence for whoever set the database up, why work for tenants or the service's own would not see what it
// should: the pool's user may not act as Role, or is held by the policies itself.
func (db DB) Check(ctx context.Context) error {
	var user string
	var held bool
	err := db.pool.QueryRow(ctx, "SELECT current_user, row_security_active('tenants')").Scan(&user, &held)
	if err != nil {
		return fmt.Errorf("look at row-level security: %w", err)
	}
	if held {
		return fmt.Errorf("the database user %s is neither the owner of the tables nor made as deploy/postgres has it: row-level security would hide every row from the service", user)
	}
	if _, err := db.Of().Exec(ctx, "SELECT"); err != nil {
		return fmt.Errorf("the database user %s can't work for tenants; have an administrator run once: GRANT %s TO %s; %w",
			user, Role, pgx.Identifier{user}.Sanitize(), err)
	}
	return nil
}

package app

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/postgres"
)

// Commands of administration, the same in both services. They need the kong variables database_env (the name of the
// variable with the database's address) and actor (who acts unless told otherwise), and a bound *AdminEnv.

// AdminEnv is what the commands work with.
type AdminEnv struct {
	Stdout io.Writer
	// Command is what was called, without its arguments, such as "operations replay".
	Command string
	// Stdin is where a password is read from; nil: the program's.
	Stdin  io.Reader
	Schema postgres.Schema
	// Store makes the store of the service's tenants and tokens.
	Store func(*pgxpool.Pool) auth.AdminStore
}

// DatabaseFlag says where the database is.
type DatabaseFlag struct {
	DatabaseURL string `name:"database-url" env:"${database_env}" required:"" placeholder:"URL" help:"Address of the service's PostgreSQL database."`
}

// ActorFlags say who acts and why, for the audit.
type ActorFlags struct {
	Actor  string `name:"actor" default:"${actor}" help:"Who does this, for the audit."`
	Reason string `name:"reason" help:"Why, for the audit."`
}

func (f ActorFlags) by() audit.By { return audit.By{Actor: f.Actor, Reason: f.Reason} }

// CommandWords gives the words of a command that kong has selected, without the names of its arguments.
func CommandWords(selected string) string {
	words := slices.DeleteFunc(strings.Fields(selected), func(word string) bool { return strings.HasPrefix(word, "<") })
	return strings.Join(words, " ")
}

// Open gives a pool of few connections on the database, whose schema must be the one this program knows, and whose commits
// must be on disk when they are answered: import, too, says what is stored. The caller closes it.
func (f DatabaseFlag) Open(ctx context.Context, schema postgres.Schema) (*pgxpool.Pool, error) {
	pool, err := postgres.OpenPool(ctx, postgres.PoolConfig{
		DSN: f.DatabaseURL, ApplicationName: schema.Name + " administration", MaxConns: 2, MinConns: 1,
	})
	if err != nil {
		return nil, err
	}
	if err := postgres.CheckSchema(ctx, pool, schema); err != nil {
		pool.Close()
		return nil, err
	}
	if err := postgres.CheckDurability(ctx, pool, nil); err != nil {
		pool.Close()
		return nil, err
	}
	return pool, nil
}

func (f DatabaseFlag) admin(ctx context.Context, env *AdminEnv, do func(*auth.Admin) error) error {
	pool, err := f.Open(ctx, env.Schema)
	if err != nil {
		return err
	}
	defer pool.Close()
	return do(auth.NewAdmin(env.Store(pool)))
}

// TenantCommands are the commands under "tenant".
type TenantCommands struct {
	Create TenantCreate `cmd:"" help:"Make a tenant."`
	List   TenantList   `cmd:"" help:"List the tenants."`
}

// TenantCreate is the command "tenant create".
type TenantCreate struct {
	DatabaseFlag
	ActorFlags
	ID   string `arg:"" help:"Id of the tenant: a-z, 0-9 and -."`
	Name string `required:"" help:"Name of the company."`
}

// Run makes the tenant.
func (c *TenantCreate) Run(ctx context.Context, env *AdminEnv) error {
	return c.admin(ctx, env, func(a *auth.Admin) error {
		if err := a.CreateTenant(ctx, c.ID, c.Name, c.by()); err != nil {
			return err
		}
		fmt.Fprintf(env.Stdout, "tenant %s created\n", c.ID)
		return nil
	})
}

// TenantList is the command "tenant list".
type TenantList struct{ DatabaseFlag }

// Run lists the tenants.
func (c *TenantList) Run(ctx context.Context, env *AdminEnv) error {
	return c.admin(ctx, env, func(a *auth.Admin) error {
		tenants, err := a.ListTenants(ctx)
		if err != nil {
			return err
		}
		return Table(env.Stdout, "ID\tNAME\tCREATED", tenants, func(t auth.Tenant) string {
			return fmt.Sprintf("%s\t%s\t%s", t.ID, t.Name, t.CreatedAt.UTC().Format(time.RFC3339))
		})
	})
}

// TokenCommands are the commands under "token".
type TokenCommands struct {
	Create TokenCreate `cmd:"" help:"Make a token. Its text is shown once."`
	List   TokenList   `cmd:"" help:"List a tenant's tokens."`
	Revoke TokenRevoke `cmd:"" help:"Revoke a token, from the next request on."`
}

// TokenCreate is the command "token create".
type TokenCreate struct {
	DatabaseFlag
	ActorFlags
	Tenant  string `xor:"owner" required:"" help:"Id of the tenant it belongs to."`
	Account string `xor:"owner" required:"" placeholder:"NAME" help:"Log-in name of the person whose own it is: it acts in that person's name, and never does more than the person may."`
	Role    string `required:"" enum:"reader,writer,admin,metrics" help:"What it may do: reader, writer, admin or metrics (the figures of the whole service and nothing else)."`
	Label   string `required:"" help:"What it is for, to recognise it in the list."`
}

// Run makes the token. Only its text goes to standard output, so that a script can take it.
func (c *TokenCreate) Run(ctx context.Context, env *AdminEnv) error {
	return c.admin(ctx, env, func(a *auth.Admin) error {
		_, text, err := c.create(ctx, a)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(env.Stdout, text)
		return err
	})
}

func (c *TokenCreate) create(ctx context.Context, a *auth.Admin) (id, text string, err error) {
	if c.Account != "" {
		return a.CreatePersonalToken(ctx, c.Account, auth.Role(c.Role), c.Label, c.by())
	}
	return a.CreateToken(ctx, c.Tenant, auth.Role(c.Role), c.Label, c.by())
}

// TokenList is the command "token list".
type TokenList struct {
	DatabaseFlag
	Tenant string `required:"" help:"Id of the tenant."`
}

// Run lists the tokens, without their secrets, which nobody has.
func (c *TokenList) Run(ctx context.Context, env *AdminEnv) error {
	return c.admin(ctx, env, func(a *auth.Admin) error {
		tokens, err := a.ListTokens(ctx, c.Tenant)
		if err != nil {
			return err
		}
		return Table(env.Stdout, "ID\tROLE\tLABEL\tOWNER\tCREATED\tREVOKED", tokens, func(t auth.Token) string {
			revoked, owner := "-", "-"
			if t.Owner != nil {
				owner = t.Owner.Name
			}
			if t.RevokedAt != nil {
				revoked = t.RevokedAt.UTC().Format(time.RFC3339)
			}
			return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s", t.ID, t.Role, OneCell(t.Label), owner, t.CreatedAt.UTC().Format(time.RFC3339), revoked)
		})
	})
}

// TokenRevoke is the command "token revoke".
type TokenRevoke struct {
	DatabaseFlag
	ActorFlags
	Tenant string `required:"" help:"Id of the tenant it belongs to."`
	ID     string `arg:"" help:"Id of the token, the part between ibt_ and the next _."`
}

// Run revokes the token.
func (c *TokenRevoke) Run(ctx context.Context, env *AdminEnv) error {
	return c.admin(ctx, env, func(a *auth.Admin) error {
		if err := a.RevokeToken(ctx, c.Tenant, c.ID, c.by()); err != nil {
			return err
		}
		fmt.Fprintf(env.Stdout, "token %s is revoked\n", c.ID)
		return nil
	})
}

// Table writes rows in columns under a head; columns are separated by tabs.
func Table[T any](w io.Writer, head string, rows []T, line func(T) string) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, head)
	for _, row := range rows {
		fmt.Fprintln(out, line(row))
	}
	return out.Flush()
}

// OneCell keeps text that came from elsewhere within its cell of a Table.
func OneCell(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

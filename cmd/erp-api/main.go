// Command erp-api is the ERP side: it issues invoices over HTTP, each exactly once.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/app"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/erpstore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "erp-api: %v\n", err)
		os.Exit(1)
	}
}

type commands struct {
	app.LogConfig
	Serve         serve                   `cmd:"" help:"Serve the ERP's HTTP interface."`
	Migrate       app.MigrateCommands     `cmd:"" help:"Bring the database's schema up to date, or show it."`
	Tenant        app.TenantCommands      `cmd:"" help:"Make and list tenants."`
	Token         app.TokenCommands       `cmd:"" help:"Make, list and revoke bearer tokens."`
	Account       app.AccountCommands     `cmd:"" help:"Make, list and disable people's accounts, and change passwords and roles."`
	Series        seriesCommands          `cmd:"" help:"Say how a tenant's invoices are numbered."`
	Target        targetCommands          `cmd:"" help:"Say where a tenant's invoices are registered; hold a target's registrations back."`
	Registrations registrationsCommands   `cmd:"" help:"Look at registrations; replay, resolve and acknowledge them."`
	Reconcile     app.ERPReconcileCommand `cmd:"" help:"Ask the targets now what they know; the service does it by itself. Nothing is sent."`
	Divergences   divergencesCommands     `cmd:"" help:"Look at what reconciliation found; accept and close it."`
	Purge         app.ERPPurgeCommand     `cmd:"" help:"Remove now what has been kept long enough; the service does it by itself."`
	Version       version                 `cmd:"" help:"Show the version of this program."`
}

// run is the whole program. Flags win over the environment. Logs go to stderr, what was asked for to stdout.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	var c commands
	ended := false
	parser, err := kong.New(&c,
		kong.Name("erp-api"),
		kong.Description("The ERP side of invoicebridge: issues invoices over HTTP, each exactly once."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { ended = true }), // --help
		kong.UsageOnError(),
		kong.Vars{"database_env": "ERP_DATABASE_URL", "actor": actor(getenv)},
	)
	if err != nil {
		return fmt.Errorf("commands: %w", err)
	}
	selected, err := parser.Parse(args)
	if ended {
		return nil
	}
	if err == nil {
		err = c.check(selected.Command())
	}
	if err != nil {
		return err
	}
	log, err := app.NewLogger(stderr, c.LogConfig)
	if err != nil {
		return err
	}
	selected.BindTo(ctx, (*context.Context)(nil))
	return selected.Run(log, &app.AdminEnv{
		Stdout: stdout, Command: app.CommandWords(selected.Command()),
		Schema: app.ERPSchema(),
		Store:  func(pool *pgxpool.Pool) auth.AdminStore { return erpstore.New(pool) },
	})
}

func actor(getenv func(string) string) string {
	for _, name := range []string{"USER", "LOGNAME"} {
		if user := getenv(name); user != "" {
			return user
		}
	}
	return "operator"
}

// check looks at everything that the chosen command uses, so that all mistakes are told at once.
func (c *commands) check(command string) error {
	err := c.Check()
	if command == "serve" {
		err = errors.Join(err, c.Serve.Check())
	}
	return err
}

type serve struct{ app.ERPConfig }

// Run serves until the context ends.
func (c *serve) Run(ctx context.Context, log *slog.Logger) error {
	return app.RunERP(ctx, c.ERPConfig, log, nil)
}

type version struct{}

// Run writes the version.
func (version) Run(env *app.AdminEnv) error {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return fmt.Errorf("this program was built without its version")
	}
	revision := "unknown"
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			revision = s.Value
		}
	}
	_, err := fmt.Fprintf(env.Stdout, "erp-api %s (%s, %s)\n", info.Main.Version, revision, info.GoVersion)
	return err
}

// Command crm-worker is the CRM side: it takes orders and sees to it that the ERP invoices each exactly once.
package main

import (
	"context"
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
	"invoicebridge/internal/auth/crmstore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "crm-worker: %v\n", err)
		os.Exit(1)
	}
}

type commands struct {
	app.LogConfig
	Serve       serve                   `cmd:"" help:"Take orders over HTTP and deliver their operations."`
	Orders      ordersCommands          `cmd:"" help:"Look at orders."`
	Operations  operationsCommands      `cmd:"" help:"Look at operations; replay, cancel and revise them."`
	Sources     sourcesCommands         `cmd:"" help:"Look at the sources of orders, and hold their deliveries back."`
	Reconcile   app.CRMReconcileCommand `cmd:"" help:"Compare our books with the ERP's now; the service does it by itself."`
	Replays     replaysCommands         `cmd:"" help:"Replay many operations at once, and see what became of each."`
	Resolutions resolutionsCommands     `cmd:"" help:"Propose what became of an unknown operation, and look at proposals."`
	Divergences divergencesCommands     `cmd:"" help:"Look at what reconciliation found; accept and close it."`
	Import      ImportCmd               `cmd:"" help:"Take orders from files."`
	Generate    GenerateCmd             `cmd:"" help:"Make up orders, for trying and for load."`
	Migrate     app.MigrateCommands     `cmd:"" help:"Bring the database's schema up to date, or show it."`
	Tenant      app.TenantCommands      `cmd:"" help:"Make and list tenants."`
	Token       app.TokenCommands       `cmd:"" help:"Make, list and revoke bearer tokens."`
	Account     app.AccountCommands     `cmd:"" help:"Make, list and disable people's accounts, and change passwords and roles."`
	Purge       app.CRMPurgeCommand     `cmd:"" help:"Remove now what has been kept long enough; the service does it by itself."`
	Version     version                 `cmd:"" help:"Show the version of this program."`
}

// run is the whole program. Flags win over the environment. Logs go to stderr, what was asked for to stdout.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	var c commands
	ended := false
	parser, err := kong.New(&c,
		kong.Name("crm-worker"),
		kong.Description("The CRM side of invoicebridge: takes orders and sees to it that the ERP invoices each exactly once."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { ended = true }), // --help
		kong.UsageOnError(),
		kong.Vars{"database_env": "CRM_DATABASE_URL", "actor": actor(getenv)},
	)
	if err != nil {
		return fmt.Errorf("commands: %w", err)
	}
	selected, err := parser.Parse(args)
	if ended { // what else may be wrong does not matter to who asks for help
		return nil
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
		Schema: app.CRMSchema(),
		Store:  func(pool *pgxpool.Pool) auth.AdminStore { return crmstore.New(pool) },
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

type serve struct{ app.CRMConfig }

// Validate is left to RunCRM: kong would ask before flags and variables are all read.
func (c *serve) Validate() error { return nil }

// Run serves until the context ends.
func (c *serve) Run(ctx context.Context, log *slog.Logger) error {
	return app.RunCRM(ctx, c.CRMConfig, log, nil)
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
	_, err := fmt.Fprintf(env.Stdout, "crm-worker %s (%s, %s)\n", info.Main.Version, revision, info.GoVersion)
	return err
}

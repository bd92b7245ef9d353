package app_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/app"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/testdb"
)

// commandLine is the administration of one service, on a database with the tenant acme.
type commandLine struct {
	t    *testing.T
	pool *pgxpool.Pool
	dsn  string
	env  app.AdminEnv
}

func onBothCommandLines(t *testing.T, test func(c commandLine)) {
	t.Helper()
	for name, side := range map[string]struct {
		pool *pgxpool.Pool
		env  app.AdminEnv
	}{
		"erp": {testdb.ERP(t), app.AdminEnv{Schema: app.ERPSchema(), Store: func(p *pgxpool.Pool) auth.AdminStore { return erpstore.New(p) }}},
		"crm": {testdb.CRM(t), app.AdminEnv{Schema: app.CRMSchema(), Store: func(p *pgxpool.Pool) auth.AdminStore { return crmstore.New(p) }}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := commandLine{t, side.pool, testdb.DSN(t, side.pool), side.env}
			if _, err := c.run("", "tenant", "create", "acme", "--name=Acme GmbH"); err != nil {
				t.Fatal(err)
			}
			test(c)
		})
	}
}

// run runs one command with something on standard input, and gives what it wrote.
func (c commandLine) run(stdin string, args ...string) (string, error) {
	c.t.Helper()
	var commands struct {
		Tenant  app.TenantCommands  `cmd:""`
		Token   app.TokenCommands   `cmd:""`
		Account app.AccountCommands `cmd:""`
	}
	parser, err := kong.New(&commands, kong.Name("test"), kong.Vars{"database_env": "NO_SUCH_VARIABLE", "actor": "kim"})
	if err != nil {
		c.t.Fatal(err)
	}
	selected, err := parser.Parse(append(args, "--database-url="+c.dsn))
	if err != nil {
		return "", err
	}
	selected.BindTo(c.t.Context(), (*context.Context)(nil))
	var out strings.Builder
	env := c.env
	env.Stdout, env.Stdin = &out, strings.NewReader(stdin)
	err = selected.Run(&env)
	return out.String(), err
}

func (c commandLine) must(stdin string, args ...string) string {
	c.t.Helper()
	out, err := c.run(stdin, args...)
	if err != nil {
		c.t.Fatalf("%s: %v", strings.Join(args, " "), err)
	}
	return out
}

func (c commandLine) logsIn(name, password string) bool {
	c.t.Helper()
	sessions := auth.NewSessions(c.env.Store(c.pool).(auth.SessionStore), auth.NewHasher(), auth.SessionOptions{})
	_, err := sessions.LogIn(c.t.Context(), name, password, auth.Origin{Address: "192.0.2.1"})
	return err == nil
}

func (c commandLine) count(from string) (n int) {
	c.t.Helper()
	if err := c.pool.QueryRow(c.t.Context(), "SELECT count(*) FROM "+from).Scan(&n); err != nil {
		c.t.Fatal(err)
	}
	return n
}

func TestAccountsAreAdministeredFromTheCommandLine(t *testing.T) {
	t.Parallel()
	onBothCommandLines(t, func(c commandLine) {
		create := []string{"account", "create", "--tenant=acme", "--name=ada", "--display-name=Ada L", "--role=operator", "--service"}
		c.must("correct horse battery\n", create...)
		if !c.logsIn("ada", "correct horse battery") {
			c.t.Error("the password of standard input, without its line end, does not open")
		}
		file := filepath.Join(c.t.TempDir(), "password")
		if err := os.WriteFile(file, []byte("another horse battery\r\n"), 0o600); err != nil {
			c.t.Fatal(err)
		}
		if out := c.must("", "account", "password", "ada", "--password-file="+file); !strings.Contains(out, "1 sessions ended") {
			c.t.Errorf("password: %s", out)
		}
		if c.logsIn("ada", "correct horse battery") || !c.logsIn("ada", "another horse battery") {
			c.t.Error("the old password opens, or the new one does not")
		}
		c.must("", "account", "create", "--tenant=acme", "--name=bob", "--display-name=Bob", "--role=viewer", "--no-password")
		list := c.must("", "account", "list", "--tenant=acme")
		for _, want := range []string{"ada", "Ada L", "operator", "yes", "password", "bob", "viewer", "OIDC"} {
			if !strings.Contains(list, want) {
				c.t.Errorf("the list lacks %q:\n%s", want, list)
			}
		}
		if strings.Contains(list, "argon2") {
			c.t.Errorf("the list has hashes:\n%s", list)
		}
		if out := c.must("", "account", "role", "ada", "viewer", "--no-service"); !strings.Contains(out, "ada has the role viewer\n") {
			c.t.Errorf("role: %s", out)
		}
		c.must("", "account", "disable", "ada", "--reason=left")
		if c.logsIn("ada", "another horse battery") || c.count("sessions") != 0 {
			c.t.Error("a disabled account still gets in")
		}
		if n := c.count("audit_entries WHERE actor = 'kim' AND via = 'cli' AND action LIKE 'account.%'"); n != 5 {
			c.t.Errorf("%d audit entries of accounts, want 5", n)
		}
	})
}

func TestAccountsAreNotMadeWithoutAProperPassword(t *testing.T) {
	t.Parallel()
	onBothCommandLines(t, func(c commandLine) {
		create := []string{"account", "create", "--tenant=acme", "--name=ada", "--display-name=Ada", "--role=operator"}
		for name, stdin := range map[string]string{
			"nothing": "", "too short": "short\n", "two lines": "correct horse battery\ncorrect horse battery\n", "the name": "my name is ada!\n",
		} {
			if out, err := c.run(stdin, create...); err == nil {
				c.t.Errorf("%s: %s", name, out)
			}
		}
		for name, args := range map[string][]string{
			"no such file": {"--password-file=" + filepath.Join(c.t.TempDir(), "none")}, "both": {"--no-password", "--password-file=x"},
			"as an argument": {"--password=correct horse battery"},
		} {
			if out, err := c.run("correct horse battery", append(create, args...)...); err == nil {
				c.t.Errorf("%s: %s", name, out)
			}
		}
		if n := c.count("accounts"); n != 0 {
			c.t.Errorf("%d accounts were made", n)
		}
	})
}

func TestTokensAreMadeForPeopleAndForScrapers(t *testing.T) {
	t.Parallel()
	onBothCommandLines(t, func(c commandLine) {
		c.must("correct horse battery", "account", "create", "--tenant=acme", "--name=ada", "--display-name=Ada", "--role=operator")
		verifier := auth.NewVerifier(c.env.Store(c.pool).(auth.Store))
		personal := strings.TrimSpace(c.must("", "token", "create", "--account=ada", "--role=writer", "--label=script"))
		if who, err := verifier.Verify(c.t.Context(), personal); err != nil || who.Actor() != "ada" || who.Tenant != "acme" {
			c.t.Errorf("ada's token is %+v, %v", who, err)
		}
		metrics := strings.TrimSpace(c.must("", "token", "create", "--tenant=acme", "--role=metrics", "--label=prometheus"))
		if who, err := verifier.Verify(c.t.Context(), metrics); err != nil || !who.May(auth.MayScrape) || who.May(auth.MayRead) {
			c.t.Errorf("the scraper's token is %+v, %v", who, err)
		}
		if list := c.must("", "token", "list", "--tenant=acme"); !strings.Contains(list, "ada") || !strings.Contains(list, "metrics") {
			c.t.Errorf("tokens:\n%s", list)
		}
		for _, args := range [][]string{
			{"--account=ada", "--role=admin"}, {"--account=nobody", "--role=reader"}, {"--role=reader"},
			{"--account=ada", "--tenant=acme", "--role=reader"}, {"--tenant=acme", "--role=viewer"},
		} {
			if out, err := c.run("", append([]string{"token", "create", "--label=x"}, args...)...); err == nil {
				c.t.Errorf("%v made a token: %s", args, out)
			}
		}
	})
}

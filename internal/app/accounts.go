package app

import (
	"context"
	"fmt"
	"time"

	"invoicebridge/internal/auth"
)

// AccountCommands are the commands under "account".
type AccountCommands struct {
	Create   AccountCreate   `cmd:"" help:"Make an account for a person. The password is asked for, or read from standard input or a file."`
	List     AccountList     `cmd:"" help:"List accounts."`
	Password AccountPassword `cmd:"" help:"Give an account another password and end all its sessions."`
	Role     AccountRole     `cmd:"" help:"Give an account another role, from the next request on."`
	Disable  AccountDisable  `cmd:"" help:"Disable an account for good: its sessions and its own tokens end with the next request."`
}

// AccountCreate is the command "account create".
type AccountCreate struct {
	DatabaseFlag
	ActorFlags
	PasswordFlags
	Tenant      string `required:"" help:"Id of the tenant the person works for."`
	Name        string `required:"" help:"Log-in name, unique in the whole service: a-z, 0-9, . _ + @ and -."`
	DisplayName string `required:"" help:"What the person is called."`
	Role        string `required:"" enum:"viewer,operator,admin" help:"What the person may do: viewer, operator or admin."`
	Service     bool   `help:"Also the queue and the figures, which belong to all tenants at once."`
	NoPassword  bool   `help:"Without a password: the person logs in by OIDC."`
}

// Run makes the account.
func (c *AccountCreate) Run(ctx context.Context, env *AdminEnv) error {
	account := auth.Account{
		Tenant: c.Tenant, Name: c.Name, DisplayName: c.DisplayName, Role: auth.Role(c.Role), Service: c.Service,
	}
	if !c.NoPassword {
		var err error
		if account.PasswordHash, err = c.hash(ctx, env, c.Name); err != nil {
			return err
		}
	} else if c.PasswordFile != "" {
		return fmt.Errorf("--no-password and --password-file exclude each other")
	}
	return c.admin(ctx, env, func(a *auth.Admin) error {
		account, err := a.CreateAccount(ctx, account, c.by())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(env.Stdout, "account %s created: %s of tenant %s\n", account.Name, account.Role, account.Tenant)
		return err
	})
}

// AccountList is the command "account list".
type AccountList struct {
	DatabaseFlag
	Tenant string `help:"Only those of the tenant with this id."`
}

// Run lists the accounts.
func (c *AccountList) Run(ctx context.Context, env *AdminEnv) error {
	return c.admin(ctx, env, func(a *auth.Admin) error {
		accounts, err := a.ListAccounts(ctx, c.Tenant)
		if err != nil {
			return err
		}
		return Table(env.Stdout, "TENANT\tNAME\tDISPLAY NAME\tROLE\tSERVICE\tLOG-IN\tCREATED\tDISABLED", accounts, accountLine)
	})
}

func accountLine(a auth.Account) string {
	service, disabled := "-", "-"
	var by string
	if a.Service {
		service = "yes"
	}
	if a.DisabledAt != nil {
		disabled = a.DisabledAt.UTC().Format(time.RFC3339)
	}
	switch {
	case a.PasswordHash != "" && a.Subject != "":
		by = "password, OIDC"
	case a.PasswordHash != "":
		by = "password"
	default:
		by = "OIDC"
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s", a.Tenant, a.Name, OneCell(a.DisplayName), a.Role, service, by,
		a.CreatedAt.UTC().Format(time.RFC3339), disabled)
}

// AccountPassword is the command "account password".
type AccountPassword struct {
	DatabaseFlag
	ActorFlags
	PasswordFlags
	Name string `arg:"" help:"Log-in name."`
}

// Run changes the password.
func (c *AccountPassword) Run(ctx context.Context, env *AdminEnv) error {
	hash, err := c.hash(ctx, env, c.Name)
	if err != nil {
		return err
	}
	return c.admin(ctx, env, func(a *auth.Admin) error {
		ended, err := a.SetPassword(ctx, c.Name, hash, c.by())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(env.Stdout, "account %s has another password, %d sessions ended\n", c.Name, ended)
		return err
	})
}

// AccountRole is the command "account role".
type AccountRole struct {
	DatabaseFlag
	ActorFlags
	Name    string `arg:"" help:"Log-in name."`
	Role    string `arg:"" enum:"viewer,operator,admin" help:"What the person may do: viewer, operator or admin."`
	Service *bool  `negatable:"" help:"Also give the queue and the figures, which belong to all tenants at once, or take them. Default: as it is."`
}

// Help says when that takes effect.
func (AccountRole) Help() string {
	return `Sessions go on, and the person's own tokens stay: both may do what the new role may, from the next request on. Disabling is for
good, so there is no command that enables again: whoever comes back gets a new account under another name, since the audit names people
by their log-in names.`
}

// Run changes the role.
func (c *AccountRole) Run(ctx context.Context, env *AdminEnv) error {
	return c.admin(ctx, env, func(a *auth.Admin) error {
		account, err := a.SetRole(ctx, c.Name, auth.Role(c.Role), c.Service, c.by())
		if err != nil {
			return err
		}
		service := ""
		if account.Service {
			service = ", with service access"
		}
		_, err = fmt.Fprintf(env.Stdout, "account %s has the role %s%s\n", account.Name, account.Role, service)
		return err
	})
}

// AccountDisable is the command "account disable".
type AccountDisable struct {
	DatabaseFlag
	ActorFlags
	Name string `arg:"" help:"Log-in name."`
}

// Run disables the account.
func (c *AccountDisable) Run(ctx context.Context, env *AdminEnv) error {
	return c.admin(ctx, env, func(a *auth.Admin) error {
		if err := a.DisableAccount(ctx, c.Name, c.by()); err != nil {
			return err
		}
		_, err := fmt.Fprintf(env.Stdout, "account %s is disabled\n", c.Name)
		return err
	})
}

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/app"
	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
)

// person is one of the demo's people, who can log in on both sides.
type person struct {
	name, displayName string
	role              auth.Role
	service           bool
	may               string // for the table
}

func people() []person {
	return []person{
		{"viewer", "Vera Viewer", auth.RoleViewer, false, "see everything of the demo company"},
		{"operator", "Olga Operator", auth.RoleOperator, false, "act: replay, cancel, pause, invoice by hand, propose how an unknown ended"},
		{"approver", "Otto Operator", auth.RoleOperator, false, "the same: the second person, who approves what the first proposed"},
		{"admin", "Ada Admin", auth.RoleAdmin, true, "all of it, and tokens, the queue and the figures"},
	}
}

// ensureAccounts makes the demo's people on both sides and gives their passwords, by name. Those of the file stay; an
// account that has another password by now gets that of the file, and one that somebody disabled stays so.
func ensureAccounts(ctx context.Context, path string, erp, crm *pgxpool.Pool) (tokens, error) {
	kept, err := readKept(path)
	if err != nil {
		return nil, err
	}
	passwords, names := tokens{}, []string{}
	for _, p := range people() {
		if passwords[p.name] = kept[p.name]; len(kept[p.name]) < auth.MinPassword {
			passwords[p.name] = newPassword()
		}
		for _, store := range []accountStore{erpstore.New(erp), crmstore.New(crm)} {
			if err := ensureAccount(ctx, store, p, passwords[p.name]); err != nil {
				return nil, fmt.Errorf("make the demo's account %q: %w", p.name, err)
			}
		}
		names = append(names, p.name)
	}
	return passwords, writeKept(path, names, passwords, kept)
}

// newPassword has 80 random bits, in groups that can be typed.
func newPassword() string {
	text := strings.ToLower(rand.Text())
	return text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:16]
}

type accountStore interface {
	auth.AdminStore
	auth.SessionStore
}

func ensureAccount(ctx context.Context, store accountStore, p person, password string) error {
	admin, hasher, by := auth.NewAdmin(store), auth.NewHasher(), audit.By{Actor: "bridge", Reason: "demo"}
	account, err := store.AccountByName(ctx, p.name)
	there := err == nil
	if err != nil && !errors.Is(err, auth.ErrAccountUnknown) {
		return err
	}
	if there {
		right, err := hasher.Check(ctx, password, account.PasswordHash)
		if err != nil || right || account.DisabledAt != nil {
			return err
		}
	}
	hash, err := hasher.Hash(ctx, p.name, password)
	if err != nil {
		return err
	}
	if there {
		_, err = admin.SetPassword(ctx, p.name, hash, by)
		return err
	}
	_, err = admin.CreateAccount(ctx, auth.Account{
		Tenant: demoTenant, Name: p.name, DisplayName: p.displayName, Role: p.role, Service: p.service, PasswordHash: hash,
	}, by)
	return err
}

// sayConsoles tells people where to look, and who they may be there.
func sayConsoles(w io.Writer, erp, crm string, passwords tokens) error {
	fmt.Fprintf(w, "\nConsoles, to look at and to act in (log in with one of the names on either side):\n\n"+
		"  CRM side  %s/dashboard\n  ERP       %s/invoices\n\n", crm, erp)
	var table strings.Builder
	err := app.Table(&table, "NAME\tPASSWORD\tMAY", people(), func(p person) string {
		return p.name + "\t" + passwords[p.name] + "\t" + p.may
	})
	for line := range strings.Lines(table.String()) {
		fmt.Fprint(w, "  "+line)
	}
	return err
}

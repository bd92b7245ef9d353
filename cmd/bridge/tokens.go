package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/crmstore"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/problem"
)

// demoTenant is the company that the demo plays.
const demoTenant = "demo"

// tokens are the demo's bearer tokens, by name. They are made once and kept in a file for the next run.
type tokens map[string]string

// The tokens' names.
const (
	erpToken    = "erp"    // for people, on the ERP
	crmToken    = "crm"    // for people, on the CRM side
	workerToken = "worker" // the CRM side's own, on the ERP
)

// ensureTokens makes the demo tenant on both sides and gives its tokens. Those of the file are taken if the
// databases know them; the file may be older than the databases.
func ensureTokens(ctx context.Context, path string, erp, crm *pgxpool.Pool) (tokens, error) {
	kept, err := readKept(path)
	if err != nil {
		return nil, err
	}
	onERP, onCRM := erpstore.New(erp), crmstore.New(crm)
	made := tokens{}
	for _, want := range []struct {
		name  string
		store demoStore
		role  auth.Role
	}{
		{erpToken, onERP, auth.RoleAdmin},
		{crmToken, onCRM, auth.RoleAdmin},
		{workerToken, onERP, auth.RoleWriter},
	} {
		if made[want.name], err = ensureToken(ctx, want.store, want.name, kept[want.name], want.role); err != nil {
			return nil, fmt.Errorf("make the demo's token %q: %w", want.name, err)
		}
	}
	return made, writeKept(path, []string{erpToken, crmToken, workerToken}, made, kept)
}

type demoStore interface {
	auth.Store
	auth.AdminStore
}

func ensureToken(ctx context.Context, store demoStore, name, kept string, role auth.Role) (string, error) {
	who, err := auth.NewVerifier(store).Verify(ctx, kept)
	if err == nil && who.Tenant == demoTenant && who.Role == role {
		return kept, nil
	}
	if err != nil && !problem.Is(err, problem.Unauthenticated) {
		return "", err
	}
	by := audit.By{Actor: "bridge", Reason: "demo"}
	admin := auth.NewAdmin(store)
	if err := admin.CreateTenant(ctx, demoTenant, "Demo company", by); err != nil && !errors.Is(err, auth.ErrTenantExists) {
		return "", err
	}
	_, text, err := admin.CreateToken(ctx, demoTenant, role, "demo "+name, by)
	return text, err
}

// readKept reads lines of the form name=secret. A file that is not there has none.
func readKept(path string) (tokens, error) {
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read what the last run kept: %w", err)
	}
	kept := tokens{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		if name, token, ok := strings.Cut(lines.Text(), "="); ok {
			kept[name] = token
		}
	}
	return kept, nil
}

// writeKept replaces the file as a whole, readable for its owner only. A rename is not cut in half by a kill.
func writeKept(path string, names []string, t, kept tokens) error {
	var text strings.Builder
	same := true
	for _, name := range names {
		fmt.Fprintf(&text, "%s=%s\n", name, t[name])
		same = same && kept[name] == t[name]
	}
	if same {
		return nil
	}
	draft, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("keep what the next run needs: %w", err)
	}
	_, err = draft.WriteString(text.String())
	if err = errors.Join(err, draft.Close()); err == nil {
		err = os.Rename(draft.Name(), path)
	}
	if err != nil {
		_ = os.Remove(draft.Name())
		return fmt.Errorf("keep what the next run needs: %w", err)
	}
	return nil
}

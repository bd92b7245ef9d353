package invoice

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/audit"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/problem"
	"invoicebridge/internal/target"
	"invoicebridge/internal/tenantdb"
)

// TargetSettings are one target of a tenant.
type TargetSettings struct {
	Tenant, ID, Kind, BaseURL string
	// CredentialRef says where the secret is: env:NAME or file:/path. The secret itself is never kept.
	CredentialRef string
	Can           target.Capabilities
	Disabled      bool
}

// TargetAdmin changes targets. Each change and its audit entry are one transaction.
type TargetAdmin struct {
	db    tenantdb.DB
	kinds TargetKinds
}

// NewTargetAdmin makes a TargetAdmin on the ERP's database.
func NewTargetAdmin(pool *pgxpool.Pool, kinds TargetKinds) *TargetAdmin {
	return &TargetAdmin{db: tenantdb.New(pool), kinds: kinds}
}

var (
	targetIDForm      = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{0,62}$`)
	credentialRefForm = regexp.MustCompile(`^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+)$`)
)

const (
	targetOfTenant     = "targets_tenant_id_fkey"
	maxTargetSetting   = 2048
	shortestResolution = time.Second // of a setting that is kept in seconds
)

// Set makes a target or changes it; a disabled one is enabled again. Invoices that are issued from now on are registered
// there, those of before are not.
//
// It refuses, by the setting's name, what would make duplicates: capabilities that contradict each other or the longest
// request; another kind under an id that was used; and, while registrations are in doubt, another address, because the new
// system's "absent" would say nothing about the old one. moved says that it is the same system under a new address.
func (a *TargetAdmin) Set(ctx context.Context, t TargetSettings, moved bool, by audit.By) error {
	if err := a.check(t, by); err != nil {
		return err
	}
	err := pgx.BeginFunc(ctx, a.db.Of(t.Tenant), func(tx pgx.Tx) error {
		queries := erpdb.New(tx)
		if err := checkChange(ctx, queries, t, moved); err != nil {
			return err
		}
		err := queries.TargetUpsert(ctx, erpdb.TargetUpsertParams{
			TenantID: t.Tenant, ID: t.ID, Kind: t.Kind, BaseUrl: t.BaseURL, CredentialRef: t.CredentialRef,
			Locatable: t.Can.Locatable, KeyWindowSeconds: wholeSeconds(t.Can.Keyed, t.Can.KeyWindow),
			AbsentAfterSeconds: wholeSeconds(t.Can.AbsenceAuthoritative, t.Can.SettleTime),
		})
		if err != nil {
			return err
		}
		return writeAudit(ctx, queries, t.Tenant, "target.set", t.String(), by)
	})
	switch {
	case violates(err, targetOfTenant):
		return fmt.Errorf("there is no tenant %q", t.Tenant)
	case err != nil:
		return fmt.Errorf("set target %s: %w", t.ID, err)
	}
	return nil
}

func (a *TargetAdmin) check(t TargetSettings, by audit.By) error {
	var wrong []error
	if !targetIDForm.MatchString(t.ID) {
		wrong = append(wrong, fmt.Errorf("id: %.80q: an id has 1 to 63 of a-z, 0-9 and -, and does not begin with -", t.ID))
	}
	if err := a.kinds.checkAddress(t.Kind, t.BaseURL); err != nil {
		wrong = append(wrong, fmt.Errorf("url: %w", err))
	}
	if !credentialRefForm.MatchString(t.CredentialRef) { // which is not repeated: it may be the secret itself
		wrong = append(wrong, errors.New("credential: it is given by reference: env:NAME or file:/absolute/path"))
	}
	if len(t.BaseURL) > maxTargetSetting || len(t.CredentialRef) > maxTargetSetting {
		wrong = append(wrong, fmt.Errorf("url, credential: more than %d bytes", maxTargetSetting))
	}
	for _, d := range []time.Duration{t.Can.KeyWindow, t.Can.SettleTime} {
		if d%shortestResolution != 0 {
			wrong = append(wrong, fmt.Errorf("key-window, absent-after: %v is not in whole seconds", d))
		}
	}
	if strings.TrimSpace(by.Actor) == "" {
		wrong = append(wrong, errors.New("actor: is missing"))
	}
	return errors.Join(append(wrong, a.kinds.Check(t.Kind, t.Can))...)
}

// checkChange looks at what is there, under its lock.
func checkChange(ctx context.Context, queries *erpdb.Queries, t TargetSettings, moved bool) error {
	was, err := queries.TargetGet(ctx, t.Tenant, t.ID)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	if err != nil {
		return err
	}
	if was.Kind != t.Kind {
		return fmt.Errorf("kind: it is of kind %s and stays so; another kind is another target, with an id of its own", was.Kind)
	}
	if was.BaseUrl == t.BaseURL || moved {
		return nil
	}
	doubts, err := queries.TargetDoubts(ctx, t.Tenant, t.ID)
	if err != nil {
		return err
	}
	if doubts > 0 {
		return fmt.Errorf("url: of %d registrations at %s it is not known whether they landed there, and another system can't tell: "+
			"settle them first, or say that it is the same system under a new address (--moved)", doubts, was.BaseUrl)
	}
	return nil
}

func wholeSeconds(given bool, d time.Duration) *int64 {
	if !given {
		return nil
	}
	n := int64(d / time.Second)
	return &n
}

// String says everything about a target that may be told.
func (t TargetSettings) String() string {
	text := fmt.Sprintf("%s = %s at %s, credential %s", t.ID, t.Kind, t.BaseURL, t.CredentialRef)
	if t.Can.Keyed {
		text += fmt.Sprintf(", keyed for %s", t.Can.KeyWindow)
	}
	if t.Can.Locatable {
		text += ", locatable"
	}
	if t.Can.AbsenceAuthoritative {
		text += fmt.Sprintf(", absent after %s", t.Can.SettleTime)
	}
	return text
}

// List gives a tenant's targets by id, the disabled ones included.
func (a *TargetAdmin) List(ctx context.Context, tenant string) ([]TargetSettings, error) {
	rows, err := erpdb.New(a.db.Of(tenant)).TargetList(ctx, tenant)
	if err != nil {
		return nil, fmt.Errorf("list targets: %w", err)
	}
	list := make([]TargetSettings, len(rows))
	for i, row := range rows {
		list[i] = TargetSettings{
			Tenant: row.TenantID, ID: row.ID, Kind: row.Kind, BaseURL: row.BaseUrl, CredentialRef: row.CredentialRef,
			Can:      capabilitiesOf(row.KeyWindowSeconds, row.Locatable, row.AbsentAfterSeconds),
			Disabled: row.DisabledAt != nil,
		}
	}
	return list, nil
}

// Disable ends the registering of new invoices at a target. What is open there is worked on to its end. It fails with
// problem not-found if the tenant has no such target that is enabled.
func (a *TargetAdmin) Disable(ctx context.Context, tenant, id string, by audit.By) error {
	if strings.TrimSpace(by.Actor) == "" {
		return errors.New("actor: is missing")
	}
	return pgx.BeginFunc(ctx, a.db.Of(tenant), func(tx pgx.Tx) error {
		n, err := erpdb.New(tx).TargetDisable(ctx, tenant, id)
		if err != nil {
			return fmt.Errorf("disable target %s: %w", id, err)
		}
		if n == 0 {
			return problem.New(problem.NotFound, "Tenant %q has no enabled target %q.", tenant, id)
		}
		return writeAudit(ctx, erpdb.New(tx), tenant, "target.disable", id, by)
	})
}

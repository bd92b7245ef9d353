package invoice

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/target"
)

// Target is an external service, as the Registrar needs it. Both calls end with ctx at the latest and never fail
// otherwise than by what they answer.
type Target interface {
	Send(ctx context.Context, s target.Submission) target.Sent
	Locate(ctx context.Context, q target.Query) target.Located
	// Close closes idle connections. Calls that are under way end as they would.
	Close()
}

// TargetKind is what has to be known of a kind of target: how to open one, and what it can't be able to do.
type TargetKind struct {
	Open  func(baseURL string, secret target.Secret) (Target, error)
	Check func(c target.Capabilities, longestRequest time.Duration) error
}

// TargetKinds are the kinds that this program knows, by name.
type TargetKinds struct {
	Kinds map[string]TargetKind
	// LongestRequest is the longest time from sending a request to giving it up, for all kinds: all requests of one
	// call together.
	LongestRequest time.Duration
}

// Check says what is wrong with a target's capabilities, by the names of its settings.
func (k TargetKinds) Check(kind string, c target.Capabilities) error {
	known, ok := k.Kinds[kind]
	if !ok {
		return fmt.Errorf("kind: there is no kind %q; there are %v", kind, k.names())
	}
	if err := known.Check(c, k.LongestRequest); err != nil {
		return fmt.Errorf("%w (key_window is --key-window, settle_time is --absent-after, and the longest request is %v, by the time limit of requests to targets)",
			err, k.LongestRequest)
	}
	return nil
}

// checkAddress opens a target, which sends nothing.
func (k TargetKinds) checkAddress(kind, baseURL string) error {
	known, ok := k.Kinds[kind]
	if !ok {
		return nil // Check says so
	}
	opened, err := known.Open(baseURL, target.NewSecret("unused"))
	if err == nil {
		opened.Close()
	}
	return err
}

func (k TargetKinds) names() []string {
	names := make([]string, 0, len(k.Kinds))
	for name := range k.Kinds {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// CheckTargets says which of the targets that requests may be sent to can't be served as they are set: an absence that is
// believed before the longest request has ended, say, would be a duplicate. A service does not start with one.
func CheckTargets(ctx context.Context, pool *pgxpool.Pool, kinds TargetKinds) error {
	rows, err := erpdb.New(pool).TargetListInUse(ctx)
	if err != nil {
		return fmt.Errorf("check the targets: %w", err)
	}
	var wrong []error
	for _, row := range rows {
		if err := kinds.Check(row.Kind, capabilitiesOf(row.KeyWindowSeconds, row.Locatable, row.AbsentAfterSeconds)); err != nil {
			wrong = append(wrong, fmt.Errorf("target %s of tenant %s can't be served: %w", row.ID, row.TenantID, err))
		}
	}
	return errors.Join(wrong...)
}

// CheckCredentials says of which of the targets that requests may be sent to the credential can't be read, and why. A
// service starts all the same: the others are served, and what is missing is read anew for each attempt.
func CheckCredentials(ctx context.Context, pool *pgxpool.Pool, credential func(ref string) (target.Secret, error)) error {
	rows, err := erpdb.New(pool).TargetListInUse(ctx)
	if err != nil {
		return fmt.Errorf("check the targets' credentials: %w", err)
	}
	var wrong []error
	for _, row := range rows {
		if _, err := credential(row.CredentialRef); err != nil {
			wrong = append(wrong, fmt.Errorf("target %s of tenant %s: %w", row.ID, row.TenantID, err))
		}
	}
	return errors.Join(wrong...)
}

// capabilitiesOf reads a target's columns: null is "promises nothing".
func capabilitiesOf(keyWindow *int64, locatable bool, absentAfter *int64) target.Capabilities {
	c := target.Capabilities{Locatable: locatable}
	if keyWindow != nil {
		c.Keyed, c.KeyWindow = true, time.Duration(*keyWindow)*time.Second
	}
	if absentAfter != nil {
		c.AbsenceAuthoritative, c.SettleTime = true, time.Duration(*absentAfter)*time.Second
	}
	return c
}

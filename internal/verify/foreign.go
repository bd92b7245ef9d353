package verify

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// Foreign are implementations of POST /v1/invoices that run already, behind one or more addresses.
type Foreign struct {
	URLs  []string
	Token string // of a tenant that may get invoices of the source "verify"
	// Progress, where given, is told of each check before it begins.
	Progress func(check string)
}

// Run makes the checks that need only the HTTP contract. It changes the installation: each check leaves its invoices
// there, of the source "verify". An error means that the checks could not be made at all.
func (o Foreign) Run(ctx context.Context) ([]Row, error) {
	c := contract{run: runName(), seen: seen{limit: 10 * time.Second, interval: 50 * time.Millisecond}}
	for _, base := range o.URLs {
		u, err := url.Parse(base)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, fmt.Errorf("%q is no address such as https://erp.example.com", base)
		}
		c.replicas = append(c.replicas, newEndpoint(base, o.Token))
	}
	if len(c.replicas) == 0 {
		return nil, errors.New("no address is given")
	}
	c.cut = func(n int) (endpoint, error) { return c.replica(n).losing(), nil }
	if got := c.replica(0).issue(ctx, c.invoice("first", 0)); !got.invoiced() {
		return nil, fmt.Errorf("%s does not issue an invoice, so there is nothing to check: %s", o.URLs[0], got)
	}
	return runAll(ctx, c.checks(), o.Progress), nil
}

// runAll makes one check after the other.
func runAll(ctx context.Context, checks []check, progress func(string)) []Row {
	rows := make([]Row, 0, len(checks))
	for _, c := range checks {
		if progress != nil {
			progress(c.name)
		}
		rows = append(rows, c.run(ctx))
	}
	return rows
}

// runName tells the orders of one run from those of another.
func runName() string { return strings.ToLower(rand.Text()[:8]) }

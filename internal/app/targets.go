package app

import (
	"os"
	"time"

	"invoicebridge/internal/invoice"
	"invoicebridge/internal/target"
	"invoicebridge/internal/target/einvoice"
	"invoicebridge/internal/target/ledger"
	"invoicebridge/internal/telemetry"
)

// DefaultTargetTimeout is the time limit of one request to a target.
const DefaultTargetTimeout = 30 * time.Second

// requestsPerAttempt is the most requests that a client of a target makes for one call (the ledger: create, then post).
const requestsPerAttempt = 2

// TargetKinds are the kinds of target that this program knows. timeout is for one request to a target. A new kind is one
// more package and one more entry.
func TargetKinds(timeout time.Duration) invoice.TargetKinds { return targetKinds(timeout, nil) }

// targetKinds are TargetKinds whose requests are traced.
func targetKinds(timeout time.Duration, traces *telemetry.Traces) invoice.TargetKinds {
	timeout = orDefault(timeout, DefaultTargetTimeout)
	return invoice.TargetKinds{
		LongestRequest: requestsPerAttempt * timeout,
		Kinds: map[string]invoice.TargetKind{
			einvoice.Kind: {
				Open: func(baseURL string, secret target.Secret) (invoice.Target, error) {
					return einvoice.New(einvoice.Config{
						BaseURL: baseURL, Token: secret, Timeout: timeout, Now: time.Now, Wrap: traces.Wrap(einvoice.Kind),
					})
				},
				Check: einvoice.CheckCapabilities,
			},
			ledger.Kind: {
				Open: func(baseURL string, secret target.Secret) (invoice.Target, error) {
					return ledger.New(ledger.Config{
						BaseURL: baseURL, Token: secret, Timeout: timeout, Now: time.Now, Wrap: traces.Wrap(ledger.Kind),
					})
				},
				Check: ledger.CheckCapabilities,
			},
		},
	}
}

// credential reads what a target's settings name.
func credential(ref string) (target.Secret, error) {
	return target.ResolveCredential(ref, os.Getenv, os.ReadFile)
}

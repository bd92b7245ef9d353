package targetsim_test

import (
	"context"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"invoicebridge/internal/target"
	"invoicebridge/internal/target/einvoice"
	"invoicebridge/internal/target/ledger"
	"invoicebridge/internal/target/targetsim"
)

const (
	patience = 20 * time.Second
	token    = "hush"
)

// client is what a user of targets declares.
type client interface {
	Send(ctx context.Context, s target.Submission) target.Sent
	Locate(ctx context.Context, q target.Query) target.Located
}

// fixture is a simulator whose clock stands still but for Advance, and the real clients of it.
type fixture struct {
	*targetsim.Sim
	cfg     targetsim.Config
	url     string
	clients map[string]client
}

func fixedClock() time.Time { return time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC) }

// tb is what testing.T and rapid.T have in common.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Cleanup(f func())
}

func setup(t tb, cfg targetsim.Config) *fixture {
	t.Helper()
	cfg.Now, cfg.Token, cfg.Slow = fixedClock, token, time.Millisecond
	sim, err := targetsim.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(sim)
	t.Cleanup(func() {
		sim.EndWaiting()
		server.Close()
		if err := sim.Close(); err != nil {
			t.Fatal(err)
		}
	})
	return &fixture{Sim: sim, cfg: cfg, url: server.URL, clients: newClients(t, server.URL)}
}

func newClients(t tb, url string) map[string]client {
	t.Helper()
	e, err := einvoice.New(einvoice.Config{BaseURL: url + "/einvoice", Token: target.NewSecret(token), Timeout: patience, Now: fixedClock})
	if err != nil {
		t.Fatal(err)
	}
	l, err := ledger.New(ledger.Config{BaseURL: url + "/ledger", Token: target.NewSecret(token), Timeout: patience, Now: fixedClock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	t.Cleanup(l.Close)
	return map[string]client{einvoice.Kind: e, ledger.Kind: l}
}

// inFile is a configuration with a journal.
func inFile(t *testing.T) targetsim.Config {
	t.Helper()
	return targetsim.Config{Journal: filepath.Join(t.TempDir(), "targetsim.jsonl")}
}

func (f *fixture) script(t tb, faults ...targetsim.Fault) {
	t.Helper()
	if err := f.Script(reference, faults...); err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) advance(t tb, by time.Duration) {
	t.Helper()
	if err := f.Advance(by); err != nil {
		t.Fatal(err)
	}
}

const reference = "op-1"

func submission() target.Submission {
	return target.Submission{Key: "K1", Reference: reference, Number: "INV-1", Document: []byte(`{"number":"INV-1"}`)}
}

func query() target.Query { return target.Query{Reference: reference, Number: "INV-1"} }

// untilArrived is a context that ends once a request has arrived after the first so many: the patience of a client whose
// request is there and is not answered.
func (f *fixture) untilArrived(t *testing.T, after int) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	go func() {
		defer cancel()
		for len(f.Requests("")) <= after {
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	return ctx
}

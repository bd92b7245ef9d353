package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"invoicebridge/internal/app"
	"invoicebridge/internal/audit"
	"invoicebridge/internal/backoff"
	"invoicebridge/internal/erpdb"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/target"
	"invoicebridge/internal/target/einvoice"
	"invoicebridge/internal/target/ledger"
	"invoicebridge/internal/target/targetsim"
)

// What takes minutes and hours at real targets takes seconds in a demo. The settle time outlasts everything that the
// simulator does late, and the longest request: what targets promise holds here, too.
const (
	targetTimeout   = 500 * time.Millisecond
	targetLate      = 700 * time.Millisecond
	targetSettle    = 2 * time.Second
	targetKeyWindow = 24 * time.Hour
)

func registering() app.RegisterConfig {
	return app.RegisterConfig{
		TargetTimeout: targetTimeout, SweepInterval: sweepInterval,
		BackOff: backoff.BackOff{Base: 200 * time.Millisecond, Cap: 500 * time.Millisecond, Slow: 5 * time.Second},
	}
}

// targetFaults are the shares of requests that a target treats badly.
func targetFaults(faults bool) map[targetsim.Fault]float64 {
	if !faults {
		return nil
	}
	return map[targetsim.Fault]float64{
		targetsim.AcceptSilent: 0.01, targetsim.AcceptLate: 0.03, targetsim.ResetBefore: 0.02, targetsim.ResetAfter: 0.08,
		targetsim.HalfAnswer: 0.03, targetsim.DuplicateOwn: 0.03, targetsim.DuplicateBare: 0.03, targetsim.Held: 0.03,
		targetsim.Hidden: 0.02, targetsim.Warnings: 0.05, targetsim.BadGateway: 0.02,
		targetsim.PostLost: 0.05, targetsim.PostBadGateway: 0.05,
		targetsim.LookupError: 0.05, targetsim.LookupHTML404: 0.05, targetsim.LookupNonsense: 0.05,
	}
}

// targets are a gateway and a ledger that the demo's invoices are registered with.
type targets struct {
	sim  *targetsim.Sim
	addr string
}

// startTargets starts the simulator and tells the ERP of it. What the simulator has taken is kept in the data folder.
func (d *demo) startTargets(ctx context.Context) (err error) {
	t := &d.services.targets
	token, err := filepath.Abs(filepath.Join(d.settings.DataDir, "demo-target-token"))
	if err != nil {
		return fmt.Errorf("find the data folder: %w", err)
	}
	const secret = "the-demo-target-asks-for-this"
	if err := os.WriteFile(token, []byte(secret+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the token of the demo's targets: %w", err)
	}
	t.sim, err = targetsim.Open(targetsim.Config{
		Journal: filepath.Join(d.settings.DataDir, "targetsim.jsonl"), Token: secret, KeyWindow: targetKeyWindow,
		Late: targetLate, Held: targetLate, Hidden: targetLate, Slow: targetLate / 10, Pause: targetLate,
		Seed: d.settings.Seed, Rates: targetFaults(d.settings.Faults),
	})
	if err != nil {
		return err
	}
	t.addr, err = d.parts.start(ctx, "targets", func(ctx context.Context, ready func(string)) error {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", d.settings.TargetListen)
		if err != nil {
			return errors.Join(explainListen(err, targetPort, d.settings.TargetListen), t.sim.Close())
		}
		ready(l.Addr().String())
		return t.sim.Serve(ctx, l)
	})
	if err != nil {
		return err
	}
	return d.setTargets(ctx, "file:"+token)
}

// setTargets: the address may be another one than last time, the targets are the same.
func (d *demo) setTargets(ctx context.Context, credential string) error {
	admin := invoice.NewTargetAdmin(d.erp, app.TargetKinds(targetTimeout))
	for _, s := range []invoice.TargetSettings{
		{ID: "gateway", Kind: einvoice.Kind, Can: target.Capabilities{Keyed: true, KeyWindow: targetKeyWindow}},
		{ID: "books", Kind: ledger.Kind},
	} {
		s.Tenant, s.CredentialRef, s.BaseURL = demoTenant, credential, "http://"+d.services.targets.addr+"/"+s.Kind
		s.Can.Locatable, s.Can.AbsenceAuthoritative, s.Can.SettleTime = true, true, targetSettle
		if err := admin.Set(ctx, s, true, audit.By{Actor: "bridge", Reason: "demo"}); err != nil {
			return err
		}
	}
	return nil
}

// registrations are what the ERP and the targets say of each other. What the targets have, they count themselves.
type registrations struct {
	Registered, Open, Failed int64 // by the ERP's database
	Twice                    int64 // by the targets
}

// settleRegistrations waits until no registration is open, and at most for the limit, and counts.
func (d *demo) settleRegistrations(ctx context.Context, limit time.Duration) (r registrations, err error) {
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(settlePoll)
	defer tick.Stop()
	for {
		row, err := erpdb.New(d.erp).DemoRegistrations(ctx, demoTenant)
		if err != nil {
			return r, fmt.Errorf("count registrations: %w", err)
		}
		r = registrations{Registered: row.Registered, Open: row.Open, Failed: row.Failed}
		if r.Open == 0 || time.Now().After(deadline) {
			break
		}
		select {
		case <-ctx.Done():
			return r, context.Cause(ctx)
		case <-tick.C:
		}
	}
	r.Twice = int64(d.services.targets.sim.Effects("").Duplicates)
	return r, nil
}

// verdict is nil if everything is registered that should be, and nothing twice.
func (r registrations) verdict(limit time.Duration) error {
	var errs []error
	if r.Twice > 0 {
		errs = append(errs, fmt.Errorf("%d registrations beyond the first of an invoice at a target", r.Twice))
	}
	if r.Failed > 0 {
		errs = append(errs, fmt.Errorf("%d registrations have failed", r.Failed))
	}
	if r.Open > 0 {
		errs = append(errs, fmt.Errorf("%d registrations are still open after %s: run again to go on with them, or give them "+
			"more time with --settle-timeout", r.Open, limit))
	}
	return errors.Join(errs...)
}

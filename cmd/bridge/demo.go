package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/crmdb"
)

// errInterrupted says that somebody ended the program from outside.
var errInterrupted = errors.New("interrupted")

// run is the whole program. It returns when ctx ends, with --once after the demo, or when a part of it fails. Ended
// from outside it returns nil, except with --once before the figures are known.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	s, err := parse(args, getenv, stdout, stderr)
	if err != nil {
		return err
	}
	if err := checkPorts(ctx, s); err != nil {
		return err
	}
	if err := os.MkdirAll(s.DataDir, 0o755); err != nil { // the embedded server's user has to pass
		return fmt.Errorf("make the data folder: %w", err)
	}
	log, closeLog, err := openLog(s, stderr)
	if err != nil {
		return err
	}
	defer closeLog()

	partsCtx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	d := demo{settings: s, out: stdout, log: log, parts: &parts{fail: fail}}
	err = d.run(partsCtx)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		err = d.interrupted() // whatever that broke off
	case partsCtx.Err() != nil:
		err = context.Cause(partsCtx) // the part that failed first; the rest followed from it
	}
	return errors.Join(err, d.parts.stopAll(ctx))
}

// demo is one run of the program.
type demo struct {
	settings settings
	out      io.Writer
	log      *slog.Logger
	parts    *parts

	tokens   tokens
	accounts tokens        // passwords, by name; nobody's with --once
	erp, crm *pgxpool.Pool // for counting; the services have their own
	services services
}

func (d *demo) run(ctx context.Context) error {
	if err := d.start(ctx); err != nil {
		return err
	}
	d.sayWhere()
	if err := d.importOrders(ctx); err != nil {
		return err
	}
	verdict, err := d.finish(ctx)
	switch {
	case err != nil:
		return err
	case d.settings.Once:
		return verdict
	case verdict != nil: // who stays can look into it
		fmt.Fprintf(d.out, "\nNOT AS IT SHOULD BE: %v\n", verdict)
	}
	d.sayHow()
	if err := sayConsoles(d.out, "http://"+d.services.erpAddr, "http://"+d.services.crmAddr, d.accounts); err != nil {
		return err
	}
	<-ctx.Done()
	return context.Cause(ctx)
}

// start brings everything up: databases, tokens, services. What it started is stopped by the parts.
func (d *demo) start(ctx context.Context) error {
	dbs, err := openDatabases(ctx, d.settings, d.log)
	if dbs.embedded != nil {
		d.parts.onStop(dbs.embedded.Stop)
	}
	if err != nil {
		return err
	}
	if dbs.embedded != nil {
		go d.watch(ctx, dbs)
	}
	if d.erp, err = openPool(ctx, dbs.erp); err != nil {
		return err
	}
	d.parts.onStop(func(context.Context) error { d.erp.Close(); return nil })
	if d.crm, err = openPool(ctx, dbs.crm); err != nil {
		return err
	}
	d.parts.onStop(func(context.Context) error { d.crm.Close(); return nil })
	if d.tokens, err = ensureTokens(ctx, filepath.Join(d.settings.DataDir, "demo-tokens"), d.erp, d.crm); err != nil {
		return err
	}
	if !d.settings.Once {
		if d.accounts, err = ensureAccounts(ctx, filepath.Join(d.settings.DataDir, "demo-passwords"), d.erp, d.crm); err != nil {
			return err
		}
	}
	fmt.Fprintf(d.out, "Data    %s\n", dbs)
	if err := d.sayCutOff(ctx); err != nil {
		return err
	}
	return d.startServices(ctx, dbs)
}

// sayCutOff tells what an earlier run left half done. Nobody may send such a request again before its lease is over.
func (d *demo) sayCutOff(ctx context.Context) error {
	totals, err := crmdb.New(d.crm).DemoTotals(ctx, demoTenant)
	if err != nil {
		return fmt.Errorf("ask what an earlier run left: %w", err)
	}
	if totals.Processing > 0 {
		fmt.Fprintf(d.out, "        %d operations were on their way when an earlier run was killed: they go on about a minute after that\n",
			totals.Processing)
	}
	return nil
}

// watch ends the program if its database server ends first.
func (d *demo) watch(ctx context.Context, dbs databases) {
	select {
	case <-dbs.embedded.Exited():
		d.parts.fail(fmt.Errorf("the embedded PostgreSQL ended by itself; see server.log in %s", dbs.embedded.Dir()))
	case <-ctx.Done():
	}
}

// finish waits for the operations, and tells the figures. The verdict is what is wrong with them, nil if nothing.
func (d *demo) finish(ctx context.Context) (verdict, err error) {
	open, err := newProgress(d.out).settle(ctx, d.crm, d.services.wire, d.settings.SettleTimeout)
	if err != nil {
		return nil, err
	}
	f, examples, err := count(ctx, d.erp, d.crm, d.services.wire())
	if err != nil {
		return nil, err
	}
	if f.Registrations, err = d.settleRegistrations(ctx, d.settings.SettleTimeout); err != nil {
		return nil, err
	}
	fmt.Fprintln(d.out)
	if err := errors.Join(f.print(d.out), d.printJSON(f)); err != nil {
		return nil, fmt.Errorf("print the figures: %w", err)
	}
	verdict = errors.Join(f.verdict(examples), f.Registrations.verdict(d.settings.SettleTimeout))
	if open > 0 {
		verdict = errors.Join(fmt.Errorf("%d operations are still open after %s: run again to go on with them, or give them "+
			"more time with --settle-timeout", open, d.settings.SettleTimeout), verdict)
	}
	return verdict, nil
}

// printJSON is the last thing on stdout with --once; a person who stays gets more to read instead.
func (d *demo) printJSON(f figures) error {
	if !d.settings.Once {
		return nil
	}
	fmt.Fprintln(d.out)
	return f.printJSON(d.out)
}

func (d *demo) interrupted() error {
	if d.settings.Once {
		return errInterrupted
	}
	fmt.Fprintln(d.out, "\nStopping. What is open goes on with the next run.")
	return nil
}

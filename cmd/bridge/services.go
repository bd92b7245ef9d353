package main

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"invoicebridge/internal/app"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/faultproxy"
)

// The services' settings for a demo: nobody wants to wait for what a night is for.
const (
	attemptTimeout  = 2 * time.Second
	sweepInterval   = 2 * time.Second
	shutdownTimeout = 10 * time.Second // less than partStopLimit
	proxyTimeout    = 30 * time.Second
)

func backOff() crm.BackOff {
	return crm.BackOff{Base: 200 * time.Millisecond, Cap: 2 * time.Second, Slow: 30 * time.Second}
}

// services are the targets, the ERP, the proxy in front of it, and the CRM side, which knows only the proxy.
type services struct {
	erpAddr, proxyAddr, crmAddr string
	proxy                       *faultproxy.Proxy
	targets                     targets
}

// wire gives what the proxy has counted.
func (s services) wire() faultproxy.Stats { return s.proxy.Stats() }

// startServices starts all four. They stop in the reverse order: the CRM side first, so that nothing it has on its way
// meets a closed door.
func (d *demo) startServices(ctx context.Context, dbs databases) (err error) {
	s := &d.services
	if err := d.startTargets(ctx); err != nil {
		return err
	}
	erp := app.ERPConfig{
		Listen: d.settings.ERPListen, DatabaseURL: dbs.erp, ShutdownTimeout: shutdownTimeout, Registering: registering(),
	}
	s.erpAddr, err = d.parts.start(ctx, "ERP", func(ctx context.Context, ready func(string)) error {
		return explainListen(app.RunERP(ctx, erp, d.log.With("service", "erp"), ready), erpPort, erp.Listen)
	})
	if err != nil {
		return err
	}
	if err := d.startProxy(ctx); err != nil {
		return err
	}
	side := app.CRMConfig{
		Listen: d.settings.CRMListen, DatabaseURL: dbs.crm, ERPURL: "http://" + s.proxyAddr,
		ERPTokens:      []string{demoTenant + "=" + d.tokens[workerToken]},
		AttemptTimeout: attemptTimeout, SweepInterval: sweepInterval, ShutdownTimeout: shutdownTimeout, BackOff: backOff(),
	}
	if err := app.CheckTogether(erp, side); err != nil {
		return fmt.Errorf("configuration: %w", err)
	}
	s.crmAddr, err = d.parts.start(ctx, "CRM side", func(ctx context.Context, ready func(string)) error {
		return explainListen(app.RunCRM(ctx, side, d.log.With("service", "crm"), ready), crmPort, side.Listen)
	})
	return err
}

func (d *demo) startProxy(ctx context.Context) (err error) {
	s := &d.services
	s.proxy, err = faultproxy.New(faultproxy.Config{
		Upstream: &url.URL{Scheme: "http", Host: s.erpAddr}, Seed: d.settings.Seed, Rates: d.settings.rates(),
		Disabled: !d.settings.Faults, Hold: 3 * attemptTimeout, Delay: d.settings.DelayTime, Logger: d.log,
	})
	if err != nil {
		return err
	}
	server := app.Server{
		Name: "proxy", Listen: d.settings.ProxyListen, Handler: s.proxy, Log: d.log.With("service", "proxy"),
		RequestTimeout: proxyTimeout, ShutdownTimeout: shutdownTimeout,
	}
	s.proxyAddr, err = d.parts.start(ctx, "proxy", func(ctx context.Context, ready func(string)) error {
		server.Ready = ready
		return explainListen(server.Run(ctx), proxyPort, server.Listen)
	})
	if err != nil {
		return err
	}
	d.parts.onStop(s.proxy.Close) // before the server, which would wait for every held answer
	return nil
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"invoicebridge/internal/fleet"
)

// site is a pair of fresh databases with the programs on them.
type site struct {
	lab            *lab
	erp, crm       string // names of the databases
	erpDSN, crmDSN string
	requests       requests
	running        []*program
}

// newSite makes the databases. Nothing serves yet.
func (l *lab) newSite(ctx context.Context) (*site, error) {
	l.sites++
	s := &site{lab: l, erp: fmt.Sprintf("bench_erp_%d", l.sites), crm: fmt.Sprintf("bench_crm_%d", l.sites)}
	s.erpDSN, s.crmDSN = l.server.DSN(s.erp), l.server.DSN(s.crm)
	err := l.admin(ctx, "CREATE DATABASE "+s.erp+" TEMPLATE "+erpTemplate, "CREATE DATABASE "+s.crm+" TEMPLATE "+crmTemplate, "CHECKPOINT")
	if err != nil {
		return nil, err
	}
	s.requests = requests{orders: &l.orders, tenants: l.scale.tenants}
	for _, token := range l.tokens.erp {
		s.requests.heads = append(s.requests.heads, head("/v1/invoices", token))
	}
	return s, nil
}

// close ends the programs and removes the databases.
func (s *site) close(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	for _, p := range s.running {
		p.stop()
	}
	err := s.lab.admin(ctx, "DROP DATABASE IF EXISTS "+s.erp+" WITH (FORCE)", "DROP DATABASE IF EXISTS "+s.crm+" WITH (FORCE)")
	if err != nil {
		s.lab.config.logger().WarnContext(ctx, "a database is left", "error", err)
	}
}

// serveERP starts one replica of the ERP with further settings.
func (s *site) serveERP(ctx context.Context, settings ...string) (*program, error) {
	return s.serve(ctx, fleet.ERP, append([]string{"ERP_DATABASE_URL=" + s.erpDSN}, settings...))
}

// serveCRM starts one replica of the CRM side, which delivers to this ERP.
func (s *site) serveCRM(ctx context.Context, erp *program, settings ...string) (*program, error) {
	return s.serve(ctx, fleet.CRM, append(s.crmEnv(erp), settings...))
}

func (s *site) crmEnv(erp *program) []string {
	return []string{"CRM_DATABASE_URL=" + s.crmDSN, "ERP_URL=http://" + erp.address, "ERP_TOKENS=" + s.erpTokens()}
}

func (s *site) erpTokens() string {
	pairs := make([]string, len(s.lab.tokens.erp))
	for n, token := range s.lab.tokens.erp {
		pairs[n] = tenantName(n) + "=" + token
	}
	return strings.Join(pairs, ";")
}

func (s *site) serve(ctx context.Context, name string, env []string) (*program, error) {
	p, err := s.lab.start(ctx, name, env)
	if err != nil {
		return nil, err
	}
	s.running = append(s.running, p)
	return p, nil
}

// withERP is a site with one ERP that has served for a moment, so that its plans and statistics are those of a service at
// work.
func (l *lab) withERP(ctx context.Context, do func(s *site, erp *program) error, settings ...string) (err error) {
	s, err := l.newSite(ctx)
	if err != nil {
		return err
	}
	defer s.close(ctx)
	erp, err := s.serveERP(ctx, settings...)
	if err != nil {
		return err
	}
	if err := s.warm(ctx, erp); err != nil {
		return err
	}
	if err := do(s, erp); err != nil {
		return errors.Join(err, erp.failure())
	}
	return nil
}

// warm lets an ERP serve for a moment and has the tables analysed, as autovacuum does within its first minute.
func (s *site) warm(ctx context.Context, erps ...*program) error {
	for _, erp := range erps {
		if _, err := s.lab.closed(ctx, s.creating(s.lab.scale.clients, erp)); err != nil {
			return fmt.Errorf("warm up: %w", errors.Join(err, erp.failure()))
		}
	}
	return execute(ctx, s.erpDSN, "ANALYZE")
}

// creating is the load of new invoices of all tenants.
func (s *site) creating(clients int, erps ...*program) load {
	return load{addresses: addresses(erps), clients: clients, next: s.requests.create(), wanted: made}
}

// rate measures a load.
func (s *site) rate(what string, of load) measure {
	return measure{what, "/s", func(ctx context.Context) (float64, error) {
		got, err := s.lab.closed(ctx, of)
		return got.rate, err
	}}
}

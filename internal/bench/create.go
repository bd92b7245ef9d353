package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"

	"invoicebridge/internal/erpapi"
)

// measureCreate holds new invoices over HTTP, of all tenants, to what pgbench makes with the same number of connections.
func (l *lab) measureCreate(ctx context.Context) error {
	return l.withERP(ctx, func(s *site, erp *program) error {
		best, err := s.bestPgbench(ctx)
		if err != nil {
			return err
		}
		create := s.rate(fmt.Sprintf("create over HTTP, %d clients, %d tenants", l.scale.clients, l.scale.tenants), s.creating(l.scale.clients, erp))
		if err := l.compare(ctx, "create_64_clients", 1.8, create, best); err != nil {
			return err
		}
		if err := s.sameEffect(ctx); err != nil {
			return err
		}
		return l.profiled(ctx, "create_64_clients", create, erp)
	})
}

// sameEffect looks whether everybody who made invoices left all that belongs to one.
func (s *site) sameEffect(ctx context.Context) error {
	var invoices, lines, records, balances, numbers, targets int
	err := scan(ctx, s.erpDSN, `SELECT (SELECT count(*) FROM invoices), (SELECT count(*) FROM invoice_lines), (SELECT count(*) FROM idempotency_records),
		(SELECT count(*) FROM order_balances), (SELECT sum(last_number)::bigint FROM invoice_counters), (SELECT count(*) FROM targets)`,
		&invoices, &lines, &records, &balances, &numbers, &targets)
	if err == nil && (lines != 2*invoices || records != invoices || balances != invoices || numbers != invoices || targets != 0) {
		err = fmt.Errorf("%d invoices have %d lines, %d reservations, %d balances and %d numbers", invoices, lines, records, balances, numbers)
	}
	return err
}

// bestPgbench tries the forms that the same effect has in SQL, and gives the quickest.
func (s *site) bestPgbench(ctx context.Context) (best measure, err error) {
	variables, err := s.variables(ctx)
	if err != nil {
		return best, err
	}
	var highest float64
	for _, form := range []struct{ what, script string }{
		{"pgbench, one statement", createSingle}, {"pgbench, a statement a table, pipelined", createPipeline},
	} {
		what := fmt.Sprintf("%s, %d connections", form.what, s.lab.scale.clients)
		tried := s.byPgbench(what, form.script, s.lab.scale.clients, variables)
		rate, err := tried.do(ctx)
		if err != nil {
			return best, err
		}
		s.lab.say("  tried: %-53s %10.1f /s", what, rate)
		if rate > highest {
			best, highest = tried, rate
		}
	}
	return best, nil
}

// variables are what the scripts need: how many tenants there are, and a document as the service would write it.
func (s *site) variables(ctx context.Context) (map[string]string, error) {
	document, err := s.document(ctx)
	return map[string]string{"tenants": strconv.Itoa(s.lab.scale.tenants), "document": document, "kept": strconv.Itoa(s.lab.scale.kept)}, err
}

func (s *site) document(ctx context.Context) (document string, err error) {
	err = scan(ctx, s.erpDSN, `SELECT convert_from(document, 'UTF8') FROM invoices LIMIT 1`, &document)
	return document, err
}

// measureSingle is the same with one client, who waits for each commit.
func (l *lab) measureSingle(ctx context.Context) error {
	return l.withERP(ctx, func(s *site, erp *program) error {
		variables, err := s.variables(ctx)
		if err != nil {
			return err
		}
		create := s.rate("create over HTTP, 1 client", s.creating(1, erp))
		if err := l.compare(ctx, "create_1_client", 0.7, create, s.byPgbench("pgbench, one statement, 1 connection", createSingle, 1, variables)); err != nil {
			return err
		}
		return l.profiled(ctx, "create_1_client", create, erp)
	})
}

// measureTenant holds one tenant's invoices, which all need the next number of one series, to the same without group commit.
func (l *lab) measureTenant(ctx context.Context) error {
	return l.withERP(ctx, func(s *site, erp *program) error {
		alone, err := s.serveERP(ctx, "ERP_DISABLE_GROUP_COMMIT=true")
		if err != nil {
			return err
		}
		ofOne := func(erp *program) load {
			return load{addresses: []string{erp.address}, clients: l.scale.clients, next: s.requests.createOf(), wanted: made}
		}
		create := s.rate(fmt.Sprintf("create, %d clients, one tenant, gapless", l.scale.clients), ofOne(erp))
		if err := l.compare(ctx, "create_one_tenant", 5, create, s.rate("the same with group commit off", ofOne(alone))); err != nil {
			return err
		}
		return l.profiled(ctx, "create_one_tenant", create, erp)
	})
}

// measureReplay holds repeated requests to pgbench's SELECT of what is answered.
func (l *lab) measureReplay(ctx context.Context) error {
	return l.withERP(ctx, func(s *site, erp *program) error {
		if err := s.keep(ctx, erp, "K", l.scale.kept); err != nil {
			return err
		}
		variables, err := s.variables(ctx)
		if err != nil {
			return err
		}
		replay := s.rate(fmt.Sprintf("replay over HTTP, %d clients, %d keys", l.scale.clients, l.scale.kept), s.repeating(erp, "K", 0, l.scale.kept))
		stored := s.byPgbench(fmt.Sprintf("pgbench, SELECT of the stored answer, %d connections", l.scale.clients), selectAnswer, l.scale.clients, variables)
		if err := l.compare(ctx, "replay", 0.5, replay, stored); err != nil {
			return err
		}
		return l.profiled(ctx, "replay", replay, erp)
	})
}

// repeating is the load of requests that have been answered before.
func (s *site) repeating(erp *program, prefix string, from, to int) load {
	return load{addresses: []string{erp.address}, clients: s.lab.scale.clients, next: s.requests.repeat(prefix, from, to), wanted: replayed}
}

// keep issues invoices under the keys prefix0, prefix1 and so on.
func (s *site) keep(ctx context.Context, erp *program, prefix string, n int) error {
	var next atomic.Int64
	of := load{addresses: []string{erp.address}, clients: s.lab.scale.clients, next: s.requests.fill(prefix, &next), wanted: made}
	if err := s.lab.times(ctx, of, &next, n); err != nil {
		return fmt.Errorf("issue %d invoices: %w", n, err)
	}
	return execute(ctx, s.erpDSN, "VACUUM ANALYZE invoices", "VACUUM ANALYZE idempotency_records")
}

// canonical is the canonical form of the request for an order @.
func canonical() (string, error) {
	request, err := erpapi.DecodeInvoiceRequest([]byte(invoiceBody))
	if err != nil {
		return "", err
	}
	text, err := request.Canonical()
	return string(text), err
}

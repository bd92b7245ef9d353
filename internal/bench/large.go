package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// measureLarge holds creating and replaying in a database of five million invoices to the same in one of few, and looks at
// the large one while expired reservations are removed.
func (l *lab) measureLarge(ctx context.Context) error {
	return l.withERP(ctx, func(few *site, fewERP *program) error {
		if err := few.keep(ctx, fewERP, "K", l.scale.kept); err != nil {
			return err
		}
		large, err := l.newSite(ctx)
		if err != nil {
			return err
		}
		defer large.close(ctx)
		begun := time.Now()
		if err := few.enlarge(ctx, large); err != nil {
			return fmt.Errorf("fill the large database: %w", err)
		}
		var size string
		if err := scan(ctx, large.erpDSN, `SELECT pg_size_pretty(pg_database_size(current_database()))`, &size); err != nil {
			return err
		}
		l.say("  %d invoices, %s, in %s", l.scale.large, size, time.Since(begun).Round(time.Second))
		largeERP, err := large.serveERP(ctx, noJobs)
		if err != nil {
			return err
		}
		if err := large.warm(ctx, largeERP); err != nil {
			return err
		}
		return errors.Join(l.compareLarge(ctx, few, large, fewERP, largeERP, size), largeERP.failure())
	}, noJobs)
}

// noJobs keeps the service's own purge from what is to be purged when that is measured.
const noJobs = "ERP_DISABLE_REGISTER=true"

func (l *lab) compareLarge(ctx context.Context, few, large *site, fewERP, largeERP *program, size string) error {
	clients := l.scale.clients
	many := fmt.Sprintf("at %d invoices (%s)", l.scale.large, size)
	create := large.rate("create "+many, large.creating(clients, largeERP))
	err := l.compare(ctx, "create_at_5_million", 0.95, create, few.rate("create at few", few.creating(clients, fewERP)))
	if err != nil {
		return err
	}
	replay := large.rate(fmt.Sprintf("replay %s, %d keys", many, l.scale.kept), large.spread(largeERP, l.scale.large, l.scale.kept))
	atFew := few.rate(fmt.Sprintf("replay at few, %d keys", l.scale.kept), few.repeating(fewERP, "K", 0, l.scale.kept))
	if err := l.compare(ctx, "replay_at_5_million", 0.8, replay, atFew); err != nil {
		return err
	}
	all := large.rate("replay "+many+", all keys", large.spread(largeERP, l.scale.large, l.scale.large))
	measured, err := l.inTurn(ctx, all)
	if err != nil {
		return err
	}
	l.tell(measured[0])
	if err := l.profiled(ctx, "create_at_5_million", create, largeERP); err != nil {
		return err
	}
	return large.measurePurge(ctx, largeERP)
}

// spread is the load of requests for as many of the filled invoices, from all over the table, as have not expired.
func (s *site) spread(erp *program, n, kept int) load {
	expired := n/expiredShare + n/100 // and those that expire while this runs
	step := max(1, (n-expired)/kept)
	return load{addresses: []string{erp.address}, clients: s.lab.scale.clients, wanted: replayed, next: func(_ int, random *rand.Rand, b []byte) []byte {
		k := expired + step*random.IntN((n-expired)/step)
		return s.requests.issue(b, k%s.lab.scale.tenants, fmt.Sprintf("L%d", k))
	}}
}

package bench

import (
	"context"
	"errors"
	"fmt"
)

// measureScale puts 1, 2 and 4 replicas of the ERP on one database, with connections of their own and through PgBouncer.
func (l *lab) measureScale(ctx context.Context) error {
	return l.withERP(ctx, func(s *site, first *program) error {
		replicas := []*program{first}
		for len(replicas) < 4 {
			p, err := s.serveERP(ctx)
			if err != nil {
				return err
			}
			replicas = append(replicas, p)
		}
		if err := s.warm(ctx, replicas[1:]...); err != nil {
			return err
		}
		things := s.replicas("create over HTTP", replicas)
		pooled, pooler, err := s.pooled(ctx)
		switch {
		case errors.Is(err, errNoPooler):
			l.say("  %v", err)
		case err != nil:
			return err
		default:
			defer pooler.stop()
			things = append(things, s.replicas("create over HTTP through PgBouncer", pooled)...)
		}
		all, err := l.inTurn(ctx, things...)
		if err != nil {
			return errors.Join(err, s.failures())
		}
		l.figure(newFigure("replicas_2", 0, all[1], all[0]))
		l.figure(newFigure("replicas_4", 0, all[2], all[0]))
		if pooler == nil {
			l.tell(Series{What: "through PgBouncer: not measured, it is not installed (apt-get install pgbouncer)"})
			return nil
		}
		for i, n := range []int{1, 2, 4} {
			l.figure(newFigure(fmt.Sprintf("pgbouncer_%d", n), 0, all[3+i], all[i]))
		}
		return nil
	})
}

// replicas measures with 1, 2 and all of the programs.
func (s *site) replicas(what string, all []*program) (things []measure) {
	for _, n := range []int{1, 2, 4} {
		name := fmt.Sprintf("%s, %d replicas, %d clients", what, n, s.lab.scale.clients)
		if n == 1 {
			name = fmt.Sprintf("%s, 1 replica, %d clients", what, s.lab.scale.clients)
		}
		things = append(things, s.rate(name, s.creating(s.lab.scale.clients, all[:n]...)))
	}
	return things
}

// pooled starts PgBouncer and four replicas that reach the database through it.
func (s *site) pooled(ctx context.Context) (replicas []*program, p *pooler, err error) {
	if p, err = s.startPooler(ctx); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			p.stop()
		}
	}()
	for range 4 {
		replica, err := s.serve(ctx, "erp-api", []string{"ERP_DATABASE_URL=" + p.dsn(s.erp), "ERP_QUEUE_POLL_ONLY=true"})
		if err != nil {
			return nil, nil, err
		}
		replicas = append(replicas, replica)
	}
	return replicas, p, s.warm(ctx, replicas...)
}

// failures is what programs said that have ended by themselves.
func (s *site) failures() (err error) {
	for _, p := range s.running {
		err = errors.Join(err, p.failure())
	}
	return err
}

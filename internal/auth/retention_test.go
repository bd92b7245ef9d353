package auth_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/auth"
	"invoicebridge/internal/retention"
)

func TestThePurgeRemovesWhatTheLastLogInsLeave(t *testing.T) {
	t.Parallel()
	onBothStores(t, func(p people) {
		p.account("ada", auth.RoleOperator)
		for range 3 {
			p.logIn("ada")
		}
		p.exec("UPDATE sessions SET created_at = created_at - interval '1 day', expires_at = now() + interval '1 hour'") // no log-in removes them
		alive := p.logIn("ada")
		p.exec("UPDATE sessions SET expires_at = now() - interval '1 second' WHERE created_at < now() - interval '1 hour'")
		p.exec(`INSERT INTO login_failures (subject, failures, last_failed_at)
			SELECT 'name ' || n, 5, now() - n * interval '25 minutes' FROM generate_series(0, 6) AS n`)
		results, err := retention.NewPurger(p.store.(interface{ RetentionSteps() []retention.Step }).RetentionSteps(), retention.Options{
			Pace: retention.Pace{Batch: 2}, Pause: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		}).Purge(p.t.Context(), nil)
		if err != nil {
			p.t.Fatal(err)
		}
		want := []retention.Result{{Table: "sessions", Rows: 3}, {Table: "login_failures", Rows: 4}}
		if diff := cmp.Diff(want, results); diff != "" {
			p.t.Error(diff)
		}
		if !p.knows(alive.Value) || p.count("sessions") != 1 || p.count("login_failures WHERE last_failed_at > now() - interval '1 hour'") != 3 {
			p.t.Error("what is alive, or still slows tries down, is gone")
		}
	})
}

package main

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/testdb"
)

// stuck is a database with n operations that wait for a person, and how commands name it.
func stuck(t *testing.T, n int) (pool *pgxpool.Pool, keys []string, database string) {
	t.Helper()
	pool = testdb.CRM(t)
	database = "--database-url=" + testdb.DSN(t, pool)
	must(t, "tenant", "create", "acme", "--name=Acme", "--actor=me", database)
	for i := range n {
		keys = append(keys, submit(t, pool, smallOrder(fmt.Sprintf("SO-%d", i))))
	}
	exec(t, pool, "UPDATE operations SET status = 'unknown', reason = 'no_answer', flagged_at = now(), attempt = 1, first_sent_at = now()")
	exec(t, pool, "DELETE FROM river_job")
	return pool, keys, database
}

func exec(t *testing.T, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func count(t *testing.T, pool *pgxpool.Pool, from string) (n int) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM "+from).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// replaying works off whatever run is open, as a running service does, until the test is over.
func replaying(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	inserter, err := jobs.NewInserter(pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	service := crm.NewService(pool, inserter, crm.Options{Actions: inserter})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	t.Cleanup(func() {
		stop()
		<-ended
	})
	go func() {
		defer close(ended)
		for pause(ctx, time.Millisecond) == nil {
			var id uuid.UUID
			if pool.QueryRow(ctx, "SELECT id FROM replay_runs WHERE finished_at IS NULL").Scan(&id) != nil {
				continue // none is open
			}
			if _, err := service.WorkReplayRun(ctx, id); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	}()
}

func TestManyAreReplayedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	pool, keys, database := stuck(t, 3)
	exec(t, pool, "UPDATE operations SET reason = 'configuration' WHERE key = $1", keys[2])
	start := []string{"replays", "start", "--tenant=acme", "--flagged-for=no_answer", "--actor=ann", "--interval=5ms", database}
	out := must(t, start...)
	if !strings.Contains(out, "2 operations match:") || !strings.Contains(out, keys[0]) || !strings.Contains(out, keys[1]) || strings.Contains(out, keys[2]) {
		t.Errorf("the preview is %s", out)
	}
	if out := must(t, "replays", "start", "--tenant=acme", "--source=other", database); !strings.Contains(out, "0 operations match") {
		t.Errorf("the preview of nothing is %s", out)
	}
	for want, args := range map[string][]string{
		"--reason": {"--yes"}, "2 operations match by now, more than the 1": {"--yes", "--reason=back", "--at-most=1"},
		"Nothing that can be replayed": {"--yes", "--reason=back", "--source=other"}, "status must be": {"--status=failed"},
	} {
		if _, err := command(t, append(start, args...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", args, err)
		}
	}
	if n := count(t, pool, "replay_runs") + count(t, pool, "river_job"); n != 0 {
		t.Fatalf("%d runs and jobs before anything was started", n)
	}
	replaying(t, pool)
	out = must(t, append(start, "--yes", "--reason=the ERP is back", "--at-most=2")...)
	for _, want := range []string{"of 2 operations has begun", keys[0] + "  queued", keys[1] + "  queued", "2 queued, 0 refused, 0 stopped"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if n := count(t, pool, "audit_entries WHERE actor = 'ann' AND via = 'cli' AND action IN ('replay.start', 'operation.replay')"); n != 3 {
		t.Errorf("%d audit entries, want 3", n)
	}
	if n := count(t, pool, "river_job WHERE kind = 'deliver_operation'"); n != 2 {
		t.Errorf("%d deliveries are queued, want 2", n)
	}
	list := must(t, "replays", "list", "--tenant=acme", database)
	if !strings.Contains(list, "the ERP is back") {
		t.Errorf("the list is %s", list)
	}
	id := strings.Fields(strings.Split(list, "\n")[1])[0]
	if out := must(t, "replays", "show", id, "--tenant=acme", database); !strings.Contains(out, keys[0]+"  queued") {
		t.Errorf("shown is %s", out)
	}
}

func TestAReplayOfManyThatDoesNotQueueAllFails(t *testing.T) {
	t.Parallel()
	pool, keys, database := stuck(t, 2)
	// Its turn comes after it has been settled: a replay of its own takes the flag off between freezing and working.
	exec(t, pool, `CREATE FUNCTION settled() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		UPDATE operations SET flagged_at = NULL WHERE id = NEW.operation_id AND NEW.position = 1; RETURN NEW; END $$`)
	exec(t, pool, "CREATE TRIGGER settled AFTER INSERT ON replay_items FOR EACH ROW EXECUTE FUNCTION settled()")
	replaying(t, pool)
	out, err := command(t, "replays", "start", "--tenant=acme", "--yes", "--reason=back", "--interval=5ms", database)
	if err == nil || !strings.Contains(err.Error(), "1 of 2 operations were not queued") {
		t.Errorf("it ends with %v", err)
	}
	if !strings.Contains(out, keys[0]+"  refused  unknown     This operation is already queued.") || !strings.Contains(out, keys[1]+"  queued") {
		t.Errorf("it says\n%s", out)
	}
}

func TestAReplayOfManyIsStoppedFromTheCommandLine(t *testing.T) {
	t.Parallel()
	_, keys, database := stuck(t, 2)
	out := must(t, "replays", "start", "--tenant=acme", "--yes", "--reason=back", "--no-wait", database)
	id := strings.Fields(out)[1]
	if _, err := command(t, "replays", "start", "--tenant=acme", "--yes", "--reason=again", "--no-wait", database); err == nil || !strings.Contains(err.Error(), id) {
		t.Errorf("a second one beside it: %v", err)
	}
	stop := []string{"replays", "stop", id, "--tenant=acme", "--actor=ben", "--reason=not yet", database}
	if out := must(t, stop...); !strings.Contains(out, "by ben") {
		t.Errorf("stop says %s", out)
	}
	if _, err := command(t, stop...); err == nil || !strings.Contains(err.Error(), "come to its end") {
		t.Errorf("the second time: %v", err)
	}
	out = must(t, "replays", "show", id, "--tenant=acme", "--result=stopped", database)
	if !strings.Contains(out, keys[0]+"  stopped") || !strings.Contains(out, keys[1]+"  stopped") {
		t.Errorf("shown is\n%s", out)
	}
}

func TestACommandThatIsInterruptedLeavesItsReplayGoingOn(t *testing.T) {
	t.Parallel()
	pool, _, database := stuck(t, 1)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	out := &interrupting{when: "has begun", do: interrupt}
	err := run(ctx, []string{"replays", "start", "--tenant=acme", "--yes", "--reason=back", database}, func(string) string { return "" }, out, out)
	if err == nil || !strings.Contains(err.Error(), "goes on") {
		t.Errorf("it ends with %v", err)
	}
	if n := count(t, pool, "replay_runs WHERE finished_at IS NULL"); n != 1 {
		t.Errorf("%d replays are open", n)
	}
}

// interrupting does something when a text is written.
type interrupting struct {
	when string
	do   func()
}

func (i *interrupting) Write(text []byte) (int, error) {
	if strings.Contains(string(text), i.when) {
		i.do()
	}
	return len(text), nil
}

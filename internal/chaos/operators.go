package chaos

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/jackc/pgx/v5"
)

// pressed is how many operations and registrations one disturbance presses a button for, all at once.
const pressed = 10

// press sends presses for whatever a query finds, each two times at once, as two people would.
func (w *world) press(ctx context.Context, pool, query, base, path, token string, told func(id string, status int)) error {
	rows, err := w.pools[pool].Query(ctx, query, pressed)
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	for _, id := range ids {
		for range 2 {
			all.Go(func() { told(id, w.button(ctx, base+fmt.Sprintf(path, id), token, id, `{"reason":"chaos"}`)) })
		}
	}
	all.Wait()
	return nil
}

// button presses one. 0: it is not known what came of it.
func (w *world) button(ctx context.Context, address, token, about, body string) (status int) {
	x := Exchange{Sent: w.history.now(), By: byOperators, Key: about, Content: digest([]byte(body))}
	status, answer, err := w.load.exchange(ctx, address, token, "", body)
	x.told(status, answer, err)
	x.Ended = w.history.now()
	w.history.exchange(x)
	return x.Status
}

// replay presses replay for what was left to people, and for whatever else there is: finished, running, waiting.
func (w *world) replay(ctx context.Context) error {
	w.history.note("replay is pressed")
	nothing := func(string, int) {}
	return errors.Join(
		w.press(ctx, "crm", `SELECT key FROM operations ORDER BY flagged_at IS NOT NULL DESC, (status NOT IN ('succeeded', 'failed', 'cancelled')) DESC, random() LIMIT $1`,
			w.load.crms[0], "/admin/v1/operations/%s/replay", w.crmAdmin, nothing),
		w.press(ctx, "erp", `SELECT id::text FROM registrations ORDER BY (status NOT IN ('succeeded', 'failed')) DESC, random() LIMIT $1`,
			w.load.erps[0], "/admin/v1/registrations/%s/replay", w.erpAdmin, nothing),
	)
}

// cancel presses cancel for what may not have been sent yet, and for some that surely were.
func (w *world) cancel(ctx context.Context) error {
	w.history.note("cancel is pressed")
	return w.press(ctx, "crm", `SELECT key FROM operations ORDER BY (status = 'pending') DESC, created_at DESC LIMIT $1`,
		w.load.crms[1], "/admin/v1/operations/%s/cancel", w.crmAdmin,
		func(key string, status int) {
			if status/100 != 4 { // no answer may be that of a cancel that was done
				w.history.cancel(key, status == http.StatusOK)
			}
		})
}

// replayMany has two people start a replay of all that is left to people, at once.
func (w *world) replayMany(ctx context.Context) error {
	var both sync.WaitGroup
	failed := make([]error, len(w.load.crms))
	for n, base := range w.load.crms {
		both.Go(func() { failed[n] = w.startReplay(ctx, base) })
	}
	both.Wait()
	return errors.Join(failed...)
}

func (w *world) startReplay(ctx context.Context, base string) error {
	count, err := w.leftToPeople(ctx)
	if err != nil || count == 0 {
		return err
	}
	w.history.note("a replay of %d operations is started", count)
	body, err := json.Marshal(map[string]any{"filter": map[string]any{}, "expected_count": count, "reason": "chaos"})
	if err != nil {
		return err
	}
	w.button(ctx, base+"/admin/v1/replays", w.crmAdmin, "", string(body)) // no answer is one of the things that happen
	return nil
}

func (w *world) leftToPeople(ctx context.Context) (n int, err error) {
	err = w.pools["crm"].QueryRow(ctx, `SELECT count(*) FROM operations WHERE flagged_at IS NOT NULL AND status IN ('pending', 'unknown')`).Scan(&n)
	return n, err
}

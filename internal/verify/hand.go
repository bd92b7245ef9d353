package verify

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// byHand is what a person might do about orders that are invoiced already: everything there is.
func (r *own) byHand(ctx context.Context, f *findings, contract check) error {
	if err := contract.do(ctx, f); err != nil {
		return err
	}
	i := r.main
	if err := i.submit(ctx, 0, names("hand", orders)...); err != nil {
		return err
	}
	if err := i.delivered(ctx, "hand", orders); err != nil {
		return err
	}
	f.done("%d orders asked for under other keys; %d replayed, submitted and imported again, by API and by command, then reconciled", orders, orders)
	if err := r.replayAll(ctx, f); err != nil {
		return err
	}
	if err := i.submit(ctx, 1, names("hand", orders)...); err != nil {
		return err
	}
	if err := i.importAgain(ctx, names("hand", orders)); err != nil {
		return err
	}
	if _, err := i.programs.Command(ctx, "crm-worker", i.crmEnv(i.toERP), "reconcile", "--tenant", tenant); err != nil {
		return err
	}
	if _, err := i.programs.Command(ctx, "erp-api", i.erpEnv(), "reconcile", "--tenant", tenant); err != nil {
		return err
	}
	if n, err := number(ctx, i.crm, `SELECT count(*) FROM operations WHERE order_id LIKE 'V-hand-%'`); err != nil {
		return err
	} else if n != orders {
		f.deviate("%d operations for %d orders", n, orders)
	}
	return i.tell(ctx, f, "hand", orders)
}

// replayAll presses replay for every operation, which all have succeeded.
func (r *own) replayAll(ctx context.Context, f *findings) error {
	i := r.main
	keys, err := i.keys(ctx)
	if err != nil {
		return err
	}
	console := newEndpoint(i.workers[0].URL(), i.crmAdmin)
	for n, key := range keys {
		got := console.do(ctx, http.MethodPost, "/admin/v1/operations/"+url.PathEscape(key)+"/replay", "", `{"reason":"verification"}`)
		if got.status != http.StatusConflict || got.problem() != "wrong-state" || !strings.Contains(got.body, "succeeded") {
			f.deviate("replaying what has succeeded is answered %s", got)
		}
		if n > 0 {
			continue // a command takes a while to start
		}
		_, err := i.programs.Command(ctx, "crm-worker", i.crmEnv(i.toERP), "operations", "replay", "--tenant", tenant, "--reason", "verification", key)
		if err == nil || !strings.Contains(err.Error(), "succeeded") {
			f.deviate("the command that replays what has succeeded says: %v", err)
		}
	}
	return nil
}

func (i *installation) keys(ctx context.Context) (keys []string, err error) {
	err = i.crm.QueryRow(ctx, `SELECT array_agg(key ORDER BY key) FROM operations WHERE order_id LIKE 'V-hand-%'`).Scan(&keys)
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	return keys, nil
}

// importAgain imports a file with orders that are there.
func (i *installation) importAgain(ctx context.Context, orders []string) error {
	file, err := os.CreateTemp("", "verify-*.jsonl")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	for _, order := range orders {
		if _, err := fmt.Fprintln(file, invoice{order: order, price: "10.00"}.body()); err != nil {
			return err
		}
	}
	if err := file.Close(); err != nil {
		return err
	}
	_, err = i.programs.Command(ctx, "crm-worker", i.crmEnv(i.toERP), "import", "--tenant", tenant, filepath.Clean(file.Name()))
	return err
}

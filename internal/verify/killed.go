package verify

import (
	"context"
	"fmt"

	"invoicebridge/internal/fleet"
	"invoicebridge/internal/wire"
)

// killedOrders fit into the work that one process of each service does at once, so that all of it dies with it.
const killedOrders = 8

// consumerKilled kills both consumers at the moment when what they asked for has been done and they do not know it yet:
// the worker that delivers, after the ERP's commit; the ERP that registers, after the target's entry. Others take over
// once the leases of the dead have ended, by the clock.
func consumerKilled(ctx context.Context, f *findings, p fleet.Programs, s *server) error {
	f.done("%d deliveries and %d registrations done, their consumers killed before they knew; others took over", killedOrders, killedOrders)
	i, err := newInstallation(ctx, p, s, "killed")
	if err != nil {
		return err
	}
	defer i.close()
	if err := i.addLedger(ctx); err != nil {
		return err
	}
	if err := i.script(ctx, silent(killedOrders)...); err != nil {
		return err
	}
	erp, worker, err := i.serveDoomed(ctx)
	if err != nil {
		return err
	}
	if err := i.submit(ctx, 0, names("killed", killedOrders)...); err != nil {
		return err
	}
	if err := i.doneUnknown(ctx); err != nil {
		return err
	}
	erp.Kill()
	worker.Kill()
	if n, err := number(ctx, i.crm, `SELECT count(*) FROM operations WHERE status = 'processing'`); err != nil {
		return err
	} else if n != killedOrders {
		f.deviate("after the kill %d of %d operations are on record as being sent", n, killedOrders)
	}
	i.erps, i.workers = nil, nil
	if err := i.serveERPs(ctx); err != nil {
		return err
	}
	if err := i.serveWorkers(ctx, nil); err != nil {
		return err
	}
	if err := i.delivered(ctx, "killed", killedOrders); err != nil {
		return err
	}
	if err := i.registered(ctx, killedOrders); err != nil {
		return err
	}
	if err := i.tell(ctx, f, "killed", killedOrders); err != nil {
		return err
	}
	return i.tellEffects(ctx, f, killedOrders)
}

// serveDoomed starts one process of each service. The worker gets no answer to what it sends.
func (i *installation) serveDoomed(ctx context.Context) (erp, worker *fleet.Process, err error) {
	erp, err = i.serve(ctx, fleet.ERP, append(i.erpEnv(), "ERP_TARGET_TIMEOUT=10s",
		"ERP_REGISTER_WORKERS="+fmt.Sprint(killedOrders)))
	if err != nil {
		return nil, nil, err
	}
	held, err := i.wire(ctx, func(int) wire.Fault { return wire.Fault{Action: wire.Hold, Direction: wire.ToClient} }, erp)
	if err != nil {
		return nil, nil, err
	}
	i.erps = []*fleet.Process{erp}
	worker, err = i.serve(ctx, fleet.CRM, append(i.crmEnv(held), "ATTEMPT_TIMEOUT=10s"))
	if err != nil {
		return nil, nil, err
	}
	i.workers = []*fleet.Process{worker}
	return erp, worker, nil
}

// doneUnknown waits until the ERP has all invoices and the target all entries.
func (i *installation) doneUnknown(ctx context.Context) error {
	return await(ctx, "all invoices and entries are there", func(ctx context.Context) (bool, error) {
		invoices, err := number(ctx, i.erp, `SELECT count(*) FROM invoices`)
		if err != nil || invoices < killedOrders {
			return false, err
		}
		entries, err := i.effects(ctx)
		return len(entries) == killedOrders, err
	})
}

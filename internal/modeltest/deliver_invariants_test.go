package modeltest

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"
)

// operation is where an operation stands.
type operation struct {
	ID       uuid.UUID
	Order    string
	Key      string
	Status   string
	Reason   string
	Invoice  string // its number
	Attempt  int
	Attempts int
	Running  int
	Flagged  bool
	Hash     string // of the frozen request, hex
}

func (o operation) final() bool {
	return o.Status == "succeeded" || o.Status == "failed" || o.Status == "cancelled"
}

const operationSQL = `
SELECT o.id, o.order_id AS order, o.key, o.status, o.reason, coalesce(o.invoice_number, '') AS invoice, o.attempt,
       (SELECT count(*) FROM attempts WHERE operation_id = o.id) AS attempts,
       (SELECT count(*) FROM attempts WHERE operation_id = o.id AND outcome = 'sent') AS running,
       o.flagged_at IS NOT NULL AS flagged, encode(o.request_hash, 'hex') AS hash
FROM operations AS o WHERE o.tenant_id = $1 ORDER BY o.created_at, o.id`

// check holds everything to the rules that never bend (docs/architecture.md).
func (b *bridge) check(rt *rapid.T) {
	b.checkActs(rt)
	all := b.operations(rt)
	sent := map[string]bool{}
	hashes := map[string]string{}
	for _, o := range all {
		hashes[o.Key] = o.Hash
	}
	for _, p := range b.erp.Posts() {
		sent[p.Key] = true
		if hashes[p.Key] != hex.EncodeToString(p.BodyHash[:]) {
			rt.Fatalf("under key %s other bytes were sent than are frozen", p.Key)
		}
	}
	maybe := map[string]string{} // by order: the key that may have become its invoice
	b.ids = b.ids[:0]
	for _, o := range all {
		if broken := b.broken(o, sent[o.Key]); broken != "" {
			rt.Fatalf("%s: %+v\nall: %+v\nrequests: %+v", broken, o, all, b.erp.Posts())
		}
		if sent[o.Key] && o.Status != "failed" {
			if other := maybe[o.Order]; other != "" {
				rt.Fatalf("order %s was sent under key %s and under %s, and neither is proven not applied", o.Order, other, o.Key)
			}
			maybe[o.Order] = o.Key
		}
		b.was[o.ID] = o
		b.ids = append(b.ids, o.ID)
	}
}

func (b *bridge) operations(rt *rapid.T) []operation {
	rows, err := b.pool.Query(context.Background(), operationSQL, b.tenant)
	if err != nil {
		rt.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[operation])
	if err != nil {
		rt.Fatal(err)
	}
	return all
}

// look reads where one operation stands.
func (b *bridge) look(rt *rapid.T, id uuid.UUID) operation {
	all := b.operations(rt)
	i := slices.IndexFunc(all, func(o operation) bool { return o.ID == id })
	if i < 0 {
		rt.Fatalf("operation %s is not there any more", id)
	}
	return all[i]
}

// broken says which rule an operation breaks, or nothing.
func (b *bridge) broken(o operation, sent bool) string {
	was, known := b.was[o.ID]
	invoice, invoiced := b.erp.Invoices()[o.Key]
	running := 0
	if o.Status == "processing" {
		running = 1
	}
	switch {
	case o.Status == "succeeded" && (!invoiced || invoice.Number != o.Invoice):
		return fmt.Sprintf("it has succeeded, and the ERP's invoice is %q", invoice.Number)
	case o.Status == "failed" && invoiced:
		return "it has failed, and the ERP has its invoice"
	case o.Status == "pending" && invoiced:
		return "it counts as never applied, and the ERP has its invoice"
	case o.Status == "cancelled" && sent:
		return "it is cancelled, and was sent"
	case known && was.final() && (o.Status != was.Status || o.Invoice != was.Invoice || o.Attempt != was.Attempt):
		return fmt.Sprintf("it was final, and is not what it was: %+v", was)
	case known && was.Hash != o.Hash && sent:
		return "its bytes have changed"
	case o.Attempts != o.Attempt || o.Attempt < was.Attempt || o.Running != running:
		return "its attempts are not all on record"
	default:
		return ""
	}
}

// settle lets all that is left happen. With an ERP that answers, every operation comes to its end.
func (b *bridge) settle(rt *rapid.T) {
	for b.weather.waiting() > 0 {
		b.commitLate(rt)
	}
	if b.paused {
		_, err := b.service.ResumeSource(context.Background(), b.tenant, source, people()[0])
		b.toggled(rt, "resume", err, false)
	}
	const rounds = 8
	for range rounds {
		open := false
		for _, id := range b.ids {
			o := b.was[id]
			if o.final() {
				continue
			}
			open = true
			b.weather.next(answered)
			b.pass(rt, 25*time.Hour)
			if o.Flagged {
				b.replayOne(rt, id)
			}
			b.attempt(rt, id)
		}
		b.check(rt)
		if !open {
			return
		}
	}
	for _, o := range b.was {
		if !o.final() {
			rt.Fatalf("it has come to no end: %+v\nrequests: %+v", o, b.erp.Posts())
		}
	}
}

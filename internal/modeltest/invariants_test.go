package modeltest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"invoicebridge/internal/target/targetsim"
)

// standing is where an invoice and its registration stand.
type standing struct {
	ID        uuid.UUID
	InvoiceID uuid.UUID
	Order     string
	Number    int64
	Key       string
	Status    string
	Reason    string
	Reference string
	Flagged   bool
	Attempt   int
	// Attempts on record, how many numbers they have, the highest, how many are without an outcome.
	Attempts, Numbers, Highest, Running int
	Reserved                            bool // the ERP's reservation is there
}

func (s standing) final() bool { return s.Status == "succeeded" || s.Status == "failed" }

const standingSQL = `
SELECT r.id, i.id AS invoice_id, i.order_id AS order, i.series_number AS number, i.operation_key AS key,
       r.status, r.reason, r.reference, r.flagged_at IS NOT NULL AS flagged, r.attempt,
       a.attempts, a.numbers, a.highest, a.running,
       EXISTS (SELECT FROM idempotency_records AS k WHERE k.tenant_id = i.tenant_id AND k.key = i.operation_key) AS reserved
FROM invoices AS i
JOIN registrations AS r ON r.invoice_id = i.id AND r.key = i.operation_key
CROSS JOIN LATERAL (
    SELECT count(*) AS attempts, count(DISTINCT number) AS numbers, coalesce(max(number), 0) AS highest,
           count(*) FILTER (WHERE outcome = 'sent') AS running
    FROM registration_attempts WHERE registration_id = r.id) AS a
WHERE i.tenant_id = $1
ORDER BY i.series_number`

// check holds everything to the rules that never bend (docs/architecture.md).
func (w *world) check(rt *rapid.T) {
	all := w.standings(rt)
	w.checkBooks(rt, all)
	w.checkActs(rt)
	for _, s := range all {
		if broken := w.broken(s); broken != "" {
			rt.Fatalf("%s\n%s: %+v\nrequests: %+v", broken, w.promise.name, s, w.sim.Requests(s.Key))
		}
		w.was[s.ID] = s
	}
	w.ids = w.ids[:0]
	for _, s := range all {
		w.ids = append(w.ids, s.ID)
	}
}

func (w *world) standings(rt *rapid.T) []standing {
	rows, err := w.pool.Query(context.Background(), standingSQL, w.tenant)
	if err != nil {
		rt.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowToStructByName[standing])
	if err != nil {
		rt.Fatal(err)
	}
	return all
}

// look reads where one registration stands.
func (w *world) look(rt *rapid.T, id uuid.UUID) standing {
	all := w.standings(rt)
	i := slices.IndexFunc(all, func(s standing) bool { return s.ID == id })
	if i < 0 {
		rt.Fatalf("registration %s is not there any more", id)
	}
	return all[i]
}

// checkBooks: one invoice per claim, the one that was answered; one registration each; numbers without holes.
func (w *world) checkBooks(rt *rapid.T, all []standing) {
	if len(all) != len(w.issued) {
		rt.Fatalf("%d invoices with their registrations, %d orders are invoiced: %+v", len(all), len(w.issued), all)
	}
	for i, s := range all {
		is, known := w.issued[s.Order]
		if !known || is.answer.InvoiceID != s.InvoiceID || is.key != s.Key {
			rt.Fatalf("order %s has invoice %s under key %s, answered was %+v", s.Order, s.InvoiceID, s.Key, is)
		}
		if s.Number != int64(i+1) {
			rt.Fatalf("invoice %d of the series has number %d", i+1, s.Number)
		}
	}
}

// broken says which rule a registration breaks, or nothing.
func (w *world) broken(s standing) string {
	was, known := w.was[s.ID]
	effects := w.sim.Count(s.Key)
	running := 0
	if s.Status == "processing" {
		running = 1
	}
	switch {
	case effects > 1:
		return fmt.Sprintf("the target has registered it %d times", effects)
	case s.Status == "succeeded" && effects != 1 && !w.comesLate(s):
		return fmt.Sprintf("it has succeeded, and the target has %d of it", effects)
	case s.Status == "succeeded" && effects == 1 && !w.names(s):
		return "the reference that is kept is not the target's"
	case s.Status == "failed" && s.Reason != "foreign_invoice" && effects != 0:
		return "it has failed, and the target has it"
	case s.Status == "pending" && effects != 0:
		return "it counts as never sent, and the target has it"
	case known && was.final() && (s.Status != was.Status || s.Reference != was.Reference || s.Attempt != was.Attempt):
		return fmt.Sprintf("it was final, and is not what it was: %+v", was)
	case s.Attempts != s.Attempt || s.Numbers != s.Attempt || s.Highest != s.Attempt || s.Attempt < was.Attempt:
		return "its attempts are not all on record"
	case s.Running != running:
		return "the outcomes of its attempts do not fit its status"
	case !s.Reserved && (!s.final() || s.Flagged):
		return "it is unfinished or waits for a person, and the reservation of its key is purged"
	default:
		return w.brokenRequests(s)
	}
}

// names says whether the reference is that of the one effect; the simulator numbers both alike.
func (w *world) names(s standing) bool {
	return strings.TrimPrefix(s.Reference, "REG-") == w.effectID(s)
}

// comesLate: the target has taken it, and it takes effect later. Asked in between, it may say already that it has it.
func (w *world) comesLate(s standing) bool {
	now := w.sim.Effects(s.Key).Now
	return slices.ContainsFunc(w.sim.Requests(s.Key), func(r targetsim.Request) bool {
		return r.Fault == targetsim.AcceptLate && now.Before(r.At.Add(late))
	})
}

// brokenRequests: all that was ever sent for a registration are the same bytes under the same key.
func (w *world) brokenRequests(s standing) string {
	var bodies, keys []string
	for _, r := range w.sim.Requests(s.Key) {
		if r.Operation == "submit" || r.Operation == "create" {
			bodies, keys = append(bodies, r.BodySum), append(keys, r.Key)
		}
	}
	slices.Sort(bodies)
	slices.Sort(keys)
	bodies, keys = slices.Compact(bodies), slices.Compact(keys)
	switch {
	case len(bodies) > 1 || len(keys) > 1:
		return fmt.Sprintf("sent were the bodies %v under the keys %v", bodies, keys)
	case len(keys) == 1 && w.promise.kind == "einvoice" && keys[0] != s.Key:
		return "sent was another key than the operation's: " + keys[0]
	default:
		return ""
	}
}

// ended says whether a registration has come to an end: registered once, proven not to be there, or unknown and shown to
// a person, where asking can't bring it further.
func (w *world) ended(s standing) bool {
	stuck := !w.promise.can.AbsenceAuthoritative || s.Reason == "foreign_invoice" || s.Reason == "already_registered"
	return s.final() || s.Status == "unknown" && s.Flagged && stuck
}

func (w *world) checkEnd(rt *rapid.T) {
	for _, s := range w.was {
		if !w.ended(s) {
			rt.Fatalf("it has come to no end\n%s: %+v\nrequests: %+v", w.promise.name, s, w.sim.Requests(s.Key))
		}
	}
}

package crm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/uuid"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpapi"
)

// booked is an operation as the CRM side's books have it.
type booked struct {
	id      uuid.UUID
	key     string
	order   orderID
	claim   claim
	request frozenRequest
	status  OperationStatus
	attempt int32
	reason  Reason
	invoice *IssuedInvoice
	flagged bool
	leased  bool // an attempt may be running right now: it will tell its outcome itself
}

func bookedOf(r crmdb.ReconciliationListOperationsRow) booked {
	op := booked{
		id: r.ID, key: r.Key, order: orderID{r.Source, r.OrderID}, claim: claimOf(r.Role, r.Sequence),
		request: frozenRequest{text: r.Request, hash: hash(r.RequestHash), minimised: r.Minimised},
		status:  OperationStatus(r.Status), attempt: r.Attempt, reason: Reason(r.Reason), flagged: r.Flagged, leased: r.Leased,
	}
	if r.InvoiceID != nil && r.InvoiceNumber != nil {
		op.invoice = &IssuedInvoice{ID: *r.InvoiceID, Number: *r.InvoiceNumber}
	}
	return op
}

// told is the operation in the words of a divergence.
func (op booked) told() string {
	text := fmt.Sprintf("%s %d of %s is %s", op.claim.role, op.claim.sequence, op.order.order, op.status)
	if op.reason != "" {
		text += " (" + string(op.reason) + ")"
	}
	if op.invoice != nil {
		text += ", invoice " + op.invoice.Number + " " + op.invoice.ID.String()
	}
	return text
}

func (op booked) finding(kind DivergenceKind, owner string) finding {
	return finding{kind: kind, owner: owner, subject: op.key, id: op.order, key: op.key}
}

func toldInvoice(inv *erpapi.Invoice) string {
	return fmt.Sprintf("invoice %s %s of key %s", inv.Number, inv.ID, inv.OperationKey)
}

// What is done about a divergence that is not repaired by itself.
const (
	actionLook   = "to be looked at: nothing was changed"
	actionCredit = "to be looked at: an issued invoice never changes; it can be credited"
	actionResend = "sent again with its key, by itself"
	actionReplay = "to be replayed, with its key, by an operator"
	actionNone   = "nothing to do: the order is not missing, and no task was made"
)

// judge compares an operation with the invoice that the ERP has under its key, or else under its business claim. It says
// whether it could: with an attempt running, or the first to come, nothing is said, as that learns of the invoice itself.
func (b *reconcileBatch) judge(op booked, inv *erpapi.Invoice, issued IssuedInvoice) (decided bool) {
	b.matched = append(b.matched, op.id)
	open := op.status == StatusPending || op.status == StatusUnknown || op.status == StatusProcessing
	if op.leased || open && op.attempt == 0 {
		return false
	}
	differences := contentDifferences(op.request, inv)
	switch {
	case open && len(differences) == 0:
		b.repairs = append(b.repairs, settle(op, inv, issued))
	case open:
	case op.status != StatusSucceeded:
		f := op.finding(DivergenceStatusDiffers, ownerCRM)
		f.ours, f.theirs, f.action = op.told(), toldInvoice(inv), actionLook
		b.add(f)
	case op.invoice != nil && *op.invoice == issued:
	case len(differences) == 0 && op.invoice != nil:
		b.repairs = append(b.repairs, takeNumber(op, inv, issued))
	default:
		f := op.finding(DivergenceNumberDiffers, ownerCRM)
		f.ours, f.theirs, f.action = op.told(), toldInvoice(inv), actionLook
		b.add(f)
	}
	for _, d := range differences {
		f := op.finding(d.kind, ownerERP)
		f.ours, f.theirs, f.action = d.ours, d.theirs+" in "+toldInvoice(inv), actionCredit
		b.add(f)
	}
	return true
}

// settle takes the ERP's word for an operation whose own attempts could not say what became of it.
func settle(op booked, inv *erpapi.Invoice, issued IssuedInvoice) repair {
	f := op.finding(DivergenceUnknownResolved, ownerCRM)
	f.ours, f.theirs, f.action = op.told(), toldInvoice(inv), "succeeded with "+issued.Number
	reason := Reason("")
	if inv.OperationKey != op.key {
		reason = ReasonAlreadyInvoiced
	}
	return repair{finding: f, apply: func(ctx context.Context, queries *crmdb.Queries) (bool, error) {
		n, err := queries.ReconciliationSettle(ctx, crmdb.ReconciliationSettleParams{
			ID: op.id, Attempt: op.attempt, InvoiceID: &issued.ID, InvoiceNumber: &issued.Number, Reason: string(reason),
			Detail: "Settled by reconciliation.",
		})
		return n == 1, err
	}}
}

// takeNumber gives a succeeded operation the number that its invoice has.
func takeNumber(op booked, inv *erpapi.Invoice, issued IssuedInvoice) repair {
	f := op.finding(DivergenceNumberDiffers, ownerCRM)
	f.ours, f.theirs, f.action = op.told(), toldInvoice(inv), "took over "+issued.Number
	old := op.invoice.Number
	return repair{finding: f, apply: func(ctx context.Context, queries *crmdb.Queries) (bool, error) {
		n, err := queries.ReconciliationTakeNumber(ctx, crmdb.ReconciliationTakeNumberParams{
			ID: op.id, InvoiceID: &issued.ID, InvoiceNumber: &issued.Number, OldNumber: &old,
		})
		return n == 1, err
	}}
}

// unknownHere is an invoice that no operation of ours asked for.
func (b *reconcileBatch) unknownHere(inv *erpapi.Invoice) {
	b.add(finding{
		kind: DivergenceMissingInCRM, owner: ownerCRM, subject: inv.OperationKey, id: orderID{inv.Source, inv.Order}, key: inv.OperationKey,
		ours: "no operation of this key or business claim", action: actionLook,
		theirs: fmt.Sprintf("%s: %s %d of %s %s, gross %s %s", toldInvoice(inv), inv.Role, inv.Sequence, inv.Source, inv.Order, inv.Gross, inv.Currency),
	})
}

// unreadable is an item of the ERP's list that is no invoice. What it says of its key is believed, so that a later run
// can ask for it again; without a key it stays open until a person has looked.
func (b *reconcileBatch) unreadable(item erpapi.ListedInvoice) {
	f := finding{kind: DivergenceStatusDiffers, owner: ownerERP, action: actionLook, ours: "an invoice"}
	var members map[string]jsontext.Value
	if json.Unmarshal(item.Document, &members) == nil {
		f.key = textMember(members, "operation_key")
		f.id = orderID{textMember(members, "source"), textMember(members, "order")}
		f.ours = "invoice " + textMember(members, "number")
	}
	if f.subject = f.key; f.key == "" {
		sum := sha256.Sum256(item.Document)
		f.subject = "document " + hex.EncodeToString(sum[:])
	}
	f.theirs = "a document that can't be read as an invoice"
	if item.Err != nil {
		f.theirs += ": " + item.Err.Error()
	}
	b.add(f)
}

func textMember(members map[string]jsontext.Value, name string) (text string) {
	if json.Unmarshal(members[name], &text) != nil {
		return ""
	}
	return text
}

// credited is one order with invoices that were credited.
func (b *reconcileBatch) credited(order orderID, ours, theirs string) {
	b.add(finding{
		kind: DivergenceOrderCredited, owner: ownerCRM, subject: url.PathEscape(order.source) + "/" + url.PathEscape(order.order),
		id: order, ours: ours, theirs: theirs, action: actionNone,
	})
}

package crm

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

// maxRequestBytes is the largest body that POST /v1/invoices takes.
const maxRequestBytes = 1 << 20

// hash is a SHA-256.
type hash [sha256.Size]byte

// orderID is what tells orders of one tenant apart.
type orderID struct{ source, order string }

func compareOrderIDs(a, b orderID) int {
	return cmp.Or(cmp.Compare(a.source, b.source), cmp.Compare(a.order, b.order))
}

// claim is what tells the invoices of one order apart.
type claim struct {
	role     erpapi.Role
	sequence int64
}

func (w wantedInvoice) claim() claim {
	if w.Sequence == nil {
		return claim{w.Role, 1}
	}
	return claim{w.Role, *w.Sequence}
}

// compareClaims sorts invoices as an order usually meets them: advances before the final one.
func compareClaims(a, b claim) int {
	return cmp.Or(cmp.Compare(slices.Index(erpapi.Roles(), a.role), slices.Index(erpapi.Roles(), b.role)),
		cmp.Compare(a.sequence, b.sequence))
}

// want is one wanted invoice with the request that will be sent for it, byte by byte.
type want struct {
	claim   claim
	request []byte
	hash    hash
}

// incoming is one order of a call: normalised, judged, and frozen. Making it reads no database, so the transaction
// is short and running it again costs little.
type incoming struct {
	id        orderID
	messageID string
	version   *int64
	status    OrderStatus
	// content is the canonical JSON of the order without version and message id. Orders that mean the same have
	// the same content, in whichever form, with whatever blanks, zeros or order of members they came.
	content     []byte
	contentHash hash
	wants       []want // by claim
	errors      findings
}

func prepare(orders []Order) []incoming {
	prepared := make([]incoming, len(orders))
	for i, o := range orders {
		prepared[i] = newIncoming(o)
	}
	return prepared
}

func newIncoming(o Order) incoming {
	o = o.normalised()
	in := incoming{
		id: orderID{o.Source, o.Order}, messageID: o.MessageID, version: o.Version, status: o.Status,
		errors: o.validate(),
	}
	if len(in.errors) == 0 {
		in.errors = in.freeze(o)
	}
	return in
}

// freeze makes the content and the requests. It refuses what the ERP could not even read.
func (in *incoming) freeze(o Order) (f findings) {
	content := Order{Source: o.Source, Order: o.Order}
	if o.Status == OrderCancelled {
		content.Status = OrderCancelled // whatever else it says has no effect
	} else {
		for _, w := range o.sortedInvoices() {
			request, frozen := freezeRequest(&f, w.pointer, o.request(w.OrderInvoice))
			if frozen == nil {
				continue
			}
			in.wants = append(in.wants, want{claim: w.claim(), request: request, hash: sha256.Sum256(request)})
			content.include(frozen)
		}
	}
	if len(f) > 0 {
		return f
	}
	var err error
	if in.content, err = erpapi.CanonicalJSON(&content); err != nil {
		f.add("", "has no canonical form: %v", err)
	}
	in.contentHash = sha256.Sum256(in.content)
	return f
}

func (o Order) sortedInvoices() []wantedInvoice {
	wanted := o.wantedInvoices()
	slices.SortStableFunc(wanted, func(a, b wantedInvoice) int { return compareClaims(a.claim(), b.claim()) })
	return wanted
}

// freezeRequest gives the canonical bytes of r, and r as the ERP will read it back from them.
func freezeRequest(f *findings, at string, r *erpapi.InvoiceRequest) ([]byte, *erpapi.InvoiceRequest) {
	request, err := r.Canonical()
	if err != nil {
		f.add(at, "holds text that is not UTF-8")
		return nil, nil
	}
	if len(request) > maxRequestBytes {
		f.add(at, "as a request has %d bytes; the ERP takes at most %d", len(request), maxRequestBytes)
		return nil, nil
	}
	frozen, err := erpapi.DecodeInvoiceRequest(request)
	if err == nil {
		return request, frozen
	}
	told := problem.As(err)
	if told == nil || len(told.Errors) == 0 {
		f.add(at, "can't be read back: %v", err)
		return nil, nil
	}
	for _, e := range told.Errors {
		f.add(at+e.Pointer, "%s", e.Detail)
	}
	return nil, nil
}

// include adds one invoice to an order's content.
func (o *Order) include(r *erpapi.InvoiceRequest) {
	o.Currency, o.Customer, o.OrderTotal, o.Metadata = r.Currency, r.Customer, r.OrderTotal, r.Metadata
	o.Invoices = append(o.Invoices, OrderInvoice{
		Role: r.Role, Sequence: r.Sequence, IssueDate: r.IssueDate, DueDate: r.DueDate, Lines: r.Lines,
		ExpectedGross: r.ExpectedGross, Corrects: r.Corrects, Note: r.Note,
	})
}

// messageHash identifies what a message says, its version included: one message id may, wrongly, come with two
// orders or two versions, and neither must swallow the other.
func (in *incoming) messageHash() hash {
	h := sha256.New()
	h.Write(in.content)
	if in.version != nil {
		var version [8]byte
		binary.BigEndian.PutUint64(version[:], uint64(*in.version))
		h.Write(version[:])
	}
	return hash(h.Sum(nil))
}

// refused is the submission of an order that is wrong in itself.
func (in *incoming) refused() Submission {
	s := in.submission(OutcomeRefused)
	s.Errors = in.errors
	if in.version != nil {
		s.Version = *in.version
	}
	s.Detail = fmt.Sprintf("%d members are wrong", len(in.errors))
	if len(in.errors) == 1 {
		s.Detail = "1 member is wrong"
	}
	return s
}

func (in *incoming) submission(outcome Outcome) Submission {
	return Submission{
		MessageID: in.messageID, Source: in.id.source, Order: in.id.order, Outcome: outcome,
		Operations: []OperationLink{},
	}
}

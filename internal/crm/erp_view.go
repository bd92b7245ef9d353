package crm

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

// ERPView is what the ERP knows of an operation, as it answered just now, beside what is known here.
type ERPView struct {
	AskedAt time.Time
	// Silent says why there is no answer; "" if there is one.
	Silent string
	// Known: the ERP knows the key. It not knowing it proves nothing while a request may be on its way.
	Known bool
	// Operation and Invoice are the ERP's, where it has them.
	Operation *erpapi.Operation
	Invoice   *erpapi.Invoice
	// Elsewhere is the ERP's invoice for the same order, role and sequence under another key; only looked for if it does not
	// know this one.
	Elsewhere *erpapi.Invoice
	// Rows are the two views, member by member; empty if the ERP is silent.
	Rows []ComparedMember
}

// ComparedMember is one member in both views; "" where a side has nothing.
type ComparedMember struct {
	Name         string
	Ours, Theirs string
	Differs      bool
}

// AskERP asks the ERP for its view of an operation, for at most ERPPatience. No transaction is open meanwhile. It does not
// fail: that the ERP is silent is part of the view.
func (c *Console) AskERP(ctx context.Context, tenant string, op Operation, d OperationDetail) ERPView {
	ctx, cancel := context.WithTimeout(ctx, c.opts.ERPPatience)
	defer cancel()
	v := ERPView{AskedAt: c.opts.Now()}
	token := c.opts.Token(tenant)
	switch {
	case c.opts.ERP == nil:
		v.Silent = "Nobody has told this service where the ERP is."
	case token == "":
		v.Silent = "No ERP token is configured for this tenant."
	default:
		v.ask(ctx, c.opts.ERP, token, op)
	}
	if v.Silent == "" {
		v.Rows = compareViews(op, d.frozen, &v)
	}
	return v
}

func (v *ERPView) ask(ctx context.Context, erp ERPReader, token string, op Operation) {
	var operation erpapi.Exchange
	var invoices erpapi.InvoiceListing
	var both errgroup.Group
	both.Go(func() error { operation = erp.GetOperation(ctx, token, op.Key); return nil })
	both.Go(func() error {
		invoices = erp.ListInvoices(ctx, token, erpapi.InvoiceQuery{Key: op.Key, Limit: 1})
		return nil
	})
	_ = both.Wait() // neither fails: an exchange tells all there is
	v.takeOperation(&operation, op.Key)
	if v.Silent == "" {
		v.Invoice = v.takeInvoice(&invoices, func(*erpapi.Invoice) bool { return true })
	}
	if v.Silent != "" || v.Known || v.Invoice != nil {
		v.Known = v.Known || v.Invoice != nil
		return
	}
	same := erp.ListInvoices(ctx, token, erpapi.InvoiceQuery{Source: op.Source, Order: op.Order, Role: op.Role, Limit: MaxPageLimit})
	v.Elsewhere = v.takeInvoice(&same, func(inv *erpapi.Invoice) bool { return inv.Sequence == op.Sequence })
}

func (v *ERPView) takeOperation(x *erpapi.Exchange, key string) {
	switch {
	case x.Complete && x.Status == http.StatusNotFound && problemType(x) == problem.NotFound:
	case x.Complete && x.Operation != nil && x.Operation.Key == key:
		v.Operation, v.Known = x.Operation, true
	default:
		v.Silent = silence(x)
	}
}

func (v *ERPView) takeInvoice(l *erpapi.InvoiceListing, fits func(*erpapi.Invoice) bool) *erpapi.Invoice {
	if !l.Read {
		v.Silent = silence(&l.Exchange)
		return nil
	}
	for _, item := range l.Items {
		if item.Invoice != nil && fits(item.Invoice) {
			return item.Invoice
		}
	}
	return nil
}

func silence(x *erpapi.Exchange) string {
	switch x.Status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "The ERP does not accept our token: " + answerText(x)
	case http.StatusOK:
		return "What the ERP answered is not of the documented form."
	}
	return "The ERP does not answer: " + askedText(x)
}

// compareViews puts the two views side by side. What differs in content is what reconciliation would say differs.
func compareViews(op Operation, frozen frozenRequest, v *ERPView) []ComparedMember {
	t := table{frozen: frozen, invoice: v.Invoice}
	theirStatus := "the key is not known"
	if v.Operation != nil {
		theirStatus = v.Operation.Status
	}
	succeeded := v.Operation != nil && OperationStatus(v.Operation.Status) == StatusSucceeded || v.Invoice != nil
	t.add("Status", string(op.Status), theirStatus, (op.Status == StatusSucceeded) != succeeded)
	theirKey := ""
	if v.Known {
		theirKey = op.Key
	}
	t.add("Key", op.Key, theirKey, false)
	var ours, theirs erpapi.InvoiceLink
	if op.Invoice != nil {
		ours = *op.Invoice
	}
	if v.Operation != nil && v.Operation.Invoice != nil {
		theirs = *v.Operation.Invoice
	}
	if v.Invoice != nil {
		theirs = erpapi.InvoiceLink{ID: v.Invoice.ID, Number: v.Invoice.Number}
	}
	t.add("Invoice number", ours.Number, theirs.Number, op.Invoice != nil && ours.Number != theirs.Number)
	t.add("Invoice id", ours.ID, theirs.ID, op.Invoice != nil && ours.ID != theirs.ID)
	request, err := erpapi.DecodeInvoiceRequest(frozen.text)
	if err != nil {
		request = &erpapi.InvoiceRequest{}
	}
	t.compareContent(request)
	return t.rows
}

// table collects the rows of a comparison.
type table struct {
	frozen   frozenRequest
	invoice  *erpapi.Invoice // nil: the ERP has none
	pointers []string        // of what differs in content
	rows     []ComparedMember
}

func (t *table) add(name, ours, theirs string, differs bool) {
	if ours != "" || theirs != "" {
		t.rows = append(t.rows, ComparedMember{name, ours, theirs, differs})
	}
}

// member adds a member of the request, which differs if its pointer, or one below it, does.
func (t *table) member(name, pointer, ours, theirs string) {
	if t.frozen.minimised && ours == "" && theirs != "" {
		ours = "(no longer kept)"
	}
	t.add(name, ours, theirs, t.differs(pointer))
}

func (t *table) differs(pointer string) bool {
	for _, p := range t.pointers {
		if p == pointer || strings.HasPrefix(p, pointer+"/") || strings.HasPrefix(pointer, p+"/") {
			return true
		}
	}
	return false
}

func (t *table) compareContent(ours *erpapi.InvoiceRequest) {
	theirs := &erpapi.InvoiceRequest{}
	if t.invoice != nil {
		theirs = t.invoice.Request()
		var err error
		if _, t.pointers, err = t.frozen.differing(t.invoice); err != nil {
			t.add("Content", "the frozen request", "can't be compared: "+err.Error(), true)
		}
	}
	for _, m := range []struct{ name, pointer, ours, theirs string }{
		{"Source", "/source", ours.Source, theirs.Source},
		{"Order", "/order", ours.Order, theirs.Order},
		{"Role", "/role", string(ours.Role), string(theirs.Role)},
		{"Sequence", "/sequence", sequenceText(ours), sequenceText(theirs)},
		{"Currency", "/currency", ours.Currency, theirs.Currency},
		{"Issue date", "/issue_date", ours.IssueDate, theirs.IssueDate},
		{"Due date", "/due_date", ours.DueDate, theirs.DueDate},
		{"Corrects", "/corrects", ours.Corrects, theirs.Corrects},
		{"Customer", "/customer/name", ours.Customer.Name, theirs.Customer.Name},
		{"Country", "/customer/country", ours.Customer.Country, theirs.Customer.Country},
		{"VAT id", "/customer/vat_id", ours.Customer.VATID, theirs.Customer.VATID},
		{"Email", "/customer/email", ours.Customer.Email, theirs.Customer.Email},
		{"Address", "/customer/address", ours.Customer.Address, theirs.Customer.Address},
	} {
		t.member(m.name, m.pointer, m.ours, m.theirs)
	}
	for i := range max(len(ours.Lines), len(theirs.Lines)) {
		t.member("Line "+strconv.Itoa(i+1), pointer("lines", i), lineText(ours.Lines, i), lineText(theirs.Lines, i))
	}
	t.member("Order total", "/order_total", decimalText(ours.OrderTotal), decimalText(theirs.OrderTotal))
	t.member("Note", "/note", ours.Note, theirs.Note)
	t.member("Metadata", "/metadata", metadataText(ours.Metadata), metadataText(theirs.Metadata))
	t.totals(ours)
}

// totals adds the invoice's sums. This side computes none; where the source did, its gross is compared.
func (t *table) totals(ours *erpapi.InvoiceRequest) {
	expected := decimalText(ours.ExpectedGross)
	if t.invoice == nil {
		t.add("Gross", expected, "", false)
		return
	}
	wrong, _ := totalsDifference(t.invoice)
	t.add("Net", "", t.invoice.Net, strings.HasPrefix(wrong, "net "))
	t.add("VAT", "", t.invoice.VAT, strings.HasPrefix(wrong, "vat "))
	t.add("Gross", expected, t.invoice.Gross, strings.HasPrefix(wrong, "gross ") || t.differs("/expected_gross"))
	t.add("Payable", "", t.invoice.Payable, strings.HasPrefix(wrong, "payable "))
}

func sequenceText(r *erpapi.InvoiceRequest) string {
	if r.Order == "" {
		return ""
	}
	return strconv.FormatInt(r.EffectiveSequence(), 10)
}

// lineText is a line as a person reads it: "2 × 10.00 − 1.00, VAT 19 % (S), P-1 Blue chair".
func lineText(lines []erpapi.Line, i int) string {
	if i >= len(lines) {
		return ""
	}
	l := lines[i]
	text := decimalText(l.Quantity) + " × " + decimalText(l.UnitPrice)
	if l.Discount != nil && !l.Discount.Value().IsZero() {
		text += " − " + l.Discount.String()
	}
	text += ", VAT "
	if l.VATRate != nil {
		text += l.VATRate.String() + " % "
	}
	text += "(" + l.VATCategory + ")"
	if l.ExemptionReason != "" {
		text += " " + l.ExemptionReason
	}
	if words := strings.TrimSpace(l.SKU + " " + l.Description); words != "" {
		text += ", " + words
	}
	return text
}

func decimalText(d *erpapi.Decimal) string {
	if d == nil {
		return ""
	}
	return d.String()
}

func metadataText(m map[string]string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s: %s", name, m[name]))
	}
	return strings.Join(parts, ", ")
}

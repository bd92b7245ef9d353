package crm

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"invoicebridge/internal/crmdb"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

const (
	// erpAskLimit is how long a person who approves waits for the ERP.
	erpAskLimit = 5 * time.Second
	// erpAskPages of an order's invoices are looked through; an order has few.
	erpAskPages = 10
)

// erpWord is what the ERP says about an operation.
type erpWord struct {
	answered bool
	invoice  *IssuedInvoice // of the key, or else of the business claim
	underway bool           // it knows the key, and has no invoice of it
	text     string
}

// contradiction is what the ERP says against a proposal; "" if it says nothing against it.
func (w erpWord) contradiction(r crmdb.ResolutionGetRow) string {
	switch {
	case !w.answered:
		return ""
	case w.underway:
		return w.text
	case Verdict(r.Verdict) == VerdictNotApplied && w.invoice != nil:
		return w.text
	case Verdict(r.Verdict) == VerdictApplied && (w.invoice == nil || *w.invoice != IssuedInvoice{ID: *r.InvoiceID, Number: *r.InvoiceNumber}):
		return w.text
	}
	return ""
}

// askERP asks what became of an operation, by its key and, where that is not known, by its business claim. It changes
// nothing there.
func (s *Service) askERP(ctx context.Context, tenant string, r crmdb.ResolutionGetRow) erpWord {
	token := s.opts.Token(tenant)
	silent := func(format string, args ...any) erpWord {
		return erpWord{text: keepable("The ERP could not be asked: "+fmt.Sprintf(format, args...), token)}
	}
	if s.opts.ERP == nil || token == "" {
		return silent("no address, or no token for this tenant, is configured.")
	}
	ctx, cancel := context.WithTimeout(ctx, erpAskLimit)
	defer cancel()
	x := s.opts.ERP.GetOperation(ctx, token, r.Key)
	switch {
	case x.Complete && x.Status == http.StatusOK && x.Operation != nil && x.Operation.Key == r.Key:
		return toldOperation(x.Operation)
	case x.Complete && x.Status == http.StatusNotFound && problemType(&x) == problem.NotFound:
		return s.askERPForClaim(ctx, token, r, silent)
	}
	return silent("%s", askedText(&x))
}

func toldOperation(op *erpapi.Operation) erpWord {
	if op.Invoice != nil {
		if issued, ok := issuedInvoice(op.Invoice.ID, op.Invoice.Number); ok {
			return erpWord{
				answered: true, invoice: issued, text: keepable(fmt.Sprintf("The ERP has invoice %s (%s) of this key.", issued.Number, issued.ID), ""),
			}
		}
	}
	return erpWord{answered: true, underway: true, text: keepable(fmt.Sprintf("The ERP knows this key, and says that the operation is %s.", op.Status), "")}
}

func (s *Service) askERPForClaim(ctx context.Context, token string, r crmdb.ResolutionGetRow, silent func(string, ...any) erpWord) erpWord {
	q := erpapi.InvoiceQuery{Source: r.Source, Order: r.OrderID, Role: erpapi.Role(r.Role), Limit: DefaultReconcileBatch}
	for range erpAskPages {
		listing := s.opts.ERP.ListInvoices(ctx, token, q)
		if !listing.Read {
			return silent("it does not know the key, and did not list the order's invoices (%s).", askedText(&listing.Exchange))
		}
		for _, item := range listing.Items {
			if issued, ok := readable(item.Invoice); ok && item.Invoice.Sequence == int64(r.Sequence) {
				return erpWord{answered: true, invoice: issued, text: keepable(fmt.Sprintf(
					"The ERP does not know this key, and has invoice %s (%s) for the same %s of the order, of key %s.",
					issued.Number, issued.ID, r.Role, item.Invoice.OperationKey), "")}
			}
		}
		if q.Cursor = listing.Next; q.Cursor == "" {
			return erpWord{answered: true, text: "The ERP has no invoice of this key or for this part of the order."}
		}
	}
	return silent("it lists too many invoices of the order.")
}

package httpapi

import (
	"net/url"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/labstack/echo/v4"

	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/problem"
	"invoicebridge/web"
)

func invoiceParams() []string {
	return []string{"q", "source", "order", "role", "currency", "issued_from", "issued_to", "from", "to", "limit", "after", "before"}
}

func invoiceSearch(values url.Values) (f invoice.Search, err error) {
	f = invoice.Search{
		Term: values.Get("q"), Source: values.Get("source"), Order: values.Get("order"), Role: values.Get("role"),
		Currency:   strings.ToUpper(strings.TrimSpace(values.Get("currency"))),
		IssuedFrom: values.Get("issued_from"), IssuedTo: values.Get("issued_to"),
	}
	f.CreatedFrom, f.CreatedTo, err = timeRange(values)
	return f, err
}

func (e erp) showInvoices(c echo.Context) error {
	values, err := query(c, invoiceParams()...)
	if err != nil {
		return err
	}
	f, err := invoiceSearch(values)
	if err != nil {
		return err
	}
	w, err := walkOf(values)
	if err != nil {
		return err
	}
	ctx, tenant := c.Request().Context(), identity(c).Tenant
	found, err := e.desk.Search(ctx, tenant, f, w)
	if err != nil {
		return err
	}
	sources, err := e.desk.Sources(ctx, tenant)
	if err != nil {
		return err
	}
	l := listing{invoicesPath, values}
	page := web.ERPInvoices{
		Layout: e.layout(c, "Invoices", invoicesPath), Filter: invoiceFilterForm(l, sources),
		Pager: l.walker(shown(len(found.Invoices), "invoice", false), found.Next, found.Previous),
	}
	for _, inv := range found.Invoices {
		page.Lines = append(page.Lines, invoiceLine(inv))
	}
	if len(found.Invoices) == 0 {
		page.Empty = noInvoices(l)
		return e.show(c, page)
	}
	sums, err := e.desk.Sums(ctx, tenant, f)
	if err != nil {
		return err
	}
	page.Sums, page.SumsNote = sumLines(sums)
	page.Export = listing{exportPath, values}.href("after", "", "before", "", "limit", "")
	return e.show(c, page)
}

func noInvoices(l listing) *web.Empty {
	if l.isNarrowed() {
		return &web.Empty{
			Title: "No invoice matches.",
			Text:  "A search finds whole numbers and keys, and the beginnings of order ids and of customers' names.",
			Links: []web.Link{{Href: invoicesPath, Text: "All invoices"}},
		}
	}
	return &web.Empty{
		Title: "No invoice was issued yet.", Text: "Invoices come by the API, from whoever has a token of the role writer.",
		Links: []web.Link{{Href: "/docs", Text: "API reference", About: "How an invoice is asked for."}},
	}
}

func invoiceFilterForm(l listing, sources []string) web.Filter {
	f := web.Filter{ID: findForm, Path: l.path, Label: "Find invoices"}
	if l.isNarrowed() {
		f.Clear = l.path
	}
	roles := []string{}
	for _, role := range erpapi.Roles() {
		roles = append(roles, string(role))
	}
	f.Fields = []web.Field{
		{Form: findForm, Name: "q", Label: "Number, order, customer or key", Type: web.FieldSearch, Value: l.values.Get("q"), Hint: "INV-2026-000123"},
		{Form: findForm, Name: "role", Label: "Role", Type: web.FieldSelect, Value: l.values.Get("role"), Options: web.Options("any", roles...)},
		{Form: findForm, Name: "issued_from", Label: "Issued from", Type: web.FieldDate, Value: l.values.Get("issued_from")},
		{Form: findForm, Name: "issued_to", Label: "Issued to", Type: web.FieldDate, Value: l.values.Get("issued_to")},
	}
	source := web.Field{Form: findForm, Name: "source", Label: "Source", Type: web.FieldSelect, Value: l.values.Get("source"), Options: []web.Option{{Text: "any"}}}
	for _, s := range sources {
		source.Options = append(source.Options, web.Option{Value: s, Text: s})
	}
	f.More = append([]web.Field{
		source,
		{Form: findForm, Name: "order", Label: "Order, whole", Value: l.values.Get("order")},
		{Form: findForm, Name: "currency", Label: "Currency", Value: l.values.Get("currency"), Hint: "EUR"},
	}, l.rangeFields()...)
	return f
}

func invoiceLine(inv *erpapi.Invoice) web.InvoiceLine {
	money := moneyIn(inv.Currency)
	return web.InvoiceLine{
		Href: invoiceHref(inv.ID), Number: inv.Number, Role: roleText(inv.Role, inv.Sequence), Source: inv.Source, Order: inv.Order,
		Customer: inv.Customer.Name, Issued: inv.IssueDate, Net: money(inv.Net), VAT: money(inv.VAT), Gross: money(inv.Gross),
		Created: web.At(inv.CreatedAt),
	}
}

func moneyIn(currency string) func(string) web.Money {
	return func(amount string) web.Money { return web.Money{Amount: amount, Currency: currency} }
}

func sumLines(sums invoice.Sums) (lines []web.SumLine, note string) {
	if sums.Beyond {
		return nil, "There are too many to add up while you wait. Narrow the search, or download the file."
	}
	line := func(what string, s invoice.Sum, a invoice.Amounts, total bool) web.SumLine {
		money := moneyIn(s.Currency)
		return web.SumLine{What: what + " " + s.Currency, Count: a.Invoices, Net: money(a.Net), VAT: money(a.VAT), Gross: money(a.Gross), Total: total}
	}
	for _, s := range sums.ByCurrency {
		if s.CreditNotes.Invoices > 0 {
			lines = append(lines, line("Invoices", s, s.Invoices, false), line("Credit notes", s, s.CreditNotes, false),
				line("Invoices less credit notes", s, s.Balance, true))
			continue
		}
		lines = append(lines, line("Invoices", s, s.Invoices, true))
	}
	return lines, ""
}

func (e erp) showInvoice(c echo.Context) error {
	id, err := uuid.Parse(c.Param("id"))
	if err != nil || id.String() != c.Param("id") { // one address for one invoice
		return problem.New(problem.NotFound, "There is no invoice with this id.")
	}
	if _, err := query(c); err != nil {
		return err
	}
	story, err := e.desk.Story(c.Request().Context(), identity(c).Tenant, id)
	if err != nil {
		return err
	}
	inv := story.Invoice
	page := web.ERPInvoice{
		Layout: e.layout(c, inv.Number, invoicesPath), Document: documentOf(story), Related: relatedTo(story), Moments: moments(story),
		Facts: []web.Fact{
			{Heading: "Operation key", Text: inv.OperationKey}, {Heading: "Invoice id", Text: inv.ID},
			{Heading: "Source", Text: inv.Source},
		},
		Search: web.Link{Href: listing{invoicesPath, url.Values{}}.href("source", inv.Source, "order", inv.Order), Text: "All invoices of this order"},
	}
	for _, r := range story.Registrations {
		page.Registrations = append(page.Registrations, registrationLine(r))
	}
	return e.show(c, page)
}

func documentOf(story invoice.Story) web.InvoiceDocument {
	inv := story.Invoice
	money := moneyIn(inv.Currency)
	d := web.InvoiceDocument{
		Number: inv.Number, Kind: "Invoice", State: web.StateOf(inv.Status), Seller: story.Seller,
		Customer: web.Party{
			Name: inv.Customer.Name, Address: inv.Customer.Address, Country: inv.Customer.Country, VATID: inv.Customer.VATID, Email: inv.Customer.Email,
		},
		Facts: []web.Fact{{Heading: "Issue date", Text: inv.IssueDate}},
		Net:   money(inv.Net), VAT: money(inv.VAT), Gross: money(inv.Gross), Payable: money(inv.Payable), Note: inv.Note,
	}
	if inv.Role.Corrects() {
		d.Kind = capital(inWordsOf(string(inv.Role)))
	}
	if inv.DueDate != nil {
		d.Facts = append(d.Facts, web.Fact{Heading: "Due date", Text: *inv.DueDate})
	}
	d.Facts = append(d.Facts, web.Fact{Heading: "Order", Text: inv.Order}, web.Fact{Heading: "Role", Text: roleText(inv.Role, inv.Sequence)})
	for i := range inv.Lines {
		line := &inv.Lines[i]
		d.Lines = append(d.Lines, web.DocumentLine{
			Position: i + 1, SKU: line.SKU, Description: line.Description, Quantity: exact(line.Quantity),
			UnitPrice: priced(line.UnitPrice, line.Net), Discount: priced(line.Discount, line.Net), Rate: rate(line.VATCategory, line.VATRate), Net: money(line.Net),
		})
	}
	for _, g := range inv.VATBreakdown {
		d.Groups = append(d.Groups, web.VATLine{
			Category: g.Category, Rate: rate("", g.Rate), Reason: g.ExemptionReason, Net: money(g.Net), VAT: money(g.VAT),
		})
	}
	names := make([]string, 0, len(inv.Metadata))
	for name := range inv.Metadata {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		d.Metadata = append(d.Metadata, web.Fact{Heading: name, Text: inv.Metadata[name]})
	}
	return d
}

func capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func exact(d *erpapi.Decimal) string {
	if d == nil {
		return ""
	}
	return d.String()
}

// priced is an amount as it was sent, with at least as many decimals as the amounts of its currency have, like net. It may
// have more: a unit price of 0.0125 is one.
func priced(d *erpapi.Decimal, net string) web.Money {
	if d == nil {
		return web.Money{}
	}
	_, decimals, _ := strings.Cut(net, ".")
	return web.Money{Amount: d.Value().StringFixed(max(d.Decimals(), int32(len(decimals))))}
}

func rate(category string, d *erpapi.Decimal) string {
	if d == nil {
		return category
	}
	return strings.TrimSpace(category + " " + d.String() + " %")
}

func relatedTo(story invoice.Story) (related []web.RelatedInvoice) {
	if story.Corrects != nil {
		how := "Corrects"
		if story.Invoice.Role == erpapi.RoleCreditNote {
			how = "Credits"
		}
		related = append(related, web.RelatedInvoice{How: how, Href: invoiceHref(story.Corrects.ID), Text: story.Corrects.Number})
	}
	for _, k := range story.CorrectedBy {
		how := "Corrected by"
		if k.Role == erpapi.RoleCreditNote {
			how = "Credited by"
		}
		related = append(related, web.RelatedInvoice{
			How: how, Href: invoiceHref(k.ID.String()), Text: k.Number, Gross: web.Money{Amount: k.Gross, Currency: k.Currency}, At: web.At(k.CreatedAt),
		})
	}
	return related
}

// moments are what happened to an invoice, in its order.
func moments(story invoice.Story) []web.Moment {
	inv := story.Invoice
	reserved := "Its reservation is over; the invoice remembers the key for ever."
	if story.Expires != nil {
		reserved = "The answer is kept at least until"
	}
	all := []web.Moment{
		{At: web.At(story.FirstSeen), Title: "Key reserved", Text: reserved, Until: web.AtPtr(story.Expires)},
		{At: web.At(inv.CreatedAt), Title: "Issued as " + inv.Number},
	}
	for _, r := range story.Registrations {
		all = append(all, registrationMoments(r)...)
	}
	for _, k := range story.Conflicts {
		bad := web.StateOf("refused")
		all = append(all, web.Moment{
			At: web.At(k.OccurredAt), Title: "Another request came with its key", State: &bad,
			Text: "Not the same: " + strings.Join(k.Differences, ", ") + ". Sent with " + callerText(k) + ".",
			Link: &web.Link{Href: listing{conflictsPath, url.Values{}}.href("key", inv.OperationKey), Text: "Conflicts of this key"},
		})
	}
	for _, k := range story.CorrectedBy {
		all = append(all, web.Moment{
			At: web.At(k.CreatedAt), Title: capital(inWordsOf(string(k.Role))) + " issued", Link: &web.Link{Href: invoiceHref(k.ID.String()), Text: k.Number},
		})
	}
	for _, a := range story.Audit {
		all = append(all, web.Moment{At: web.At(a.OccurredAt), Title: a.Actor + ": " + a.Action, Text: a.Reason})
	}
	slices.SortStableFunc(all, func(a, b web.Moment) int { return a.At.At.Compare(b.At.At) })
	return all
}

func registrationMoments(r erpapi.RegistrationDetail) []web.Moment {
	link := &web.Link{Href: registrationHref(r.ID), Text: "The registration"}
	all := []web.Moment{{At: web.At(r.CreatedAt), Title: "To be registered at " + r.Target, Link: link}}
	for _, a := range r.History {
		state := web.StateOf(a.Outcome)
		title := "Sent to " + r.Target
		if a.Action == "locate" {
			title = r.Target + " asked"
		}
		all = append(all, web.Moment{At: web.At(a.StartedAt), Title: title, State: &state, Text: a.Detail})
	}
	if r.FinishedAt != nil {
		state := web.StateOf(r.Status)
		all = append(all, web.Moment{At: web.At(*r.FinishedAt), Title: "Registration at " + r.Target + " ended", State: &state, Text: r.Reference, Link: link})
	}
	return all
}

func callerText(k invoice.Conflict) string {
	if k.CallerLabel != "" {
		return k.CallerLabel
	}
	return k.Caller
}

package httpapi

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
	"invoicebridge/web"
)

// How many lines the form has at first, and at most.
const (
	firstLines = 3
	maxLines   = 60
)

// formField is a field of the form for an order, and the place of its value in the order.
type formField struct {
	web.Field
	pointer string
}

// orderFields are the fields beside the lines.
func orderFields() []formField {
	roles := []web.Option{}
	for _, r := range erpapi.Roles() {
		roles = append(roles, web.Option{Value: string(r), Text: inWordsOf(string(r))})
	}
	slices.SortStableFunc(roles, func(a, b web.Option) int { // the usual one first
		return strings.Compare(strconv.FormatBool(b.Value == string(erpapi.RoleFinal)), strconv.FormatBool(a.Value == string(erpapi.RoleFinal)))
	})
	return []formField{
		{web.Field{Name: "source", Label: "Source", Required: true, Help: "Where the order comes from, as it is named elsewhere."}, "/source"},
		{web.Field{Name: "order", Label: "Order number", Required: true, Help: "As the source would send it."}, "/order"},
		{web.Field{Name: "role", Label: "What the invoice is", Type: web.FieldSelect, Options: roles}, "/role"},
		{web.Field{Name: "sequence", Label: "Sequence", Help: "Tells several of one role apart. Empty is 1."}, "/sequence"},
		{web.Field{Name: "currency", Label: "Currency", Required: true, Hint: "EUR"}, "/currency"},
		{web.Field{Name: "issue_date", Label: "Issue date", Type: web.FieldDate, Required: true}, "/issue_date"},
		{web.Field{Name: "due_date", Label: "Due date", Type: web.FieldDate}, "/due_date"},
		{web.Field{Name: "corrects", Label: "Corrects invoice", Help: "For a credit note or a correction: its number or id."}, "/corrects"},
		{web.Field{Name: "customer_name", Label: "Customer", Required: true}, "/customer/name"},
		{web.Field{Name: "customer_country", Label: "Country", Hint: "DE", Help: "Two letters."}, "/customer/country"},
		{web.Field{Name: "customer_vat_id", Label: "VAT id"}, "/customer/vat_id"},
		{web.Field{Name: "customer_email", Label: "Email"}, "/customer/email"},
		{web.Field{Name: "customer_address", Label: "Address", Type: web.FieldArea, Wide: true}, "/customer/address"},
	}
}

// lineFields are the fields of line i.
func lineFields(i int) []formField {
	categories := []web.Option{
		{Value: "S", Text: "S standard rate"}, {Value: "Z", Text: "Z zero rated"}, {Value: "E", Text: "E exempt"},
		{Value: "AE", Text: "AE reverse charge"}, {Value: "K", Text: "K intra-community"}, {Value: "G", Text: "G export"},
		{Value: "O", Text: "O outside VAT"},
	}
	at := fmt.Sprintf("/lines/%d/", i)
	fields := []formField{
		{web.Field{Name: "sku", Label: "Article number"}, at + "sku"},
		{web.Field{Name: "description", Label: "Description"}, at + "description"},
		{web.Field{Name: "quantity", Label: "Quantity", Hint: "2"}, at + "quantity"},
		{web.Field{Name: "unit_price", Label: "Unit price", Hint: "10.00"}, at + "unit_price"},
		{web.Field{Name: "discount", Label: "Discount", Help: "An amount off the line."}, at + "discount"},
		{web.Field{Name: "vat_rate", Label: "VAT rate, percent", Hint: "19"}, at + "vat_rate"},
		{web.Field{Name: "vat_category", Label: "VAT category", Type: web.FieldSelect, Options: categories}, at + "vat_category"},
		{web.Field{Name: "exemption_reason", Label: "Reason of exemption"}, at + "exemption_reason"},
	}
	for n := range fields {
		fields[n].Name = fmt.Sprintf("line_%d_%s", i+1, fields[n].Name)
	}
	return fields
}

func totalFields() []formField {
	return []formField{
		{web.Field{Name: "expected_gross", Label: "Gross total", Help: "If given, an invoice with another total is refused."}, "/expected_gross"},
		{web.Field{Name: "order_total", Label: "Gross of the whole order", Help: "If several invoices share the order."}, "/order_total"},
		{web.Field{Name: "note", Label: "Note on the invoice", Wide: true}, "/note"},
	}
}

// byHand is the form for an order as it was sent.
type byHandForm struct {
	values url.Values
	lines  int // how many are shown
	// places are the shown lines, counted from 0, that are not empty: line n of the order is the shown line places[n].
	places []int
}

func readByHand(values url.Values) byHandForm {
	f := byHandForm{values: values, lines: firstLines}
	if n, err := strconv.Atoi(values.Get("lines")); err == nil {
		f.lines = min(max(n, 1), maxLines)
	}
	for i := range maxLines {
		for _, field := range lineFields(i) {
			if strings.HasSuffix(field.Name, "vat_category") || strings.TrimSpace(values.Get(field.Name)) == "" {
				continue
			}
			f.places, f.lines = append(f.places, i), max(f.lines, i+1)
			break
		}
	}
	return f
}

// order makes the order that was written. What can't be an order at all is told with its place.
func (f byHandForm) order() (crm.Order, *problem.Problem) {
	wrong := problem.New(problem.InvalidOrder, "The order is not valid. Nothing was stored.")
	get := func(name string) string { return strings.TrimSpace(f.values.Get(name)) }
	amount := func(name string) *erpapi.Decimal { return decimalAsWritten(get(name)) }
	order := crm.Order{
		Source: get("source"), Order: get("order"), Role: erpapi.Role(get("role")), Currency: get("currency"),
		IssueDate: get("issue_date"), DueDate: get("due_date"), Corrects: get("corrects"), Note: get("note"),
		Customer: erpapi.Customer{
			Name: get("customer_name"), Country: get("customer_country"), VATID: get("customer_vat_id"),
			Email: get("customer_email"), Address: get("customer_address"),
		},
		ExpectedGross: amount("expected_gross"), OrderTotal: amount("order_total"),
	}
	if text := get("sequence"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			wrong.Errors = append(wrong.Errors, problem.FieldError{Pointer: "/sequence", Detail: "is no whole number"})
		}
		order.Sequence = &n
	}
	for _, i := range f.places {
		name := func(field string) string { return fmt.Sprintf("line_%d_%s", i+1, field) }
		order.Lines = append(order.Lines, erpapi.Line{
			SKU: get(name("sku")), Description: get(name("description")), Quantity: amount(name("quantity")),
			UnitPrice: amount(name("unit_price")), Discount: amount(name("discount")), VATRate: amount(name("vat_rate")),
			VATCategory: get(name("vat_category")), ExemptionReason: get(name("exemption_reason")),
		})
	}
	if len(wrong.Errors) > 0 {
		return order, wrong
	}
	return order, nil
}

// decimalAsWritten keeps a text that is no decimal, so that it is refused with its place like any other mistake.
func decimalAsWritten(text string) *erpapi.Decimal {
	if text == "" {
		return nil
	}
	d, _ := erpapi.ParseDecimal(text)
	return &d
}

// pointerOf is the place of a shown line's field in the order that was made of it.
func (f byHandForm) pointerOf(field formField) string {
	rest, isLine := strings.CutPrefix(field.pointer, "/lines/")
	if !isLine {
		return field.pointer
	}
	shownAt, member, _ := strings.Cut(rest, "/")
	i, _ := strconv.Atoi(shownAt)
	n := slices.Index(f.places, i)
	if n < 0 {
		return ""
	}
	return fmt.Sprintf("/lines/%d/%s", n, member)
}

// page is the form with what was written, and each mistake at its field.
func (f byHandForm) page(layout web.Layout, errs []problem.FieldError) web.CRMNewOrder {
	page := web.CRMNewOrder{
		Layout: layout, Reason: web.Field{
			Form: "order", Name: "reason", Label: "Reason", Required: true, Wide: true, Value: f.values.Get("reason"),
			Help: "Why it is written by hand. Goes into the audit with your name and the time.",
		},
		Other: web.Link{Href: newOrderPath + "?form=json", Text: "Write it as JSON instead", About: "For what the form does not have: several invoices of one order, metadata, versions."},
	}
	told := map[int]bool{}
	fill := func(fields []formField) (filled []web.Field) {
		for _, field := range fields {
			pointer := f.pointerOf(field)
			for i, e := range errs {
				if pointer != "" && (e.Pointer == pointer || strings.HasPrefix(e.Pointer, pointer+"/")) {
					field.Error, told[i] = strings.TrimSpace(field.Error+" "+sentence(e.Detail)), true
				}
			}
			field.Form, field.Value = "order", f.values.Get(field.Name)
			filled = append(filled, field.Field)
		}
		return filled
	}
	page.Fields = fill(orderFields())
	for i := range f.lines {
		page.Lines = append(page.Lines, web.LineFields{Number: i + 1, Fields: fill(lineFields(i))})
	}
	page.Totals = fill(totalFields())
	for i, e := range errs {
		if !told[i] {
			page.Wrong = append(page.Wrong, strings.TrimSpace(inWordsOf(strings.TrimPrefix(e.Pointer, "/"))+" "+e.Detail))
		}
	}
	return page
}

func (h crmSide) showNewOrder(c echo.Context) error {
	values, err := query(c, "source", "order", "form")
	if err != nil {
		return err
	}
	if values.Get("form") == "json" {
		return h.showExpert(c, values, nil)
	}
	return h.show(c, readByHand(values).page(h.layout(c, "Invoice by hand", newOrderPath), nil))
}

func (h crmSide) showExpert(c echo.Context, values url.Values, errs []problem.FieldError) error {
	page := web.CRMNewOrder{
		Layout: h.layout(c, "Invoice by hand, as JSON", newOrderPath),
		Expert: &web.Field{
			Form: "order", Name: "json", Label: "Order", Type: web.FieldArea, Wide: true, Required: true, Value: values.Get("json"),
			Help: "One JSON object, in the form of POST /v1/orders.",
		},
		Reason: byHandForm{values: values}.page(web.Layout{}, nil).Reason,
		Other:  web.Link{Href: newOrderPath, Text: "Use the form instead"},
	}
	for _, e := range errs {
		page.Wrong = append(page.Wrong, strings.TrimSpace(e.Pointer+" "+e.Detail))
	}
	return h.show(c, page)
}

func (h crmSide) pressNewOrder(c echo.Context) error {
	values, err := readForm(c, maxConsoleForm)
	if err != nil {
		return err
	}
	expert := values.Get("form") == "json"
	written := readByHand(values)
	if !expert && values.Get("more") != "" {
		written.lines = min(written.lines+firstLines, maxLines)
		return h.show(c, written.page(h.layout(c, "Invoice by hand", newOrderPath), nil))
	}
	again := func(c echo.Context) error {
		errs := refusal(c).Errors
		layout := h.layout(c, "Invoice by hand", newOrderPath)
		if expert {
			return h.showExpert(c, values, errs)
		}
		page := written.page(layout, errs)
		if page.Layout.Flash != nil && len(errs) > 0 { // each is told at its field
			page.Layout.Flash.Text = refusal(c).Detail
		}
		return h.show(c, page)
	}
	submission, err := h.submitWritten(c, expert, values, written)
	if err != nil {
		return h.again(c, err, again)
	}
	return h.done(c, orderHref(submission.Source, submission.Order), inWordsOfOutcome(submission))
}

func (h crmSide) submitWritten(c echo.Context, expert bool, values url.Values, written byHandForm) (crm.Submission, error) {
	var order crm.Order
	if expert {
		if err := erpapi.DecodeStrict([]byte(values.Get("json")), &order); err != nil {
			return crm.Submission{}, err
		}
	} else {
		var wrong *problem.Problem
		if order, wrong = written.order(); wrong != nil {
			return crm.Submission{}, wrong
		}
	}
	return h.orders.SubmitByHand(c.Request().Context(), identity(c).Tenant, order, by(c, values.Get("reason")))
}

// inWordsOfOutcome tells what became of an order, and why there is no second invoice where there is none.
func inWordsOfOutcome(s crm.Submission) string {
	switch s.Outcome {
	case crm.OutcomeCreated:
		return "The order is taken in, and its invoice is on its way."
	case crm.OutcomeAlreadyThere:
		return "Just this was asked for before. Nothing changed, and there is no second invoice."
	case crm.OutcomeChanged:
		return "The order was known: this is its version " + strconv.FormatInt(s.Version, 10) + " now. What was not sent yet follows it."
	case crm.OutcomeChangedAfterDelivery:
		return "The order was known, and its invoice was sent before in another form: that one stays, and the difference is marked for a person. " + sentence(s.Detail)
	case crm.OutcomeCancelled:
		return "The order is cancelled, and so is what of it was not sent yet."
	case crm.OutcomeStale:
		return "A newer version of the order is known: this one has no effect."
	}
	return "The order was dealt with: " + inWordsOf(string(s.Outcome)) + ". " + sentence(s.Detail)
}

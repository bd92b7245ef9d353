package crm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/erpapi"
)

func TestWhatIsWrongWithAnOrderIsToldWithItsPointer(t *testing.T) {
	t.Parallel()
	zero, two := int64(0), int64(2)
	listed := func(invoices ...OrderInvoice) func(*Order) {
		return func(o *Order) {
			for i := range invoices {
				if invoices[i].Lines == nil {
					invoices[i].Lines = o.Lines
				}
			}
			o.Invoices, o.Lines = invoices, nil
		}
	}
	bad, _ := erpapi.ParseDecimal("1,50")
	for name, c := range map[string]struct {
		change func(*Order)
		want   string // pointers
	}{
		"nothing":                       {func(*Order) {}, ""},
		"no source":                     {func(o *Order) { o.Source = " \u00a0" }, "/source"},
		"no order":                      {func(o *Order) { o.Order = "" }, "/order"},
		"order id too long":             {func(o *Order) { o.Order = strings.Repeat("\u00e4", 129) }, "/order"},
		"longest order id":              {func(o *Order) { o.Order = strings.Repeat("\u00e4", 128) }, ""},
		"control character in id":       {func(o *Order) { o.Order = "A\n1" }, "/order"},
		"invisible character in id":     {func(o *Order) { o.Order = "A\u200b1" }, "/order"},
		"id is not UTF-8":               {func(o *Order) { o.Source = "a\xff" }, "/source"},
		"message id too long":           {func(o *Order) { o.MessageID = strings.Repeat("m", 256) }, "/message_id"},
		"version 0":                     {func(o *Order) { o.Version = &zero }, "/version"},
		"unknown status":                {func(o *Order) { o.Status = "shipped" }, "/status"},
		"no currency, no customer":      {func(o *Order) { o.Currency, o.Customer.Name = "", "" }, "/currency /customer/name"},
		"currency that is none":         {func(o *Order) { o.Currency = "euros" }, "/currency"},
		"currency in small letters":     {func(o *Order) { o.Currency = "eur" }, "/currency"},
		"currency of nobody":            {func(o *Order) { o.Currency = "XYZ" }, "/currency"},
		"currency without minor units":  {func(o *Order) { o.Currency = "JPY" }, ""},
		"no lines":                      {func(o *Order) { o.Lines = nil }, "/lines"},
		"no issue date":                 {func(o *Order) { o.IssueDate = "" }, "/issue_date"},
		"no such day":                   {func(o *Order) { o.IssueDate = "2026-02-30" }, "/issue_date"},
		"due date in another form":      {func(o *Order) { o.DueDate = "2.3.2026" }, "/due_date"},
		"bad decimals":                  {func(o *Order) { o.OrderTotal, o.ExpectedGross = &bad, &bad }, "/order_total /expected_gross"},
		"bad line":                      {func(o *Order) { o.Lines = append(o.Lines, erpapi.Line{Discount: &bad, VATRate: &bad}) }, "/lines/1/quantity /lines/1/unit_price /lines/1/discount /lines/1/vat_rate /lines/1/vat_category"},
		"unknown role":                  {func(o *Order) { o.Role = "invoice" }, "/role"},
		"second final":                  {func(o *Order) { o.Sequence = &two }, "/sequence"},
		"second part":                   {func(o *Order) { o.Role, o.Sequence = erpapi.RolePartial, &two }, ""},
		"part 0":                        {func(o *Order) { o.Role, o.Sequence = erpapi.RolePartial, &zero }, "/sequence"},
		"credit note of nothing":        {func(o *Order) { o.Role = erpapi.RoleCreditNote }, "/corrects"},
		"final that corrects":           {func(o *Order) { o.Corrects = "INV-1" }, "/corrects"},
		"credit note":                   {func(o *Order) { o.Role, o.Corrects = erpapi.RoleCreditNote, "INV-1" }, ""},
		"NUL in a text":                 {func(o *Order) { o.Lines[0].Description = "a\x00" }, "/lines/0/description"},
		"text that is not UTF-8":        {func(o *Order) { o.Note = "\xff" }, ""},
		"more than the ERP takes":       {func(o *Order) { o.Note = strings.Repeat("n", 1<<20) }, ""},
		"lines and invoices":            {func(o *Order) { o.Invoices = []OrderInvoice{{Lines: o.Lines}} }, "/invoices"},
		"no invoices":                   {func(o *Order) { o.Invoices, o.Lines = []OrderInvoice{}, nil }, "/invoices"},
		"sequence beside invoices":      {func(o *Order) { listed(OrderInvoice{})(o); o.Sequence = &two }, "/sequence"},
		"gross beside invoices":         {func(o *Order) { listed(OrderInvoice{})(o); o.ExpectedGross = dec("1") }, "/expected_gross"},
		"claim twice":                   {listed(OrderInvoice{}, OrderInvoice{Role: erpapi.RoleFinal}), "/invoices/1"},
		"part twice, one by default":    {listed(OrderInvoice{Role: erpapi.RolePartial}, OrderInvoice{Role: erpapi.RolePartial, Sequence: new(int64(1))}), "/invoices/1"},
		"bad line of an invoice":        {listed(OrderInvoice{Role: erpapi.RoleAdvance}, OrderInvoice{Lines: []erpapi.Line{{Quantity: dec("1"), UnitPrice: &bad, VATCategory: "S"}}}), "/invoices/1/lines/0/unit_price"},
		"NUL in a text of an invoice":   {listed(OrderInvoice{Note: "\x00"}), "/invoices/0/note"},
		"cancelled, whatever else":      {func(o *Order) { *o = Order{Source: "s", Order: "o", Status: OrderCancelled, Role: "x"} }, ""},
		"cancelled in no currency":      {func(o *Order) { o.Currency, o.Status = "euros", OrderCancelled }, ""},
		"cancelled, without its source": {func(o *Order) { *o = Order{Order: "o", Status: OrderCancelled} }, "/source"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := anOrder("SO-1", "10.00")
			c.change(&o)
			in := newIncoming(o)
			var pointers []string
			for _, e := range in.errors {
				pointers = append(pointers, e.Pointer)
			}
			got := strings.Join(pointers, " ")
			if name == "text that is not UTF-8" || name == "more than the ERP takes" {
				if len(in.errors) != 1 || got != "" { // the invoice as a whole
					t.Errorf("errors are %v", in.errors)
				}
				return
			}
			if got != c.want || (len(in.errors) == 0) != (len(in.content) > 0) {
				t.Errorf("pointers are %q, want %q", got, c.want)
			}
		})
	}
}

func TestAnOrderThatIsWrongEverywhereIsToldToABound(t *testing.T) {
	t.Parallel()
	o := anOrder("SO-1", "10.00")
	o.Lines = make([]erpapi.Line, 10_000)
	if got := len(newIncoming(o).errors); got != maxFindings {
		t.Errorf("%d errors are told", got)
	}
}

func TestOrdersThatMeanTheSameHaveTheSameContent(t *testing.T) {
	t.Parallel()
	one := int64(1)
	base := anOrder("caf\u00e9-1", "10.00")
	base.Note, base.Metadata = "Caf\u00e9", map[string]string{"a": "1", "b": "2"}
	want := newIncoming(base)
	for name, change := range map[string]func(*Order){
		"blanks":              func(o *Order) { o.Order, o.Source = "\u00a0"+o.Order+" ", o.Source+"\t" },
		"decomposed text":     func(o *Order) { o.Order, o.Note = "cafe\u0301-1", "Cafe\u0301" },
		"zeros":               func(o *Order) { o.Lines[0].Quantity, o.Lines[0].Discount = dec("2.000"), dec("0.00") },
		"defaults":            func(o *Order) { o.Role, o.Sequence, o.Status = erpapi.RoleFinal, &one, OrderConfirmed },
		"list of one":         func(o *Order) { o.Invoices, o.Lines = []OrderInvoice{{Lines: o.Lines}}, nil },
		"message and version": func(o *Order) { o.MessageID, o.Version = "m-1", &one },
		"dates in the invoice": func(o *Order) {
			o.Invoices, o.Lines = []OrderInvoice{{Lines: o.Lines, IssueDate: o.IssueDate, Note: o.Note}}, nil
			o.IssueDate, o.Note = "", ""
		},
	} {
		o := base
		o.Lines = []erpapi.Line{aLine("10.00")}
		change(&o)
		got := newIncoming(o)
		if diff := cmp.Diff(string(want.content), string(got.content)); diff != "" || got.contentHash != want.contentHash {
			t.Errorf("%s: %s %v", name, diff, got.errors)
		}
		if got.wants[0].hash != want.wants[0].hash {
			t.Errorf("%s: the request is another one", name)
		}
	}
}

func TestInvoicesOfAnOrderTakeFromItWhatTheyLeaveOut(t *testing.T) {
	t.Parallel()
	o := anOrder("SO-1", "10.00")
	o.DueDate, o.Note, o.Corrects, o.OrderTotal = "2026-04-01", "note", "INV-1", dec("100")
	o.Invoices = []OrderInvoice{
		{Lines: o.Lines, DueDate: "2026-05-01"},
		{Role: erpapi.RoleCreditNote, Lines: o.Lines, IssueDate: "2026-03-05"},
	}
	o.Lines = nil
	in := newIncoming(o)
	if len(in.wants) != 2 {
		t.Fatalf("errors are %v", in.errors)
	}
	final, credit := decoded(t, in.wants[0].request), decoded(t, in.wants[1].request)
	if final.IssueDate != o.IssueDate || final.DueDate != "2026-05-01" || final.Note != "note" || final.Corrects != "" || final.OrderTotal.String() != "100" {
		t.Errorf("final is %+v", final)
	}
	if credit.IssueDate != "2026-03-05" || credit.DueDate != "2026-04-01" || credit.Corrects != "INV-1" || credit.Customer != o.Customer {
		t.Errorf("credit note is %+v", credit)
	}
}

func decoded(t *testing.T, request []byte) *erpapi.InvoiceRequest {
	t.Helper()
	r, err := erpapi.DecodeInvoiceRequest(request)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

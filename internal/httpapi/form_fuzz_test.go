package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
	"invoicebridge/web"
)

// Whatever is sent as a form, it is refused as the sender's mistake or is text within the limit, and of the body alone. What it says
// as an order has each of its lines, and each mistake finds its field or is told beside the form; the page shows what was typed.
func FuzzForm(f *testing.F) {
	const form = "application/x-www-form-urlencoded"
	for _, body := range []string{
		"", "source=s&order=SO-1&role=final&currency=EUR&issue_date=2026-03-02&customer_name=A&line_1_sku=P&line_1_quantity=2&line_1_unit_price=10.00&line_1_vat_rate=19&line_1_vat_category=S",
		"lines=61&line_60_sku=x&line_3_quantity=1e5&more=1", "sequence=1.5&lines=-1", "sequence=9223372036854775808", "a=%zz", "a=%00", "a=%ff", "%ff=a", "a;b=c", "&&=&", "a=1&a=2",
		"form=json&json=%7B%22order%22%3A%22%c0%22%7D", "line_1_discount=-0.0&line_2_discount=%EF%BC%91&expected_gross=1,5", "reason=" + strings.Repeat("x", 600),
	} {
		f.Add(form, "reason=address", []byte(body))
	}
	f.Add("multipart/form-data; boundary=x", "", []byte("--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n--x--\r\n"))
	f.Add("application/json", "a=b", []byte(`{"a":"b"}`))
	f.Add("application/x-www-form-urlencoded; charset=utf-7", "a=b", []byte("a=+AAA-"))
	f.Add(";", "%zz", []byte("a=b"))
	pages, err := web.New()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, contentType, rawQuery string, body []byte) {
		const limit = 512
		r := httptest.NewRequest(http.MethodPost, "/orders/new", strings.NewReader(string(body)))
		r.URL.RawQuery = rawQuery
		r.Header = http.Header{"Content-Type": {contentType}}
		values, err := readForm(echo.New().NewContext(r, httptest.NewRecorder()), limit)
		if err != nil {
			refusedAsTheCallers(t, err)
			return
		}
		size := 0
		for name, given := range values {
			for _, value := range given {
				size += len(name) + len(value)
				if !utf8.ValidString(name) || !utf8.ValidString(value) || strings.ContainsRune(name+value, 0) {
					t.Fatalf("%q gives %q as %q", body, name, value)
				}
			}
		}
		if size > limit || size > len(body) {
			t.Fatalf("%q (address: %q) gives %q", body, rawQuery, values)
		}
		written := readByHand(values)
		order, wrong := written.order()
		if written.lines < 1 || written.lines > maxLines || len(order.Lines) != len(written.places) {
			t.Fatalf("%q: %d lines are shown, %d are written, the order has %d", body, written.lines, len(written.places), len(order.Lines))
		}
		var errs []problem.FieldError
		if wrong != nil {
			refusedAsTheCallers(t, wrong)
			errs = wrong.Errors
		} else if text, err := erpapi.CanonicalJSON(&order); err != nil {
			t.Fatalf("%q can't be written as an order: %v", body, err)
		} else {
			var again crm.Order
			if err := erpapi.DecodeStrict(text, &again); err != nil || len(again.Lines) != len(order.Lines) || again.Order != order.Order {
				t.Fatalf("%q is the order %s, which can't be read: %v", body, text, err)
			}
		}
		for i := range written.places {
			errs = append(errs, problem.FieldError{Pointer: fmt.Sprintf("/lines/%d/quantity", i), Detail: "is not one"})
		}
		page := written.page(web.Layout{Title: "Invoice by hand"}, errs)
		told := len(page.Wrong)
		for _, fields := range append([][]web.Field{page.Fields, page.Totals}, linesOf(page)...) {
			for _, field := range fields {
				told += strings.Count(field.Error, ".")
				if field.Value != values.Get(field.Name) {
					t.Fatalf("%q: %s shows %q", body, field.Name, field.Value)
				}
			}
		}
		if told != len(errs) || len(page.Wrong) > 0 {
			t.Fatalf("%q: of %d mistakes %d are told, beside their fields %q", body, len(errs), told, page.Wrong)
		}
		var shown strings.Builder
		if err := pages.Write(&shown, page); err != nil {
			t.Fatalf("%q can't be shown: %v", body, err)
		}
		if !utf8.ValidString(shown.String()) {
			t.Fatalf("%q is shown as no text", body)
		}
	})
}

func linesOf(page web.CRMNewOrder) (fields [][]web.Field) {
	for _, line := range page.Lines {
		fields = append(fields, line.Fields)
	}
	return fields
}

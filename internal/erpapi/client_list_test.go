package erpapi_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/erpapi"
)

func list(t *testing.T, body string, q erpapi.InvoiceQuery) erpapi.InvoiceListing {
	t.Helper()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, body) })
	return newClient(t, erpapi.ClientConfig{BaseURL: s.URL}).ListInvoices(t.Context(), testToken, q)
}

func TestAListIsAskedForByItsFilters(t *testing.T) {
	t.Parallel()
	var got string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		got = r.Method + " " + r.URL.RequestURI() + " " + r.Header.Get("Authorization")
		fmt.Fprint(w, `{"items":[],"next_cursor":null}`)
	})
	at := time.Date(2026, 3, 2, 10, 0, 0, 1000, time.FixedZone("", 3600))
	listing := newClient(t, erpapi.ClientConfig{BaseURL: s.URL}).ListInvoices(t.Context(), testToken, erpapi.InvoiceQuery{
		Source: "a&b", Order: "SO 1", Role: erpapi.RoleFinal, Key: "k", Number: "N", CreatedFrom: at, CreatedTo: at, Limit: 7, Cursor: "c",
	})
	want := "GET /v1/invoices?created_from=2026-03-02T09%3A00%3A00.000001Z&created_to=2026-03-02T09%3A00%3A00.000001Z" +
		"&cursor=c&key=k&limit=7&number=N&order=SO+1&role=final&source=a%26b Bearer " + testToken
	if got != want {
		t.Errorf("arrived:\n%s\nwant\n%s", got, want)
	}
	if !listing.Read || len(listing.Items) != 0 || listing.Next != "" {
		t.Errorf("listing is %+v", listing)
	}
}

func TestAnItemThatIsNoInvoiceLeavesTheOthersReadable(t *testing.T) {
	t.Parallel()
	listing := list(t, `{"items":[{"number":"A"},{"sequence":"x"},null,{"number":"B","created_at":"x"},{"number":"C"}],"next_cursor":"n"}`, erpapi.InvoiceQuery{})
	var numbers []string
	for _, item := range listing.Items {
		if item.Invoice != nil {
			numbers = append(numbers, item.Invoice.Number)
		} else if item.Err == nil {
			t.Errorf("no error for %s", item.Document)
		}
	}
	if diff := cmp.Diff([]string{"A", "", "C"}, numbers); diff != "" || !listing.Read || listing.Next != "n" || len(listing.Items) != 5 {
		t.Errorf("%s, read %v, next %q", diff, listing.Read, listing.Next)
	}
}

func TestAPageBrokenByItsOneItemTellsTheNextCursor(t *testing.T) {
	t.Parallel()
	const broken = "{\"items\":[\x00{],\"next_cursor\":\"n\"}"
	if listing := list(t, broken, erpapi.InvoiceQuery{Limit: 1}); !listing.Read || listing.Next != "n" || len(listing.Items) != 1 || listing.Items[0].Err == nil {
		t.Errorf("listing is %+v", listing)
	}
	if listing := list(t, broken, erpapi.InvoiceQuery{Limit: 2}); listing.Read {
		t.Errorf("listing of more than one is %+v", listing)
	}
	for _, body := range []string{"", "null", "[]", "{}", `{"items":null,"next_cursor":null}`, "<html>", `{"items":[`, `{"items":[{],"next_cursor":`} {
		if listing := list(t, body, erpapi.InvoiceQuery{Limit: 1}); listing.Read {
			t.Errorf("%q is read as %+v", body, listing)
		}
	}
}

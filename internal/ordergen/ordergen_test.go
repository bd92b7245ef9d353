package ordergen_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/ordergen"
)

func generator(t *testing.T, o ordergen.Options) *ordergen.Generator {
	t.Helper()
	o.Start = time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	g, err := ordergen.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func text(t *testing.T, o crm.Order) string {
	t.Helper()
	b, err := json.Marshal(&o, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestTheSameSeedAndNumberGiveTheSameOrder(t *testing.T) {
	t.Parallel()
	a, b, other := generator(t, ordergen.Options{Seed: 7}), generator(t, ordergen.Options{Seed: 7}), generator(t, ordergen.Options{Seed: 8, Prefix: "G7-"})
	n, differ := 0, 0
	for o := range a.Orders(200) {
		n++
		if diff := cmp.Diff(text(t, o), text(t, b.Order(n))); diff != "" {
			t.Fatalf("order %d (-one +other):\n%s", n, diff)
		}
		if text(t, o) != text(t, other.Order(n)) {
			differ++
		}
	}
	if n != 200 || differ < 190 {
		t.Fatalf("%d orders, %d differ under another seed", n, differ)
	}
}

func TestACRMMixHasEverythingTheERPKnowsButCorrections(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for o := range generator(t, ordergen.Options{Seed: 1}).Orders(1000) {
		seen["currency "+o.Currency]++
		invoices := o.Invoices
		if len(invoices) == 0 {
			invoices = []crm.OrderInvoice{{Role: o.Role, Lines: o.Lines}}
		}
		for _, inv := range invoices {
			seen["role "+string(inv.Role)]++
			for _, l := range inv.Lines {
				seen["category "+l.VATCategory]++
				if l.Discount != nil {
					seen["discount"]++
				}
				if strings.Contains(l.Quantity.String(), ".") {
					seen["fraction"]++
				}
			}
		}
	}
	for _, want := range []string{
		"currency EUR", "currency USD", "currency JPY", "currency KWD", "currency CHF", "currency SEK", "role advance", "role partial",
		"role final", "category S", "category Z", "category E", "category AE", "category K", "category G", "category O", "discount", "fraction",
	} {
		if seen[want] == 0 {
			t.Errorf("no %s in 1000 orders", want)
		}
	}
}

func TestNobodyInTheOrdersIsReal(t *testing.T) {
	t.Parallel()
	for _, mix := range []ordergen.Mix{ordergen.MixShop, ordergen.MixCRM} {
		for o := range generator(t, ordergen.Options{Seed: 3, Mix: mix}).Orders(300) {
			if !strings.HasSuffix(o.Customer.Email, "@customer.example") || o.Customer.VATID != "" && !strings.Contains(o.Customer.VATID, "000000") {
				t.Fatalf("customer %+v", o.Customer)
			}
		}
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	if _, err := ordergen.New(ordergen.Options{}); err == nil {
		t.Error("no start date, no error")
	}
	if _, err := ordergen.New(ordergen.Options{Start: time.Unix(0, 0), Mix: "x"}); err == nil {
		t.Error("unknown mix, no error")
	}
}

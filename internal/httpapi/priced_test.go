package httpapi

import (
	"testing"

	"github.com/go-json-experiment/json"

	"invoicebridge/internal/erpapi"
)

func TestPriceHasTheCurrencysDecimalsAtLeastAndAllThatWereSent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ sent, net, want string }{
		{`"10"`, "20.00", "10.00"}, {`"1234.5"`, "1234.50", "1234.50"}, {`0.0125`, "20.00", "0.0125"}, {`"1200"`, "3600", "1200"},
		{`"7.5"`, "7.500", "7.500"}, {`"9007199254740993.1"`, "1.00", "9007199254740993.10"}, {`"-3"`, "1.00", "-3.00"}, {`"1e2"`, "1.00", "100.00"},
	} {
		var d erpapi.Decimal
		if err := json.Unmarshal([]byte(c.sent), &d); err != nil {
			t.Fatal(err)
		}
		if got := priced(&d, c.net).Amount; d.Valid() && got != c.want {
			t.Errorf("%s beside %s is shown as %q, want %q", c.sent, c.net, got, c.want)
		}
	}
	if got := priced(nil, "1.00").Amount; got != "" {
		t.Errorf("no discount is shown as %q", got)
	}
}

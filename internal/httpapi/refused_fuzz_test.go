package httpapi

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/problem"
)

// Whose refusal it is, is read of a body that was refused: it is what the order says of itself, wherever it stands in an array, and
// nothing where there is no such order.
func FuzzWhichOrder(f *testing.F) {
	for _, seed := range []string{
		``, `{`, `[`, `null`, `"x"`, `[]`, `[1]`, `{"source":"s","order":"SO-1","x":1}`, `[{"source":"s","order":"1"},{"source":"s","order":2},{"order":"3"}]`,
		`{"source":"a","source":"b","order":"1"}`, `[{"source":"s","order":"1","order":"2"}]`, "{\"source\":\"\xff\",\"order\":\"\\ud800\"}", `{"source":"\u0000","order":null}`,
		`{"source":{"source":"x"},"order":["y"]}`, `[[{"source":"s"}]]`, ` [ { "source" : "s" , "order":"e\u0301" , "a/b~":{} } ] `, `{"source":"s","order":"1"}x`,
	} {
		f.Add(seed, uint8(1))
	}
	f.Fuzz(func(t *testing.T, text string, place uint8) {
		body := []byte(text)
		p, refused := refusalOf(t, body)
		if p == nil {
			return
		}
		source, order := whichOrder(body, p)
		if before := []byte(text); !bytes.Equal(before, body) {
			t.Fatalf("reading %q leaves %q", before, body)
		}
		if (source != "" || order != "") && jsontext.Value(body).Kind() != '{' && jsontext.Value(body).Kind() != '[' {
			t.Fatalf("%q is of %q %q", body, source, order)
		}
		if jsontext.Value(refused).Kind() == '{' {
			if s, o := whichOrder(refused, p); s != source || o != order {
				t.Fatalf("%q is of %q %q, but the refused one is of %q %q", body, source, order, s, o)
			}
		} else if refused != nil && (source != "" || order != "") {
			t.Fatalf("%q is of %q %q, and the refused one is no order", body, source, order)
		}
		// The same order, among others.
		alone := body
		if refused != nil {
			alone = refused
		}
		if jsontext.Value(alone).Kind() != '{' {
			return
		}
		source, order = whichOrder(alone, p)
		array := "[" + string(bytes.Repeat([]byte(`{"source":"other","order":"other"},`), int(place))) + string(alone) + `,{"source":"other","order":"other"}]`
		at := problem.New(problem.InvalidOrder, "")
		at.Errors = []problem.FieldError{{Pointer: fmt.Sprintf("/%d/order", place)}}
		if s, o := whichOrder([]byte(array), at); s != source || o != order {
			t.Fatalf("%q is of %q %q, in an array of %q %q", alone, source, order, s, o)
		}
		var read crm.Order
		if erpapi.DecodeStrict(alone, &read) == nil && (read.Source != source || read.Order != order) {
			t.Fatalf("%q is of %q %q, read as %q %q", alone, source, order, read.Source, read.Order)
		}
	})
}

// refusalOf is why a body is refused before its orders are looked at, and the first refused order of an array that can be taken
// apart; no problem if all can be read.
func refusalOf(t *testing.T, body []byte) (p *problem.Problem, refused []byte) {
	t.Helper()
	var err error
	if jsontext.Value(body).Kind() != '[' {
		var order crm.Order
		err = erpapi.DecodeStrict(body, &order)
	} else if items, splitErr := splitOrders(body); splitErr != nil {
		err = splitErr
	} else if batch := decodeOrders(items); batch.malformed() != nil {
		for i := range items {
			if _, wrong := batch.refused[i]; wrong {
				refused = items[i]
				break
			}
		}
		err = batch.malformed()
	}
	if err == nil {
		return nil, nil
	}
	refusedAsTheCallers(t, err)
	return problem.As(err), refused
}

package erpapi

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"invoicebridge/internal/problem"
)

func TestItemsOfABatchAreCutOutByteForByte(t *testing.T) {
	t.Parallel()
	const invoice = "{\"note\" :\n\"\\u0041\xff\", \"note\":1e1 }"
	body := []byte(` { "invoices" : [ {"idempotency_key":"k\u002d1", "invoice": ` + invoice + ` } , {"invoice":null} ] } `)
	items, err := CutBatch(body, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(items) != 2 || items[0].Err != nil || *items[0].Key != "k-1" || string(items[0].Invoice) != invoice {
		t.Errorf("the first of %d is %q: %+v", len(items), items[0].Invoice, items[0])
	}
	if items[1].Err != nil || items[1].Key != nil || string(items[1].Invoice) != "null" {
		t.Errorf("the second is %+v", items[1])
	}
	if _, err := CutBatch(body, 1); !problem.Is(err, problem.ContentTooLarge) {
		t.Errorf("one more than may be: %v", err)
	}
}

// Whatever the body is, it is refused as a whole or cut into items that are parts of it: none is lost, none changes its place.
func FuzzCutBatch(f *testing.F) {
	for i, seed := range requestSeeds {
		f.Add(fmt.Appendf(nil, `{"invoices":[{"idempotency_key":"k-%d","invoice":%s}]}`, i, seed))
	}
	for _, seed := range []string{
		``, ` `, `{}`, `[]`, `{"invoices":[]}`, `{"invoices":[1,{},null,{"invoice":{},"invoice":{}}]} `, `{"invoices":[{"invoice":{}}],"invoices":[]}`,
		`{"invoices":[}`, `{"invoices":[{"idempotency_key":"\ud800","invoice":[[[`, "{\"invoices\":[{\"idempotency_key\":\"\xff\",\"invoice\":\"\xff\"}]}x",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		items, err := CutBatch(body, 5)
		if err != nil {
			if p := problem.As(err); p == nil || p.Detail == "" || len(items) > 0 {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		var whole struct {
			Invoices []jsontext.Value `json:"invoices"`
		}
		tolerant := json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		if err := json.Unmarshal(body, &whole, tolerant); err != nil || len(whole.Invoices) != len(items) || len(items) == 0 || len(items) > 5 {
			t.Fatalf("%q is cut into %d items, not %d: %v", body, len(items), len(whole.Invoices), err)
		}
		for i, item := range items {
			if item.Err != nil {
				if p := problem.As(item.Err); p == nil || p.Type != problem.MalformedRequest || item.Key != nil || item.Invoice != nil {
					t.Fatalf("%q: item %d is %+v", body, i, item)
				}
				continue
			}
			if !bytes.Contains(whole.Invoices[i], item.Invoice) || item.Invoice != nil && !jsontext.Value(item.Invoice).IsValid(tolerant) {
				t.Fatalf("%q: item %d has %q", body, i, item.Invoice)
			}
			if item.Key != nil && !strings.Contains(string(whole.Invoices[i]), `"`) {
				t.Fatalf("%q: item %d has the key %q", body, i, *item.Key)
			}
		}
	})
}

package orderfile_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/go-json-experiment/json"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/orderfile"
)

type fataler interface {
	Helper()
	Fatal(...any)
}

func orderText(t fataler, o crm.Order) string {
	t.Helper()
	b, err := json.Marshal(&o, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// FuzzCSV: whatever a file holds, each row is in one order or refused, and what was read can be written and read
// again as the same.
func FuzzCSV(f *testing.F) {
	f.Add("order;customer;amount\r\nA-1;Test;10,00\r\n", byte(';'), byte(','))
	f.Add(bom+"\"order\",\"customer\",\"amount\"\n\"A-1\",\"a\nb\",\"1.00\"\n", byte(','), byte('.'))
	f.Add("sep=;\norder;customer;amount\nA-1;'=1;-0,01\nA-1;;2\n;x;3\n", byte(';'), byte(','))
	f.Add("order,customer,amount\n1E+05,T,1\n=\"00123\",T,1\n-,T,1\n", byte(','), byte('.'))
	f.Add("order,customer,amount,role,line,metadata.k\nA,T,1,partial,1,v\nA,T,1,partial,1,v\nA,T,2,partial,1,v\n", byte(','), byte('.'))
	f.Fuzz(func(t *testing.T, text string, delimiter, mark byte) {
		o := shop(rune(delimiter), rune(mark))
		o.MaxRowBytes = 4096
		file, err := orderfile.Read(bytes.NewReader([]byte(text)), o)
		if err != nil {
			var refused *orderfile.FileError
			if errors.As(err, &refused) && refused.Reason == "" {
				t.Fatal("refused without a reason")
			}
			return
		}
		everyRowOnce(t, file)
		var b bytes.Buffer
		out := orderfile.CSVOptions{Delimiter: ';', Decimal: ','}
		if err := orderfile.WriteCSV(&b, ordersOf(file), out); err != nil {
			t.Fatal(err)
		}
		again, err := orderfile.Read(&b, orderfile.Options{Format: orderfile.CSV, CSV: out})
		if err != nil {
			t.Fatalf("what was written can't be read: %v", err)
		}
		if len(again.Entries) != len(file.Entries) {
			t.Fatalf("%d orders came back of %d: %v", len(again.Entries), len(file.Entries), again.Rows)
		}
		for i := range file.Entries {
			if want, got := orderText(t, file.Entries[i].Order), orderText(t, again.Entries[i].Order); want != got {
				t.Fatalf("\n%s came back as\n%s", want, got)
			}
		}
	})
}

// FuzzJSONLines: whatever a file holds, each line is one order, refused or blank.
func FuzzJSONLines(f *testing.F) {
	f.Add(`{"source":"s","order":"A-1","lines":[{"quantity":"1","unit_price":1e2}]}` + "\n\n" + `{"order":`)
	f.Add("{}\r\n\xEF\xBB\xBF{}")
	f.Add(`{"order":1}` + "\n[]\nnull\n")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := orderfile.Read(bytes.NewReader([]byte(text)), orderfile.Options{Format: orderfile.JSONLines, MaxRowBytes: 4096})
		if err == nil {
			everyRowOnce(t, file)
		}
	})
}

func everyRowOnce(t *testing.T, file *orderfile.File) {
	t.Helper()
	seen := make([]int, len(file.Rows))
	for _, e := range file.Entries {
		for _, index := range e.Rows {
			seen[index]++
			if file.Rows[index].Outcome != "" {
				t.Fatalf("row %+v is of an order and has an outcome", file.Rows[index])
			}
		}
	}
	for i, r := range file.Rows {
		if r.Outcome == orderfile.Refused {
			seen[i]++
			if r.Reason == "" {
				t.Fatalf("row %+v is refused without a reason", r)
			}
		}
		if seen[i] != 1 {
			t.Fatalf("row %+v is told %d times", r, seen[i])
		}
	}
}

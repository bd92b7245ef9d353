// Package examples holds order files as a shop and a CRM might send them. The demo carries them over, tests read
// them. README.md says what is in them; `go generate ./examples` writes them again.
package examples

import (
	"embed"

	"invoicebridge/internal/orderfile"
)

//go:generate go run ./generate .

//go:embed orders-shop.csv orders-crm.jsonl orders-repeat.csv
var files embed.FS

// File is an example and how it is to be read.
type File struct {
	Name    string
	Data    []byte
	Options orderfile.Options
}

// Files are the examples of the demo in the order in which they are to be imported. Every order in them can be
// invoiced. orders-repeat.csv says again, in another dialect, what orders-shop.csv said, and a few new orders.
func Files() ([]File, error) {
	semicolons := orderfile.Options{Format: orderfile.CSV, CSV: orderfile.CSVOptions{Delimiter: ';', Decimal: ','}}
	all := []File{
		{Name: "orders-shop.csv", Options: semicolons},
		{Name: "orders-crm.jsonl", Options: orderfile.Options{Format: orderfile.JSONLines}},
		{Name: "orders-repeat.csv", Options: orderfile.Options{Format: orderfile.CSV}},
	}
	for i := range all {
		data, err := files.ReadFile(all[i].Name)
		if err != nil {
			return nil, err
		}
		all[i].Data = data
	}
	return all, nil
}

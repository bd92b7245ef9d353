// Command generate writes the example order files into a folder. It always writes the same bytes.
package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"invoicebridge/internal/crm"
	"invoicebridge/internal/orderfile"
	"invoicebridge/internal/ordergen"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "generate: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("say into which folder")
	}
	files, err := generate()
	if err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(args[0], name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// Sizes of the examples.
const (
	shopOrders   = 150
	repeatedFrom = 91 // the repeat has the shop's orders from here on ...
	repeatedTo   = 170
	crmOrders    = 250
	crmRepeats   = 10 // messages that come twice
)

// generate gives the files by name.
func generate() (map[string][]byte, error) {
	start := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC)
	shop, err := ordergen.New(ordergen.Options{Seed: 11, Mix: ordergen.MixShop, Source: "shop-eu", Prefix: "S-", Start: start, PerDay: 10})
	if err != nil {
		return nil, err
	}
	company, err := ordergen.New(ordergen.Options{Seed: 12, Mix: ordergen.MixCRM, Source: "crm-1", Prefix: "SO-", Start: start, PerDay: 12})
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	if files["orders-shop.csv"], err = shopFile(orders(shop, 1, shopOrders)); err != nil {
		return nil, err
	}
	if files["orders-crm.jsonl"], err = crmFile(orders(company, 1, crmOrders)); err != nil {
		return nil, err
	}
	var repeat bytes.Buffer
	err = orderfile.WriteCSV(&repeat, orders(shop, repeatedFrom, repeatedTo), orderfile.CSVOptions{})
	files["orders-repeat.csv"] = repeat.Bytes()
	return files, err
}

func orders(g *ordergen.Generator, from, to int) []crm.Order {
	var some []crm.Order
	for n := from; n <= to; n++ {
		some = append(some, g.Order(n))
	}
	return some
}

// shopFile is as a spreadsheet leaves it: semicolons, decimal commas, a byte order mark, CR LF, and untidy.
func shopFile(orders []crm.Order) ([]byte, error) {
	header, rows := orderfile.Table(orders, ',')
	var b bytes.Buffer
	w := csv.NewWriter(&b)
	w.Comma = ';'
	if err := w.WriteAll(append([][]string{header}, untidy(header, rows)...)); err != nil {
		return nil, err
	}
	text := bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte("\r\n"))
	return append([]byte("\uFEFF"), text...), nil
}

// crmFile has some messages twice, as a queue that delivers at least once leaves them.
func crmFile(orders []crm.Order) ([]byte, error) {
	var b bytes.Buffer
	if err := orderfile.WriteJSONLines(&b, orders); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	err := orderfile.WriteJSONLines(&b, orders[len(orders)-crmRepeats:])
	return b.Bytes(), err
}

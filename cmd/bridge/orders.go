package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"invoicebridge/examples"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/orderfile"
)

// refusalsShown is how many refused rows of a file are told.
const refusalsShown = 10

// orderFile is a file of orders and how it is read.
type orderFile struct {
	name    string
	options orderfile.Options
	open    func() (io.ReadCloser, error)
}

// importOrders hands the orders of all files to the CRM side, as `crm-worker import` does. A file with a refused row
// is an error: what the demo counts later would not be what the file asked for.
func (d *demo) importOrders(ctx context.Context) error {
	files, err := d.settings.orderFiles()
	if err != nil {
		return err
	}
	inserter, err := jobs.NewInserter(d.crm, d.log)
	if err != nil {
		return err
	}
	service := crm.NewService(d.crm, inserter, crm.Options{Logger: d.log})
	for _, f := range files {
		if err := d.importFile(ctx, service, f); err != nil {
			return err
		}
	}
	return nil
}

func (d *demo) importFile(ctx context.Context, service *crm.Service, f orderFile) error {
	r, err := f.open()
	if err != nil {
		return fmt.Errorf("open orders: %w", err)
	}
	defer r.Close()
	report, err := orderfile.Import(ctx, service, r, orderfile.ImportOptions{Options: f.options, Name: f.name, Tenant: demoTenant})
	if err != nil {
		return err
	}
	var text strings.Builder
	if err := report.WriteText(&text, refusalsShown); err != nil {
		return err
	}
	if !report.Good() {
		return errors.New(strings.TrimSpace(text.String()))
	}
	_, err = io.WriteString(d.out, text.String())
	return err
}

// orderFiles are the files of --orders, else the examples, which are part of the program.
func (s settings) orderFiles() ([]orderFile, error) {
	var files []orderFile
	for _, name := range s.Orders {
		format, err := orderfile.FormatOf(name)
		if err != nil {
			return nil, fmt.Errorf("--orders: %w", err)
		}
		files = append(files, orderFile{name: name, options: orderfile.Options{Format: format, CSV: s.csv()}, open: func() (io.ReadCloser, error) {
			return os.Open(name)
		}})
	}
	if len(files) > 0 {
		return files, nil
	}
	all, err := examples.Files()
	if err != nil {
		return nil, fmt.Errorf("read the examples: %w", err)
	}
	for _, f := range all {
		files = append(files, orderFile{name: f.Name, options: f.Options, open: func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(f.Data)), nil
		}})
	}
	return files, nil
}

func (s settings) csv() orderfile.CSVOptions {
	return orderfile.CSVOptions{Delimiter: []rune(s.Delimiter)[0], Decimal: []rune(s.Decimal)[0]}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/app"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/orderfile"
)

// mostRefusals is how many refused rows of a file are told as text; the report has all.
const mostRefusals = 50

// ImportCmd is the command "import".
type ImportCmd struct {
	DatabaseURL string            `name:"database-url" env:"${database_env}" placeholder:"URL" help:"Address of the CRM side's database. Not needed with --dry-run."`
	Tenant      string            `help:"Id of the tenant whose orders these are. Not needed with --dry-run."`
	Source      string            `help:"The source of orders that name none."`
	Format      string            `enum:"csv,jsonl,auto" default:"auto" help:"Format of the files: csv or jsonl; auto goes by the extension."`
	Delimiter   string            `default:"," help:"Delimiter of CSV files: one character, or tab."`
	Decimal     string            `default:"." help:"Decimal mark of CSV files: . or ,"`
	Column      map[string]string `mapsep:"none" placeholder:"FILE=OURS" help:"A column of the CSV files that has a name of its own, such as amount=unit_price; any number of times."`
	Set         map[string]string `mapsep:"none" placeholder:"COLUMN=VALUE" help:"The value of a column that the CSV files do not have, such as currency=EUR; any number of times."`
	KeepGood    bool              `help:"Take the good orders of a file that has bad ones. Without it one bad row keeps the whole file out."`
	DryRun      bool              `help:"Read and check the files; store nothing."`
	Actor       string            `default:"${actor}" help:"Who does this, for the list of imports."`
	Report      string            `placeholder:"FILE" help:"Write what became of every row as JSON; - is standard output."`
	Files       []string          `arg:"" name:"file" help:"Files of orders (.csv, .jsonl); - is standard input, then say --format."`
}

// Validate checks what kong cannot.
func (c *ImportCmd) Validate() error {
	var mistakes []error
	if !c.DryRun && c.DatabaseURL == "" {
		mistakes = append(mistakes, errors.New("--database-url (CRM_DATABASE_URL) is missing"))
	}
	if !c.DryRun && c.Tenant == "" {
		mistakes = append(mistakes, errors.New("--tenant is missing"))
	}
	if _, err := orderfile.ParseDialect(c.Delimiter, c.Decimal); err != nil {
		mistakes = append(mistakes, err)
	}
	stdin := 0
	for _, name := range c.Files {
		if _, err := c.formatOf(name); err != nil {
			mistakes = append(mistakes, err)
		}
		if name == "-" {
			stdin++
		}
	}
	if stdin > 1 {
		mistakes = append(mistakes, errors.New("standard input can be read once"))
	}
	return errors.Join(mistakes...)
}

// Run imports the files one after the other. It fails if anything of any file was not taken; what is stored, is told.
func (c *ImportCmd) Run(ctx context.Context, log *slog.Logger, env *app.AdminEnv) error {
	if c.DryRun {
		return c.run(ctx, importTarget{log: log}, os.Stdin, env.Stdout, os.Stderr)
	}
	return traced(ctx, env, log, func(ctx context.Context, option jobs.InserterOption) error {
		service, pool, err := openService(ctx, c.DatabaseURL, log, option)
		if err != nil {
			return err
		}
		defer pool.Close()
		target := importTarget{orders: service, book: crm.NewConsole(pool, crm.ConsoleOptions{Logger: log}), log: log}
		return c.run(ctx, target, os.Stdin, env.Stdout, os.Stderr)
	})
}

// openService gives a service that stores orders and jobs, for programs that end soon, and its database.
func openService(ctx context.Context, databaseURL string, log *slog.Logger, options ...jobs.InserterOption) (*crm.Service, *pgxpool.Pool, error) {
	pool, err := app.DatabaseFlag{DatabaseURL: databaseURL}.Open(ctx, app.CRMSchema())
	if err != nil {
		return nil, nil, err
	}
	inserter, err := jobs.NewInserter(pool, log, options...)
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return crm.NewService(pool, inserter, crm.Options{Logger: log}), pool, nil
}

func (c *ImportCmd) run(ctx context.Context, target importTarget, stdin io.Reader, stdout, stderr io.Writer) error {
	text := stdout
	if c.Report == "-" {
		text = stderr // standard output is the report's alone
	}
	var reports []*orderfile.Report
	var failed []error
	for _, name := range c.Files {
		report, err := c.importFile(ctx, target, name, stdin, stderr)
		if report == nil {
			report = &orderfile.Report{File: name, Refusal: "it could not be opened", Results: []orderfile.Row{}}
		}
		reports = append(reports, report)
		if writeErr := report.WriteText(text, mostRefusals); writeErr != nil {
			return writeErr
		}
		if err == nil && !report.Good() {
			err = fmt.Errorf("%s was not taken as it is", name)
		}
		if err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break
		}
	}
	if err := c.writeReports(reports, stdout); err != nil {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

func (c *ImportCmd) importFile(ctx context.Context, target importTarget, name string, stdin io.Reader, stderr io.Writer) (*orderfile.Report, error) {
	o, err := c.options(name)
	if err != nil {
		return nil, err
	}
	in := stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		in = file
	}
	bar := newBar(stderr, name, "orders")
	defer bar.end()
	o.Progress = bar.show
	record, hashed := target.begin(ctx, c, o), newHashedFile(in)
	report, err := orderfile.Import(ctx, target.orders, hashed, o)
	if name != "-" && ctx.Err() == nil {
		hashed.rest()
	}
	record.finish(ctx, hashed, report, err)
	return report, err
}

func (c *ImportCmd) options(name string) (orderfile.ImportOptions, error) {
	format, err := c.formatOf(name)
	if err != nil {
		return orderfile.ImportOptions{}, err
	}
	dialect, err := orderfile.ParseDialect(c.Delimiter, c.Decimal)
	if err != nil {
		return orderfile.ImportOptions{}, err
	}
	dialect.Rename, dialect.Constants = c.Column, c.Set
	return orderfile.ImportOptions{
		Options: orderfile.Options{Format: format, CSV: dialect, DefaultSource: c.Source},
		Name:    name, Tenant: c.Tenant, KeepGood: c.KeepGood, DryRun: c.DryRun,
	}, nil
}

func (c *ImportCmd) formatOf(name string) (orderfile.Format, error) {
	if c.Format != "auto" && c.Format != "" {
		return orderfile.Format(c.Format), nil
	}
	if name == "-" {
		return "", errors.New("standard input has no extension: say --format csv or --format jsonl")
	}
	return orderfile.FormatOf(name)
}

// writeReports writes one JSON array with a report for each file.
func (c *ImportCmd) writeReports(reports []*orderfile.Report, stdout io.Writer) error {
	if c.Report == "" {
		return nil
	}
	b, err := json.Marshal(reports, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	b = append(b, '\n')
	if c.Report == "-" {
		_, err = stdout.Write(b)
	} else {
		err = os.WriteFile(c.Report, b, 0o644)
	}
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

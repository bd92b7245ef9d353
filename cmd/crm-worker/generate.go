package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"invoicebridge/internal/app"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/orderfile"
	"invoicebridge/internal/ordergen"
)

// generateBatch is how many made-up orders are stored in one transaction at most.
const generateBatch = 500

// GenerateCmd is the command "generate".
type GenerateCmd struct {
	DatabaseURL string  `name:"database-url" env:"${database_env}" placeholder:"URL" help:"Address of the CRM side's database. Not needed with --out."`
	Tenant      string  `help:"Id of the tenant whose orders these are. Not needed with --out."`
	Count       int     `default:"100" help:"How many orders."`
	First       int     `default:"1" help:"Number of the first order; orders of the same seed and number are the same."`
	Rate        float64 `default:"0" help:"Orders a second; 0 is as fast as possible."`
	Seed        uint64  `default:"1" help:"Decides everything about the orders."`
	Mix         string  `enum:"crm,shop" default:"crm" help:"Kind of business: crm (companies, many currencies, advances and parts) or shop (consumers)."`
	Source      string  `default:"generated" help:"The source of the orders."`
	Start       string  `default:"2026-01-05" placeholder:"DATE" help:"Date of order 1."`
	Out         string  `placeholder:"FILE" help:"Write the orders to a file (.jsonl, .csv; - is standard output, as JSON Lines) instead of storing them."`
}

// Validate checks what kong cannot.
func (c *GenerateCmd) Validate() error {
	var mistakes []error
	if c.Out == "" && c.DatabaseURL == "" {
		mistakes = append(mistakes, errors.New("--database-url (CRM_DATABASE_URL) or --out is missing"))
	}
	if c.Out == "" && c.Tenant == "" {
		mistakes = append(mistakes, errors.New("--tenant is missing"))
	}
	if c.Count < 1 || c.First < 1 {
		mistakes = append(mistakes, errors.New("--count and --first are 1 or more"))
	}
	if !(c.Rate >= 0 && c.Rate <= 1e6) {
		mistakes = append(mistakes, errors.New("--rate is from 0 to 1000000"))
	}
	if _, err := time.Parse(time.DateOnly, c.Start); err != nil {
		mistakes = append(mistakes, fmt.Errorf("--start %q is not a date such as 2026-01-05", c.Start))
	}
	return errors.Join(mistakes...)
}

// Run makes the orders and stores them, or writes them to a file.
func (c *GenerateCmd) Run(ctx context.Context, log *slog.Logger, env *app.AdminEnv) error {
	if c.Out != "" {
		return c.write(env.Stdout)
	}
	return traced(ctx, env, log, func(ctx context.Context, option jobs.InserterOption) error {
		service, pool, err := openService(ctx, c.DatabaseURL, log, option)
		if err != nil {
			return err
		}
		defer pool.Close()
		return c.submit(ctx, service, env.Stdout, os.Stderr)
	})
}

func (c *GenerateCmd) generator() (*ordergen.Generator, error) {
	start, err := time.Parse(time.DateOnly, c.Start)
	if err != nil {
		return nil, err
	}
	return ordergen.New(ordergen.Options{Seed: c.Seed, Mix: ordergen.Mix(c.Mix), Source: c.Source, Start: start})
}

func (c *GenerateCmd) write(stdout io.Writer) error {
	g, err := c.generator()
	if err != nil {
		return err
	}
	orders := c.orders(g, 0, c.Count)
	if c.Out == "-" {
		return orderfile.WriteJSONLines(stdout, orders)
	}
	file, err := os.Create(c.Out)
	if err != nil {
		return err
	}
	if strings.EqualFold(filepath.Ext(c.Out), ".csv") {
		err = orderfile.WriteCSV(file, orders, orderfile.CSVOptions{})
	} else {
		err = orderfile.WriteJSONLines(file, orders)
	}
	return errors.Join(err, file.Close())
}

func (c *GenerateCmd) orders(g *ordergen.Generator, from, to int) []crm.Order {
	orders := make([]crm.Order, 0, to-from)
	for n := from; n < to; n++ {
		orders = append(orders, g.Order(c.First+n))
	}
	return orders
}

// submit stores the orders in step with the rate, each batch in a transaction of its own. What it says at the end
// holds for what was stored, also if it was interrupted.
func (c *GenerateCmd) submit(ctx context.Context, s orderfile.Submitter, stdout, stderr io.Writer) error {
	g, err := c.generator()
	if err != nil {
		return err
	}
	b := newBar(stderr, "orders", "orders")
	outcomes := map[crm.Outcome]int{}
	began := time.Now()
	done := 0
	for done < c.Count && err == nil {
		next := min(c.Count, done+generateBatch, c.due(time.Since(began)))
		if next == done {
			err = pause(ctx, c.until(done+1)-time.Since(began))
			continue
		}
		var submissions []crm.Submission
		submissions, err = s.Submit(ctx, c.Tenant, crm.ChannelGenerate, c.orders(g, done, next), crm.SubmitOptions{})
		if err == nil {
			done = next
			for _, sub := range submissions {
				outcomes[sub.Outcome]++
			}
			b.show(done, c.Count)
		}
	}
	b.end()
	fmt.Fprintf(stdout, "generate: %d of %d orders submitted in %s%s\n", done, c.Count, time.Since(began).Round(time.Millisecond), told(outcomes))
	return err
}

// due is how many orders should have been submitted after so long; all of them without a rate.
func (c *GenerateCmd) due(after time.Duration) int {
	if c.Rate == 0 {
		return c.Count
	}
	return int(min(float64(c.Count), after.Seconds()*c.Rate))
}

// until is when the n-th order is due.
func (c *GenerateCmd) until(n int) time.Duration {
	return time.Duration(float64(n) / c.Rate * float64(time.Second))
}

func pause(ctx context.Context, d time.Duration) error {
	const least = 5 * time.Millisecond // high rates go in small batches instead of one by one
	timer := time.NewTimer(max(d, least))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

func told(outcomes map[crm.Outcome]int) string {
	var b strings.Builder
	for _, outcome := range slices.Sorted(maps.Keys(outcomes)) {
		fmt.Fprintf(&b, ", %d %s", outcomes[outcome], strings.ReplaceAll(string(outcome), "_", " "))
	}
	return b.String()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"invoicebridge/internal/app"
	"invoicebridge/internal/audit"
	"invoicebridge/internal/invoice"
	"invoicebridge/internal/problem"
)

// tenantOn is a tenant in a database.
type tenantOn struct {
	app.DatabaseFlag
	Tenant string `required:"" help:"Id of the tenant."`
}

// read gives do a Service that only reads: it has no queue.
func (f tenantOn) read(ctx context.Context, env *app.AdminEnv, do func(*invoice.Service) error) error {
	pool, err := f.Open(ctx, env.Schema)
	if err != nil {
		return err
	}
	defer pool.Close()
	return do(invoice.NewService(pool, invoice.Options{}))
}

// acting is what changes something by hand. Who and why go into the audit.
type acting struct {
	app.ERPQueueFlags
	Tenant string `required:"" help:"Id of the tenant."`
	Actor  string `default:"${actor}" help:"Who does this, for the audit."`
	Reason string `required:"" help:"Why, for the audit."`
}

func (c *acting) by() audit.By { return audit.By{Actor: c.Actor, Reason: c.Reason} }

// show writes v as JSON for people.
func show[T any](env *app.AdminEnv, v T, err error) error {
	if err != nil {
		return explained(err)
	}
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "%s\n", text)
	return err
}

// explained tells a problem with what is wrong in each place.
func explained(err error) error {
	p := problem.As(err)
	if p == nil || len(p.Errors) == 0 {
		return err
	}
	var b strings.Builder
	b.WriteString(err.Error())
	for _, e := range p.Errors {
		fmt.Fprintf(&b, "\n  %s: %s", e.Pointer, e.Detail)
	}
	return errors.New(b.String())
}

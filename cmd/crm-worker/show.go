package main

import (
	"context"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"invoicebridge/internal/app"
	"invoicebridge/internal/crm"
)

type ordersCommands struct {
	Show orderShow `cmd:"" help:"Show an order with its operations and their attempts, as JSON."`
}

type operationsCommands struct {
	Show operationShow  `cmd:"" help:"Show an operation with its attempts, as JSON."`
	List operationsList `cmd:"" help:"List the newest operations."`

	Replay operationReplay `cmd:"" help:"Send an operation again, under its key, that waits for a person."`
	Cancel operationCancel `cmd:"" help:"Take back an operation of which nothing has left."`
	Revise operationRevise `cmd:"" help:"Put a corrected request in the place of one that is proven not applied."`
}

// tenantOn is a tenant in a database.
type tenantOn struct {
	app.DatabaseFlag
	Tenant string `required:"" help:"Id of the tenant."`
}

// read gives do a Service that only reads: it has no queue.
func (f tenantOn) read(ctx context.Context, env *app.AdminEnv, do func(*crm.Service) error) error {
	pool, err := f.Open(ctx, env.Schema)
	if err != nil {
		return err
	}
	defer pool.Close()
	return do(crm.NewService(pool, nil, crm.Options{}))
}

// show writes v as JSON for people.
func show[T any](env *app.AdminEnv, v T, err error) error {
	if err != nil {
		return err
	}
	text, err := json.Marshal(v, json.Deterministic(true), jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(env.Stdout, "%s\n", text)
	return err
}

type orderShow struct {
	tenantOn
	Source string `arg:"" help:"Where the order comes from."`
	Order  string `arg:"" help:"Id of the order."`
}

// Run shows the order.
func (c *orderShow) Run(ctx context.Context, env *app.AdminEnv) error {
	return c.read(ctx, env, func(s *crm.Service) error {
		order, err := s.GetOrder(ctx, c.Tenant, c.Source, c.Order)
		return show(env, order, err)
	})
}

type operationShow struct {
	tenantOn
	Key string `arg:"" help:"Key of the operation."`
}

// Run shows the operation.
func (c *operationShow) Run(ctx context.Context, env *app.AdminEnv) error {
	return c.read(ctx, env, func(s *crm.Service) error {
		operation, err := s.GetOperation(ctx, c.Tenant, c.Key)
		return show(env, operation, err)
	})
}

type operationsList struct {
	tenantOn
	Status string `help:"Only those with this status: pending, processing, unknown, succeeded, failed or cancelled."`
	Limit  int    `default:"50" help:"How many, from 1 to 200."`
}

// Run lists the operations.
func (c *operationsList) Run(ctx context.Context, env *app.AdminEnv) error {
	return c.read(ctx, env, func(s *crm.Service) error {
		page, _, err := s.ListOperations(ctx, c.Tenant, crm.OperationFilter{Status: crm.OperationStatus(c.Status), Limit: c.Limit})
		if err != nil {
			return err
		}
		return app.Table(env.Stdout, operationHead, page, operationLine)
	})
}

const operationHead = "KEY\tSOURCE\tORDER\tROLE\tSTATUS\tATTEMPTS\tINVOICE\tREASON"

func operationLine(op crm.Operation) string {
	number, reason := "-", "-"
	if op.Invoice != nil {
		number = op.Invoice.Number
	}
	if op.Reason != "" {
		reason = string(op.Reason)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s %d\t%s\t%d\t%s\t%s", op.Key, op.Source, op.Order, op.Role, op.Sequence, op.Status, op.Attempts, number, reason)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"invoicebridge/internal/app"
	"invoicebridge/internal/audit"
	"invoicebridge/internal/crm"
	"invoicebridge/internal/erpapi"
	"invoicebridge/internal/jobs"
	"invoicebridge/internal/problem"
)

// acting is what changes something by hand. Who and why go into the audit.
type acting struct {
	tenantOn
	Actor  string `default:"${actor}" help:"Who does this, for the audit."`
	Reason string `required:"" help:"Why, for the audit."`
}

func (c *acting) by() audit.By { return audit.By{Actor: c.Actor, Reason: c.Reason} }

// write gives do a Service that puts jobs into the queue; a running service works them.
func (c *acting) write(ctx context.Context, env *app.AdminEnv, log *slog.Logger, do func(context.Context, *crm.Service) error) error {
	return c.queue(ctx, env, log, func(ctx context.Context, s *crm.Service, _ *pgxpool.Pool) error { return do(ctx, s) })
}

// queue gives do a Service that puts jobs into the queue, and its database.
func (f tenantOn) queue(ctx context.Context, env *app.AdminEnv, log *slog.Logger, do func(context.Context, *crm.Service, *pgxpool.Pool) error) error {
	return traced(ctx, env, log, func(ctx context.Context, option jobs.InserterOption) error {
		pool, err := f.Open(ctx, env.Schema)
		if err != nil {
			return err
		}
		defer pool.Close()
		inserter, err := jobs.NewInserter(pool, log, option)
		if err != nil {
			return err
		}
		return do(ctx, crm.NewService(pool, inserter, crm.Options{Logger: log, Actions: inserter}), pool)
	})
}

// byHand is acting on one operation.
type byHand struct {
	acting
	Key string `arg:"" help:"Key of the operation."`
}

type operationReplay struct{ byHand }

// Run replays the operation and shows it.
func (c *operationReplay) Run(ctx context.Context, env *app.AdminEnv, log *slog.Logger) error {
	return c.write(ctx, env, log, func(ctx context.Context, s *crm.Service) error {
		operation, err := s.Replay(ctx, c.Tenant, c.Key, c.by())
		return show(env, operation, err)
	})
}

type operationCancel struct{ byHand }

// Help says what it does to the order.
func (operationCancel) Help() string {
	return `Only what has never left can be cancelled: no attempt began, or none got as far as a connection. What may have reached
the ERP is refused, and so is what is final.

A repeat of the order, or a newer version that wants just this invoice, leaves it cancelled. A newer version that wants it
otherwise makes a new operation under a new key.`
}

// Run cancels the operation and shows it.
func (c *operationCancel) Run(ctx context.Context, env *app.AdminEnv, log *slog.Logger) error {
	return c.write(ctx, env, log, func(ctx context.Context, s *crm.Service) error {
		operation, err := s.Cancel(ctx, c.Tenant, c.Key, c.by())
		return show(env, operation, err)
	})
}

type operationRevise struct {
	byHand
	File string `required:"" type:"existingfile" placeholder:"PATH" help:"The corrected request, JSON in the form of the ERP's POST /v1/invoices."`
}

// Run revises the operation and shows the new one.
func (c *operationRevise) Run(ctx context.Context, env *app.AdminEnv, log *slog.Logger) error {
	body, err := os.ReadFile(c.File)
	if err != nil {
		return fmt.Errorf("read the corrected request: %w", err)
	}
	request, err := erpapi.DecodeInvoiceRequest(body)
	if err != nil {
		return explained(fmt.Errorf("%s: %w", c.File, err))
	}
	return c.write(ctx, env, log, func(ctx context.Context, s *crm.Service) error {
		operation, err := s.Revise(ctx, c.Tenant, c.Key, request, c.by())
		return show(env, operation, explained(err))
	})
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

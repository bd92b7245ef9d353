package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/google/uuid"

	"invoicebridge/internal/app"
	"invoicebridge/internal/crm"
)

type replaysCommands struct {
	Start replaysStart `cmd:"" help:"Show what waits for a person and would be replayed; with --yes, replay it."`
	List  replaysList  `cmd:"" help:"List the newest replays of many."`
	Show  replayShow   `cmd:"" help:"Show one of them, with what became of each operation."`
	Stop  replayStop   `cmd:"" help:"Stop one that is running: what has not had its turn stays as it is."`
}

// replayFilter says which operations. What is left out does not narrow.
type replayFilter struct {
	Status     string        `help:"Only those with this status: pending or unknown."`
	FlaggedFor string        `placeholder:"REASON" help:"Only those that wait for a person for this reason, such as no_answer."`
	Source     string        `help:"Only those of orders from this source."`
	MinAge     time.Duration `help:"Only those that were made at least so long ago, such as 2h."`
}

func (f replayFilter) filter() crm.ReplayFilter {
	return crm.ReplayFilter{Status: crm.OperationStatus(f.Status), Reason: crm.Reason(f.FlaggedFor), Source: f.Source, MinAge: f.MinAge}
}

// replaysStart takes its reason itself: without --yes it changes nothing, and needs none.
type replaysStart struct {
	tenantOn
	replayFilter
	Actor    string        `default:"${actor}" help:"Who does this, for the audit."`
	Reason   string        `help:"Why, for the audit; with --yes it is required."`
	Yes      bool          `help:"Start it. Without this nothing is changed."`
	AtMost   int64         `placeholder:"N" help:"Start nothing if more match: the count that you have seen. Default: as many as match when the command begins."`
	NoWait   bool          `help:"Don't wait for the end."`
	Interval time.Duration `default:"500ms" hidden:"" help:"How often to look how far it is."`
}

// Help says what replay is, who does the work, and what the command's end means.
func (replaysStart) Help() string {
	return fmt.Sprintf(`Only what is open and left to a person is taken: each operation is sent once more at once, under its own key and with the same
bytes, so that no second invoice can come of it.

Without --yes the command shows how many match, and the first of them. With --yes it fixes the list of at most %d, the oldest first, and
the running service works it off, some 50 a second. The command shows how far that is, then one line for each operation. If it is
interrupted, the replay goes on; see it by "replays show", end it by "replays stop". One replay runs at a time for each tenant.

What "queued" means: it is with the deliverer again. What comes of that is the operation's own status.

Exit status: 0 if all were queued, 1 if one was refused or the replay was stopped, or nothing could be started.`, crm.MaxReplays)
}

// Validate checks what kong cannot.
func (c *replaysStart) Validate() error {
	switch {
	case c.Yes && c.Reason == "":
		return errors.New("--reason is missing: why, for the audit")
	case c.AtMost < 0:
		return errors.New("--at-most is 1 or more")
	case c.Interval <= 0:
		return errors.New("--interval is more than 0")
	}
	return nil
}

// Run shows what matches and, if it is told to, replays it.
func (c *replaysStart) Run(ctx context.Context, env *app.AdminEnv, log *slog.Logger) error {
	if !c.Yes {
		return c.read(ctx, env, func(s *crm.Service) error {
			_, err := c.preview(ctx, s, env.Stdout)
			return err
		})
	}
	by := acting{tenantOn: c.tenantOn, Actor: c.Actor, Reason: c.Reason}
	return by.write(ctx, env, log, func(ctx context.Context, s *crm.Service) error {
		count, err := c.preview(ctx, s, io.Discard)
		if err != nil {
			return err
		}
		if c.AtMost > 0 {
			count = c.AtMost
		}
		run, err := s.StartReplays(ctx, c.Tenant, c.filter(), count, by.by())
		if err != nil {
			return err
		}
		fmt.Fprintf(env.Stdout, "replay %s of %d operations has begun\n", run.ID, run.Total)
		if c.NoWait {
			return nil
		}
		if run, err = c.follow(ctx, s, run); err != nil {
			return fmt.Errorf("%w (the replay %s goes on)", err, run.ID)
		}
		return c.tell(ctx, s, env.Stdout, run)
	})
}

// preview says how many match, and shows some of them.
func (c *replaysStart) preview(ctx context.Context, s *crm.Service, out io.Writer) (count int64, err error) {
	preview, err := s.PreviewReplays(ctx, c.Tenant, c.filter())
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(out, "%d operations match", preview.Count)
	switch shown := int64(len(preview.Sample)); {
	case preview.Count > crm.MaxReplays:
		fmt.Fprintf(out, "; one replay takes the oldest %d. The first %d", crm.MaxReplays, shown)
	case preview.Count > shown:
		fmt.Fprintf(out, ". The first %d", shown)
	case preview.Count == 0:
		fmt.Fprintln(out)
		return 0, nil
	}
	fmt.Fprintln(out, ":")
	if err := app.Table(out, operationHead, preview.Sample, operationLine); err != nil {
		return 0, err
	}
	_, err = fmt.Fprintf(out, "Nothing is changed. To replay them: --yes --at-most=%d --reason=...\n", preview.Count)
	return preview.Count, err
}

// follow waits for the end of the run, and shows how far it is.
func (c *replaysStart) follow(ctx context.Context, s *crm.Service, run crm.ReplayRun) (crm.ReplayRun, error) {
	progress := newBar(os.Stderr, "replay", "operations")
	defer progress.end()
	for {
		progress.show(run.Total-run.Waiting(), run.Total)
		if run.FinishedAt != nil {
			return run, nil
		}
		if err := pause(ctx, c.Interval); err != nil {
			return run, err
		}
		now, err := s.GetReplayRun(ctx, c.Tenant, run.ID)
		if err != nil {
			return run, err
		}
		run = now
	}
}

// tell writes what became of each operation, and fails if that is not what was asked for.
func (c *replaysStart) tell(ctx context.Context, s *crm.Service, out io.Writer, run crm.ReplayRun) error {
	if err := tellReplayItems(ctx, s, out, c.Tenant, run.ID, ""); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d queued, %d refused, %d stopped before their turn\n", run.Queued, run.Refused, run.Stopped)
	if left := run.Matched - int64(run.Total); left > 0 {
		fmt.Fprintf(out, "%d more matched than one replay takes: start another\n", left)
	}
	if run.Queued != run.Total {
		return fmt.Errorf("%d of %d operations were not queued", run.Total-run.Queued, run.Total)
	}
	return nil
}

// tellReplayItems writes one line for each operation of a run, in the order of their turns.
func tellReplayItems(ctx context.Context, s *crm.Service, out io.Writer, tenant string, id uuid.UUID, result crm.ReplayResult) error {
	filter := crm.ReplayItemFilter{Result: result, PageQuery: crm.PageQuery{Limit: crm.MaxPageLimit}}
	var all []crm.ReplayItem
	for {
		page, err := s.ListReplayItems(ctx, tenant, id, filter)
		if err != nil {
			return err
		}
		all = append(all, page.Items...)
		if filter.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	return app.Table(out, "KEY\tRESULT\tSTATUS NOW\tWHY", all, func(i crm.ReplayItem) string {
		why := "-"
		if i.Detail != "" {
			why = app.OneCell(i.Detail)
		}
		return fmt.Sprintf("%s\t%s\t%s\t%s", i.Key, i.Result, i.Status, why)
	})
}

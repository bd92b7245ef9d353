package jobs

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river/riverdriver"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivershared/baseservice"
	"github.com/riverqueue/river/rivershared/riverpilot"
	"github.com/riverqueue/river/rivertype"
)

// keepingDriver is River's driver with one difference. River's rescuer, which runs on one client for all, discards stuck
// jobs of kinds that this client does not know: while versions are being replaced, an old binary would so throw away a
// newer one's work. With this driver it does not see them; a client that knows them rescues them when it leads.
//
// The two Plugin methods are River's own seam for that, but not a stable one. Should a version of River drop it, its
// default behaviour comes back and TestUnknownKindsAreKept fails.
type keepingDriver struct {
	*riverpgxv5.Driver
	pilot *keepingPilot
}

var _ riverdriver.Driver[pgx.Tx] = (*keepingDriver)(nil)

// newKeepingDriver makes the driver of a client that knows these kinds.
func newKeepingDriver(pool *pgxpool.Pool, kinds []string) *keepingDriver {
	return &keepingDriver{Driver: riverpgxv5.New(pool), pilot: &keepingPilot{kinds: kinds}}
}

// PluginInit implements River's driverPlugin.
func (*keepingDriver) PluginInit(*baseservice.Archetype) {}

// PluginPilot implements River's driverPlugin.
func (d *keepingDriver) PluginPilot() riverpilot.Pilot { return d.pilot }

type keepingPilot struct {
	riverpilot.StandardPilot
	kinds []string
}

// JobGetStuck gives up to params.Max stuck jobs of known kinds. Fewer tell the rescuer that there are no more, so it
// reads on until the batch is full or the table is at its end.
func (p *keepingPilot) JobGetStuck(ctx context.Context, exec riverdriver.Executor, params *riverdriver.JobGetStuckParams) ([]*rivertype.JobRow, error) {
	var known []*rivertype.JobRow
	page := *params
	for {
		jobs, err := p.StandardPilot.JobGetStuck(ctx, exec, &page)
		if err != nil {
			return nil, err
		}
		for _, job := range jobs {
			if slices.Contains(p.kinds, job.Kind) {
				known = append(known, job)
			}
			if len(known) == params.Max {
				return known, nil
			}
		}
		if len(jobs) < page.Max {
			return known, nil
		}
		page.AfterID = jobs[len(jobs)-1].ID
	}
}

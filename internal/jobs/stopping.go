package jobs

import (
	"context"
	"slices"

	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// endAtStop has the jobs of some kinds end as soon as their client begins to stop, where River lets all jobs end by themselves for a
// while. It is for what goes on for minutes and is gone on with from any point: to wait for it would only make each stop as long as
// it can be.
type endAtStop struct {
	river.MiddlewareDefaults
	kinds []string
	ctx   context.Context //nolint:containedctx // ends when the client begins to stop
	begin context.CancelFunc
}

var _ rivertype.WorkerMiddleware = (*endAtStop)(nil)

func newEndAtStop(kinds ...string) *endAtStop {
	ctx, begin := context.WithCancel(context.Background())
	return &endAtStop{kinds: kinds, ctx: ctx, begin: begin}
}

// Work implements rivertype.WorkerMiddleware.
func (e *endAtStop) Work(ctx context.Context, job *rivertype.JobRow, inner func(context.Context) error) error {
	if !slices.Contains(e.kinds, job.Kind) {
		return inner(ctx)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.ctx, cancel)()
	return inner(ctx)
}

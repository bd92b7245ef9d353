package jobs

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// jobCount is how many jobs of a queue are in a state, and for how long the time of the first of them has come.
type jobCount struct {
	Queue         string
	State         string
	Jobs          int64
	OldestSeconds float64
}

// queueReading is what a reading brings of River's table.
type queueReading struct {
	counts               []jobCount
	oldestRunningSeconds float64
}

// countedStates are those that a job is counted in. Of the others, completed ones are many and say nothing, and cancelled
// ones were so by a person.
func countedStates() []rivertype.JobState {
	return []rivertype.JobState{
		rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRetryable, rivertype.JobStateRunning,
		rivertype.JobStateScheduled, rivertype.JobStateDiscarded,
	}
}

// queues are those of a side's clients. A newer program's may have more; they are told when they have jobs.
func queues() []string {
	return []string{river.QueueDefault, queueMaintenance, queueRetention, queueReconciliation}
}

// newQueueFigures are the figures of a side's queue.
func newQueueFigures(side string, log *slog.Logger, read func(ctx context.Context) (queueReading, error)) *figureGroup {
	jobs := prometheus.NewDesc(side+"_jobs", "Jobs in the queue that are not finished, and discarded ones that the queue still keeps.", []string{"queue", "state"}, nil)
	waiting := prometheus.NewDesc(side+"_oldest_available_job_seconds",
		"How long the job that waits longest for a worker has been waiting; 0 if there is none.", []string{"queue"}, nil)
	running := prometheus.NewDesc(side+"_oldest_running_job_seconds", "How long the oldest running job has been running; 0 if there is none.", nil, nil)
	tell := func(r queueReading, metrics chan<- prometheus.Metric) {
		type place struct{ queue, state string }
		counts, oldest := map[place]int64{}, map[string]float64{}
		for _, queue := range queues() {
			oldest[queue] = 0
			for _, state := range countedStates() {
				counts[place{queue, string(state)}] = 0
			}
		}
		for _, c := range r.counts {
			counts[place{c.Queue, c.State}] = c.Jobs
			if c.State == string(rivertype.JobStateAvailable) {
				oldest[c.Queue] = c.OldestSeconds
			}
		}
		for p, n := range counts {
			gauge(metrics, jobs, float64(n), p.queue, p.state)
		}
		for queue, seconds := range oldest {
			gauge(metrics, waiting, seconds, queue)
		}
		gauge(metrics, running, r.oldestRunningSeconds)
	}
	return newFigureGroup(side, "queue", openFiguresEvery, 0, log, read, tell, jobs, waiting, running)
}

package jobs

import (
	"context"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
)

// peopleReading is what a reading brings of what people have decided, or have to.
type peopleReading struct {
	pauses, resolutions                   int64
	oldestPauseSeconds, oldestOpenSeconds float64
	oldestRunSeconds                      float64
	accepted                              map[string]int64 // divergences, by kind
}

// newPeopleFigures are the figures of what a side's people have paused and accepted, and of how long a run of reconciliation
// takes. kinds are those of its divergences; resolutions says whether the side has proposals that wait for a second person.
func newPeopleFigures(side, paused string, kinds []string, resolutions bool, log *slog.Logger, read func(ctx context.Context) (peopleReading, error)) *figureGroup {
	accepted := prometheus.NewDesc(side+"_accepted_divergences", "Differences that are still there and that a person has accepted.", []string{"kind"}, nil)
	run := prometheus.NewDesc(side+"_reconciliation_open_run_seconds", "How long ago the oldest run of reconciliation that has not come to its end began; 0 if there is none.", nil, nil)
	pauses := prometheus.NewDesc(side+"_paused_"+paused, "How many "+paused+" a person has paused.", nil, nil)
	pause := prometheus.NewDesc(side+"_oldest_pause_seconds", "How long the oldest pause has lasted; 0 if there is none.", nil, nil)
	descs := []*prometheus.Desc{accepted, run, pauses, pause}
	open := prometheus.NewDesc(side+"_open_resolutions", "Resolutions that somebody has proposed and that wait for a second person.", nil, nil)
	oldest := prometheus.NewDesc(side+"_oldest_open_resolution_seconds", "How long the oldest of them has been waiting; 0 if there is none.", nil, nil)
	if resolutions {
		descs = append(descs, open, oldest)
	}
	tell := func(r peopleReading, metrics chan<- prometheus.Metric) {
		counts := map[string]int64{}
		for kind, n := range r.accepted {
			counts[known(kind, kinds)] += n
		}
		for _, kind := range kinds {
			gauge(metrics, accepted, float64(counts[kind]), kind)
		}
		gauge(metrics, run, r.oldestRunSeconds)
		gauge(metrics, pauses, float64(r.pauses))
		gauge(metrics, pause, r.oldestPauseSeconds)
		if resolutions {
			gauge(metrics, open, float64(r.resolutions))
			gauge(metrics, oldest, r.oldestOpenSeconds)
		}
	}
	return newFigureGroup(side, "people", dearFiguresEvery, 0, log, read, tell, descs...)
}

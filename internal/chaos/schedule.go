// Package chaos runs the built programs under load while everything that may happen happens at any time, and holds the
// history of all requests and both databases to what has to be true whatever happened. A seed decides what happens when;
// what it meets depends on the machine.
package chaos

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Kind is one way to disturb.
type Kind string

// The kinds.
const (
	KillERP      Kind = "kill -9 of an ERP"
	KillWorker   Kind = "kill -9 of a worker"
	FreezeERP    Kind = "SIGSTOP, SIGCONT of an ERP"
	FreezeWorker Kind = "SIGSTOP, SIGCONT of a worker"
	RestartOne   Kind = "graceful restart of one process"
	Rolling      Kind = "rolling restart with another build"
	CrashDB      Kind = "immediate stop of PostgreSQL"
	Terminate    Kind = "database connections terminated"
	Storm        Kind = "storm on the network"
	WrongClock   Kind = "a process with a wrong clock"
	Purge        Kind = "purge"
	Reconcile    Kind = "reconciliation by command"
	Replay       Kind = "operators pressing replay"
	ReplayMany   Kind = "operators replaying many"
	Cancel       Kind = "operators pressing cancel"
)

// Event is one disturbance of a schedule.
type Event struct {
	At   time.Duration // since the beginning
	Kind Kind
	// Slot says which of the processes, Lasts how long it is down, frozen or stormy.
	Slot  int
	Lasts time.Duration
}

// disturbance is a kind with how often it comes compared with the others, and how long it lasts at least and at most.
type disturbance struct {
	kind        Kind
	weight      int
	least, most time.Duration
}

// disturbances: an ERP is frozen for less than the lease of a registration. Beyond it, a request to a target without keys
// that was frozen half-way would leave after others had believed the target's "absent"; nobody but the target can
// prevent that (docs/unknown-outcomes.md). Workers may be frozen for longer than any lease: the ERP knows keys.
func disturbances() []disturbance {
	const ms, s = time.Millisecond, time.Second
	return []disturbance{
		{KillERP, 5, 100 * ms, 3 * s}, {KillWorker, 5, 100 * ms, 3 * s},
		{FreezeERP, 2, 500 * ms, 8 * s}, {FreezeWorker, 3, 500 * ms, 25 * s},
		{RestartOne, 3, 0, s}, {Rolling, 1, 0, s},
		{CrashDB, 1, 0, s}, {Terminate, 3, 0, 0}, {Storm, 4, s, 5 * s}, {WrongClock, 1, 0, s},
		{Purge, 1, 0, 0}, {Reconcile, 2, 0, 0}, {Replay, 3, 0, 0}, {ReplayMany, 3, 0, 0}, {Cancel, 2, 0, 0},
	}
}

// meanPause is the time between two disturbances.
const meanPause = 1200 * time.Millisecond

// Schedule is what a seed decides: the same seed and duration give the same schedule. Where there is time for it, each
// kind comes at least once.
func Schedule(seed uint64, duration time.Duration) []Event {
	dice := rand.New(rand.NewPCG(seed, 1))
	all := disturbances()
	order := dice.Perm(len(all)) // each kind once, then by weight
	var events []Event
	for at := meanPause; at < duration; at += time.Duration((0.5 + dice.Float64()) * float64(meanPause)) {
		d := byWeight(dice, all)
		if len(events) < len(order) {
			d = all[order[len(events)]]
		}
		events = append(events, Event{
			At: at, Kind: d.kind, Slot: dice.IntN(2),
			Lasts: (d.least + time.Duration(dice.Float64()*float64(d.most-d.least))).Round(time.Millisecond),
		})
	}
	return events
}

func byWeight(dice *rand.Rand, all []disturbance) disturbance {
	sum := 0
	for _, d := range all {
		sum += d.weight
	}
	n := dice.IntN(sum)
	i := slices.IndexFunc(all, func(d disturbance) bool {
		n -= d.weight
		return n < 0
	})
	return all[i]
}

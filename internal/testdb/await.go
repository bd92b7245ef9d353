package testdb

import (
	"testing"
	"time"
)

// awaitLimit is far beyond what any wait takes; whoever reaches it waits for something that does not come.
const awaitLimit = 60 * time.Second

// Await returns once holds answers true, and fails the test if it does not within a minute. It is for waiting on
// somebody else, another connection or process, whose progress shows in the database or on a socket; what is waited
// for is said in the failure.
func Await(t testing.TB, what string, holds func() bool) {
	t.Helper()
	limit := time.NewTimer(awaitLimit)
	defer limit.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-limit.C:
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

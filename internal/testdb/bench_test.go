package testdb

import "testing"

func BenchmarkOneTestsDatabase(b *testing.B) {
	NewERPDSN(b)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			b2 := &tb{TB: b}
			ERP(b2)
			b2.done()
		}
	})
}

type tb struct {
	testing.TB
	cleanups []func()
}

func (t *tb) Cleanup(f func()) { t.cleanups = append(t.cleanups, f) }
func (t *tb) done() {
	for i := len(t.cleanups) - 1; i >= 0; i-- {
		t.cleanups[i]()
	}
}

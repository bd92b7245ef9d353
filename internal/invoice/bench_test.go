package invoice

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
)

// issuer is what both a Service and a Batcher are.
type issuer interface {
	Issue(ctx context.Context, cmds []Command) []Result
}

// BenchmarkIssue measures one tenant and a hundred with 64 callers, and sets of 64 in one call; each op is an invoice.
func BenchmarkIssue(b *testing.B) {
	callers := func(tenants int, of func(erp) issuer) func(b *testing.B) {
		return func(b *testing.B) {
			var names []string
			for i := range tenants {
				names = append(names, fmt.Sprint("tenant-", i))
			}
			e := setup(b, names...)
			s, n := of(e), atomic.Int64{}
			b.SetParallelism(32) // times GOMAXPROCS
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					i := n.Add(1)
					cmd := command(b, fmt.Sprint("K", i), orderOf(b, fmt.Sprint("SO-", i)))
					cmd.Tenant = names[int(i)%tenants]
					if r := s.Issue(context.Background(), []Command{cmd})[0]; r.Err != nil {
						b.Error(r.Err)
					}
				}
			})
		}
	}
	for _, tenants := range []int{1, 100} {
		b.Run(fmt.Sprintf("single, %d tenants", tenants), callers(tenants, func(e erp) issuer { return e.Service }))
		b.Run(fmt.Sprintf("group commit, %d tenants", tenants), callers(tenants, func(e erp) issuer { return NewBatcher(e.Service) }))
	}
	b.Run("sets of 64", func(b *testing.B) {
		e := setup(b)
		for i := 0; i < b.N; i += 64 {
			var cmds []Command
			for j := i; j < i+64; j++ {
				cmds = append(cmds, command(b, fmt.Sprint("K", j), orderOf(b, fmt.Sprint("SO-", j))))
			}
			for _, r := range e.Issue(context.Background(), cmds) {
				if r.Err != nil {
					b.Fatal(r.Err)
				}
			}
		}
	})
	b.Run("replay", func(b *testing.B) {
		e := setup(b)
		cmd := command(b, "K1", request(b))
		for range b.N {
			if r := e.Issue(context.Background(), []Command{cmd})[0]; r.Err != nil {
				b.Fatal(r.Err)
			}
		}
	})
}

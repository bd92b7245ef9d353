package testdb

import (
	"context"
	"testing"
	"time"
)

func TestEachTestGetsAMigratedDatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	one, two := ERP(t), ERP(t)
	ctx := context.Background()
	for _, pool := range []interface {
		Ping(context.Context) error
	}{one, two, CRM(t)} {
		if err := pool.Ping(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if DSN(t, one) == DSN(t, two) {
		t.Fatal("two databases have one address")
	}
}

func BenchmarkERP(b *testing.B) {
	NewERPDSN(b)
	for b.Loop() {
		start := time.Now()
		_ = start
		NewERPDSN(b)
	}
}

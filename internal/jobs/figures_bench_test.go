package jobs

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"

	"invoicebridge/internal/testdb"
)

// millionOperations fills a database with a million operations, 990,000 of them succeeded, and as many jobs as are open.
func millionOperations(b *testing.B, open string) *pgxpool.Pool {
	b.Helper()
	pool := testdb.CRM(b)
	conn, err := pool.Acquire(context.Background())
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Release()
	for _, sql := range []string{
		"SET session_replication_role = replica", // no foreign keys to look up, for rows that are made up
		"INSERT INTO tenants (id, name) VALUES ('acme', 'Acme')",
		`INSERT INTO operations (id, tenant_id, key, kind, source, order_id, role, sequence, order_version, request, request_hash, status,
			attempt, next_attempt_at, invoice_id, invoice_number, created_at, first_sent_at, finished_at)
		SELECT gen_random_uuid(), 'acme', 'K-' || n, 'invoice', 'crm-1', 'SO-' || n, 'final', 1, 1, convert_to(repeat('x', 600), 'UTF8'),
			sha256('x'), state, 1, CASE WHEN state IN ('pending', 'unknown') THEN now() + interval '1 hour' END,
			CASE WHEN state = 'succeeded' THEN gen_random_uuid() END, CASE WHEN state = 'succeeded' THEN 'INV-' || n END,
			now() - interval '1 day', now() - interval '1 day', CASE WHEN state IN ('succeeded', 'failed') THEN now() END
		FROM (SELECT n, CASE WHEN n <= ` + open + ` THEN CASE WHEN n % 2 = 0 THEN 'pending' ELSE 'unknown' END
			WHEN n % 200 = 0 THEN 'failed' ELSE 'succeeded' END AS state FROM generate_series(1, 1000000) AS n) AS made`,
		`INSERT INTO river_job (kind, queue, state, args, max_attempts, scheduled_at)
		SELECT 'deliver_operation', 'default', 'available', jsonb_build_object('operation_id', id), 25, now()
		FROM operations WHERE status IN ('pending', 'unknown')`,
		"RESET session_replication_role",
		"VACUUM (ANALYZE) operations",
		"VACUUM (ANALYZE) river_job",
	} {
		if _, err := conn.Exec(context.Background(), sql); err != nil {
			b.Fatal(err)
		}
	}
	return pool
}

// BenchmarkScrape measures a scrape beside a million operations. "read anew" is the worst case: nothing is known from before,
// so the scrape waits for every group of figures, side by side; the metrics beside it say how long the longest reading of
// each took. "as a rule" is every other scrape.
func BenchmarkScrape(b *testing.B) {
	for name, open := range map[string]string{"5000 open": "5000", "500000 open": "500000"} {
		b.Run(name, func(b *testing.B) {
			pool := millionOperations(b, open)
			b.Run("read anew", func(b *testing.B) {
				longest := map[string]float64{}
				for b.Loop() {
					for figures, seconds := range readings(b, NewMetrics(pool, nil)) {
						longest[figures] = max(longest[figures], seconds)
					}
				}
				for figures, seconds := range longest {
					b.ReportMetric(seconds*1000, figures+"-ms")
				}
			})
			b.Run("as a rule", func(b *testing.B) {
				metrics := NewMetrics(pool, nil)
				readings(b, metrics)
				for b.Loop() {
					readings(b, metrics)
				}
			})
		})
	}
}

// readings collects once, and gives how long each group's newest reading took.
func readings(b *testing.B, c prometheus.Collector) map[string]float64 {
	b.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	if err != nil {
		b.Fatal(err)
	}
	took := map[string]float64{}
	for _, family := range families {
		if !strings.HasSuffix(family.GetName(), "_figures_read_seconds") {
			continue
		}
		for _, m := range family.GetMetric() {
			took[m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	return took
}

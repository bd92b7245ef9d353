package app_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"invoicebridge/internal/app"
	"invoicebridge/internal/audit"
	"invoicebridge/internal/auth"
	"invoicebridge/internal/auth/erpstore"
	"invoicebridge/internal/testdb"
)

// BenchmarkIssueTraced issues invoices over HTTP by 32 clients: without tracing, with every request traced to a collector on
// this machine (which shares its processors with the service), and with one in a hundred.
func BenchmarkIssueTraced(b *testing.B) {
	var received atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		received.Add(n)
	}))
	defer collector.Close()
	for _, variant := range []struct {
		name string
		env  map[string]string
	}{
		{"off", nil},
		{"all", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL}},
		{"one_in_a_hundred", map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": collector.URL, "OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.01",
		}},
	} {
		b.Run(variant.name, func(b *testing.B) {
			for name, value := range variant.env {
				b.Setenv(name, value)
			}
			received.Store(0)
			issueInParallel(b)
			b.ReportMetric(float64(received.Load())/float64(b.N), "traced-bytes/op")
		})
	}
}

func issueInParallel(b *testing.B) {
	pool := testdb.ERP(b)
	admin := auth.NewAdmin(erpstore.New(pool))
	if err := admin.CreateTenant(b.Context(), "acme", "Acme", audit.By{Actor: "test"}); err != nil {
		b.Fatal(err)
	}
	_, token, err := admin.CreateToken(b.Context(), "acme", auth.RoleWriter, "test", audit.By{Actor: "test"})
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- app.RunERP(ctx, app.ERPConfig{
			Listen: "127.0.0.1:0", DatabaseURL: testdb.DSN(b, pool), ShutdownTimeout: 10 * time.Second,
			Registering: app.RegisterConfig{Disabled: true},
		}, slog.New(slog.DiscardHandler), func(addr string) { ready <- addr })
	}()
	address := "http://" + <-ready + "/v1/invoices"
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	var count atomic.Int64
	b.SetParallelism(16)
	before := processorTime(b)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := issueOver(client, address, token, count.Add(1)); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.StopTimer()
	b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/op")
	client.CloseIdleConnections()
	stop()
	if err := <-ended; err != nil {
		b.Error(err)
	}
}

// processorTime is what this process has used: service, clients and collector, but not the database. It is what stays
// comparable on a machine that does other things, too.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func issueOver(client *http.Client, address, token string, n int64) error {
	answer, err := issueCall(client, address, token, n)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusCreated {
		return fmt.Errorf("status %d", answer.StatusCode)
	}
	return nil
}

// issueCall asks for an invoice of the n-th order under the n-th key.
func issueCall(client *http.Client, address, token string, n int64) (*http.Response, error) {
	body := strings.NewReader(fmt.Sprintf(`{"source":"crm-1","order":"SO-%d","role":"final","currency":"EUR","issue_date":"2026-03-02",
		"customer":{"name":"A","country":"DE"},"lines":[{"sku":"P-1","quantity":"2","unit_price":"10.00","vat_rate":"19","vat_category":"S"}]}`, n))
	request, err := http.NewRequest(http.MethodPost, address, body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", fmt.Sprint("op-", n))
	return client.Do(request)
}

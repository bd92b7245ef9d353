package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestWhatACommandQueuesStaysInTheTraceOfItsRegistration(t *testing.T) {
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer collector.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.URL)
	pool, id, db := registered(t, "trace_context = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'")
	mustRun(t, "registrations", "replay", id, db, "--tenant=acme", "--reason=asked them")
	if n := count(t, pool, "river_job WHERE metadata ->> 'traceparent' = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'"); n != 1 {
		t.Errorf("%d jobs are in the registration's trace, want 1", n)
	}
}

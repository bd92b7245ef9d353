package telemetry

import (
	"net/http"
	"strings"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/metric/noop"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"
)

// Handler traces the requests to a service. Whoever routes them names each span by its route: here only the method is
// known, and a path must not become a name. Probes, scrapes and static files are not traced.
//
// The trace of the caller is gone on with only for calls of the API that bring a token; everything else (pages, strangers)
// begins one of its own, which points to the caller's. So nobody who has just the address decides what is sampled, or
// writes into the traces of others.
func (t *Traces) Handler(h http.Handler) http.Handler {
	if t == nil {
		return h
	}
	return otelhttp.NewHandler(h, "",
		otelhttp.WithTracerProvider(t.provider), otelhttp.WithMeterProvider(noop.NewMeterProvider()), otelhttp.WithPropagators(t.propagator),
		otelhttp.WithPublicEndpointFn(func(r *http.Request) bool { return !isAPICall(r) }),
		otelhttp.WithFilter(func(r *http.Request) bool { return !isNoise(r.URL.Path) }),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return methodName(r.Method) }),
	)
}

// isAPICall: whether the token is good is known later, when the span has long begun. One that only looks like one gets as
// far as a 401.
func isAPICall(r *http.Request) bool {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer") && token != "" &&
		(strings.HasPrefix(r.URL.Path, "/v1/") || strings.HasPrefix(r.URL.Path, "/admin/v1/"))
}

func isNoise(path string) bool {
	switch path {
	case "/healthz", "/readyz", "/metrics":
		return true
	}
	return strings.HasPrefix(path, "/static/")
}

// methodName: a name has few values, and anybody can make up a method.
func methodName(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "HTTP"
}

// Transport traces requests to peer, and has it go on with the trace.
func (t *Traces) Transport(rt http.RoundTripper, peer string) http.RoundTripper {
	if t == nil {
		return rt
	}
	return otelhttp.NewTransport(rt,
		otelhttp.WithTracerProvider(t.provider), otelhttp.WithMeterProvider(noop.NewMeterProvider()), otelhttp.WithPropagators(t.propagator),
		otelhttp.WithSpanOptions(trace.WithAttributes(semconv.ServicePeerName(peer))),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return methodName(r.Method) + " " + peer }),
	)
}

// Wrap is Transport for one peer, as clients take it.
func (t *Traces) Wrap(peer string) func(http.RoundTripper) http.RoundTripper {
	if t == nil {
		return nil
	}
	return func(rt http.RoundTripper) http.RoundTripper { return t.Transport(rt, peer) }
}

// Package telemetry sends traces to where the standard OTEL_ variables say, and is the only place that knows
// OpenTelemetry's SDK. Without such a variable nothing is traced, wrapped or measured.
package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/contrib/exporters/autoexport"
	"go.opentelemetry.io/contrib/propagators/autoprop"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"
)

// Config is for those who run a service in their own process. Its zero value leaves everything to the variables.
type Config struct {
	// Exporter gets each span as it ends, whatever the variables say; nil: they say.
	Exporter sdktrace.SpanExporter
}

// Traces traces one service. A nil *Traces is tracing that is off: its methods hand back what they are given.
type Traces struct {
	provider   *sdktrace.TracerProvider
	propagator propagation.TextMapPropagator
	log        *slog.Logger
}

// Start makes the traces of a service, or nil if nobody wants any. It connects to nothing. What is set wrongly is an
// error that names the variable. service is its name unless OTEL_SERVICE_NAME gives another.
func Start(ctx context.Context, service string, cfg Config, log *slog.Logger) (*Traces, error) {
	if cfg.Exporter == nil && !wanted(os.Getenv) {
		return nil, nil
	}
	propagator, err := newPropagator(os.Getenv("OTEL_PROPAGATORS"))
	if err != nil {
		return nil, err
	}
	res, err := describe(ctx, service)
	if err != nil {
		return nil, err
	}
	var to sdktrace.TracerProviderOption
	if cfg.Exporter != nil {
		to = sdktrace.WithSyncer(newExporter(cfg.Exporter, log))
	} else {
		exporter, err := autoexport.NewSpanExporter(ctx)
		if err != nil {
			return nil, fmt.Errorf("OTEL_TRACES_EXPORTER, OTEL_EXPORTER_OTLP_PROTOCOL: %w", err)
		}
		// Batches are sent by a goroutine of their own from a queue of bounded length: what does not fit is dropped.
		to = sdktrace.WithBatcher(newExporter(exporter, log))
	}
	provider := sdktrace.NewTracerProvider(to, sdktrace.WithResource(res)) // OTEL_TRACES_SAMPLER, OTEL_BSP_..., OTEL_SPAN_... are read there
	return &Traces{provider: provider, propagator: propagator, log: log}, nil
}

// wanted: the specification's default is to send to a collector on this machine. That nobody has asked for is no reason
// to trace here; a variable that names an exporter or a collector is.
func wanted(getenv func(string) string) bool {
	if strings.EqualFold(strings.TrimSpace(getenv("OTEL_SDK_DISABLED")), "true") {
		return false
	}
	switch exporter := getenv("OTEL_TRACES_EXPORTER"); exporter {
	case "":
		return getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
	default:
		return exporter != "none"
	}
}

// newPropagator is what OTEL_PROPAGATORS names, W3C Trace Context unless it does. Baggage is neither taken nor passed on:
// nothing here reads it, and what a stranger has put into it must not travel to the ERP and to third parties.
func newPropagator(names string) (propagation.TextMapPropagator, error) {
	wanted := slices.DeleteFunc(strings.Split(names, ","), func(name string) bool {
		name = strings.TrimSpace(name)
		return name == "" || name == "baggage"
	})
	if len(wanted) == 0 {
		return propagation.TraceContext{}, nil
	}
	propagator, err := autoprop.TextMapPropagator(wanted...)
	if err != nil {
		return nil, fmt.Errorf("OTEL_PROPAGATORS: %w", err)
	}
	return propagator, nil
}

func describe(ctx context.Context, service string) (*resource.Resource, error) {
	instance, err := uuid.NewRandom()
	if err != nil {
		return nil, fmt.Errorf("name this instance: %w", err)
	}
	res, err := resource.New(ctx,
		resource.WithTelemetrySDK(),
		resource.WithHost(),
		resource.WithAttributes(semconv.ServiceName(service), semconv.ServiceVersion(version()), semconv.ServiceInstanceID(instance.String())),
		resource.WithFromEnv(), // the later one wins
	)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	return res, nil
}

// version is the module's or, in a build from the work tree, the commit.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "unknown"
}

// Provider is for those who begin spans; nil where tracing is off.
func (t *Traces) Provider() trace.TracerProvider {
	if t == nil {
		return nil
	}
	return t.provider
}

// maxFlush is the longest that the end of a program waits for a collector.
const maxFlush = 5 * time.Second

// ShareOf is the part of a shutdown time that Close needs: nothing where tracing is off.
func (t *Traces) ShareOf(shutdown time.Duration) time.Duration {
	if t == nil {
		return 0
	}
	return min(shutdown/5, maxFlush)
}

// Close sends what has not been sent, for no longer than within. What a collector does not take by then is lost, and no
// error: no invoice is.
func (t *Traces) Close(within time.Duration) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.log.Warn("the last spans could not be sent", "error", err)
	}
}

// Begin begins the first span of what a command does. end ends it.
func (t *Traces) Begin(ctx context.Context, name string) (_ context.Context, end func()) {
	if t == nil {
		return ctx, func() {}
	}
	ctx, span := t.provider.Tracer(scope).Start(ctx, name)
	return ctx, func() { span.End() }
}

const scope = "invoicebridge/internal/telemetry"

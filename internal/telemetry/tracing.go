package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"
	"go.opentelemetry.io/otel/trace"
)

// flushTimeout is how long the last spans may take to be sent when the server
// stops.
const flushTimeout = 3 * time.Second

// tracingVariables are OpenTelemetry's own that this file looks at. The SDK
// and its exporter read the others: headers, time-outs, sampler, batches.
const (
	tracesExporter = "OTEL_TRACES_EXPORTER"
	otlpEndpoint   = "OTEL_EXPORTER_OTLP_ENDPOINT"
	otlpTracesTo   = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	sdkDisabled    = "OTEL_SDK_DISABLED"
)

// Tracing makes spans and sends them. Its zero value makes none, which costs
// nothing.
type Tracing struct{ provider *sdktrace.TracerProvider }

// StartTracing begins to trace where OpenTelemetry's variables ask for it; env
// reads them. It makes no connection yet, and a collector that doesn't answer
// loses only its spans. A variable whose value isn't supported is a
// *VariableError.
func StartTracing(ctx context.Context, env func(string) string, version string, log *slog.Logger) (Tracing, error) {
	on, err := tracingWanted(env)
	if err != nil || !on {
		return Tracing{}, err
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return Tracing{}, fmt.Errorf("the exporter of traces can't be made: %w. Fix the OTEL_* variables, or set %s=none", err, tracesExporter)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(),
		resource.WithAttributes(semconv.ServiceName("coppice"), semconv.ServiceVersion(version)),
		resource.WithFromEnv()) // last, so that it wins
	if err != nil {
		return Tracing{}, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES can't be read: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("traces could not be sent", "error", err)
	}))
	log.Info("requests, compactions, replies and statements are traced")
	return Tracing{sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))}, nil
}

// tracingWanted tells whether the environment asks for traces, which the
// standard would have on by default: nothing leaves this machine unasked.
func tracingWanted(env func(string) string) (bool, error) {
	if strings.EqualFold(env(sdkDisabled), "true") {
		return false, nil
	}
	switch exporter := env(tracesExporter); exporter {
	case "none":
		return false, nil
	case "otlp":
	case "":
		if env(otlpEndpoint) == "" && env(otlpTracesTo) == "" {
			return false, nil
		}
	default:
		return false, &VariableError{tracesExporter, exporter, "give otlp, or none"}
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch protocol := env(name); protocol {
		case "":
			continue
		case "http/protobuf":
			return true, nil
		default:
			return false, &VariableError{name, protocol, "only http/protobuf is spoken. Give that, and the collector's endpoint for it, such as http://localhost:4318"}
		}
	}
	return true, nil
}

// A VariableError names a variable of the environment, and says how to fix it.
type VariableError struct{ Name, Value, Fix string }

func (e *VariableError) Error() string { return fmt.Sprintf("%s is %q: %s", e.Name, e.Value, e.Fix) }

// Provider returns the maker of spans, or nil where nothing is traced.
func (t Tracing) Provider() trace.TracerProvider {
	if t.provider == nil {
		return nil
	}
	return t.provider
}

// TracedLogger returns a logger whose lines name their trace. Without a provider
// it returns log.
func TracedLogger(log *slog.Logger, provider trace.TracerProvider) *slog.Logger {
	if provider == nil {
		return log
	}
	return slog.New(tracedLog{log.Handler()})
}

// Stop sends the spans that haven't been sent yet.
func (t Tracing) Stop(log *slog.Logger) {
	if t.provider == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		log.Warn("the last traces could not be sent", "error", err)
	}
}

// A tracedLog adds the trace and the span of a line's context.
type tracedLog struct{ slog.Handler }

func (h tracedLog) Handle(ctx context.Context, r slog.Record) error {
	if span := trace.SpanContextFromContext(ctx); span.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", span.TraceID().String()), slog.String("span_id", span.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h tracedLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return tracedLog{h.Handler.WithAttrs(attrs)}
}

func (h tracedLog) WithGroup(name string) slog.Handler { return tracedLog{h.Handler.WithGroup(name)} }

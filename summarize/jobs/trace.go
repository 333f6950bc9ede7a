package jobs

import (
	"context"
	"encoding/json"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-chat/coppice/summarize"
)

// causeOf is a job's metadata: the traceparent of the append that queues it,
// nil where that isn't traced.
func causeOf(ctx context.Context) []byte {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return nil
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	metadata, _ := json.Marshal(map[string]string{traceparent: carrier[traceparent]}) // strings always marshal
	return metadata
}

const traceparent = "traceparent"

// withCause reads what causeOf wrote.
func withCause(ctx context.Context, metadata []byte) context.Context {
	var read map[string]json.RawMessage
	var parent string
	if json.Unmarshal(metadata, &read) != nil || json.Unmarshal(read[traceparent], &parent) != nil {
		return ctx
	}
	from := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{traceparent: parent})
	cause := trace.SpanContextFromContext(from)
	if !cause.IsValid() {
		return ctx
	}
	return summarize.WithCause(ctx, cause)
}

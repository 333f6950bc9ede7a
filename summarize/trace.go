package summarize

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-chat/coppice/tree"
)

const tracerName = "github.com/coppice-chat/coppice/summarize"

// begin starts the span of a compaction; end says what came of it.
func (s *Service) begin(ctx context.Context, conversationID, headID uuid.UUID, t Trigger) (_ context.Context, end func(tree.Compaction, error)) {
	options := []trace.SpanStartOption{trace.WithAttributes(
		attribute.String("coppice.conversation_id", conversationID.String()), attribute.String("coppice.head_id", headID.String()),
		attribute.String("coppice.trigger", string(t)))}
	if cause, ok := ctx.Value(causeKey{}).(trace.SpanContext); ok {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: cause}))
	}
	ctx, span := s.tracer.Start(ctx, "compaction", options...)
	return ctx, func(k tree.Compaction, err error) {
		defer span.End()
		if err != nil {
			span.SetStatus(codes.Error, "") // whose text is the log's
			return
		}
		span.SetAttributes(
			attribute.String("coppice.compaction_id", k.ID.String()), attribute.String("coppice.outcome", string(k.Outcome)),
			attribute.String("coppice.model", k.Model), attribute.Int("coppice.folded_messages", k.FoldedMessages),
			attribute.Int64("coppice.tokens_before", int64(k.TokensBefore)), attribute.Int64("coppice.tokens_after", int64(k.TokensAfter)))
		if k.Outcome == tree.OutcomeFailed {
			span.SetStatus(codes.Error, "")
		}
	}
}

// causeKey is where a job's context has the span that queued it. A job is no
// part of that span's trace, which is over by then; its own trace links to it.
type causeKey struct{}

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
	return context.WithValue(ctx, causeKey{}, cause)
}

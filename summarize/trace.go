package summarize

import (
	"context"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/coppice-chat/coppice/tree"
)

const tracerName = "github.com/coppice-chat/coppice/summarize"

// begin starts the span of a compaction; end says what came of it.
func (s *Service) begin(ctx context.Context, conversationID, headID uuid.UUID, t Trigger) (_ context.Context, end func(tree.Compaction, error)) {
	options := []trace.SpanStartOption{trace.WithAttributes(
		attribute.String("coppice.conversation_id", conversationID.String()), attribute.String("coppice.head_id", headID.String()),
		attribute.String("coppice.trigger", string(t)))}
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

package llm

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Instruments receive how the calls of a model went. They never receive the
// text of messages.
type Instruments struct {
	TracerProvider trace.TracerProvider        // makes a span of each call; nil for none
	Observe        func(context.Context, Call) // is called when each has ended; nil for none
}

// A Call is the result of one call of a model.
type Call struct {
	Model   string        // as configured
	Outcome string        // OutcomeAnswered, or one of the errors' kinds; see Outcomes
	Took    time.Duration // from the request to the answer's end

	// As the provider counted them; 0 if it didn't say. A stream that breaks off after its
	// first piece is paid for and has no count: then a token is guessed for each four bytes.
	PromptTokens, CompletionTokens int
}

// OutcomeAnswered is the outcome of a call that gave an answer, whether or not
// the answer is of use.
const OutcomeAnswered = "answered"

// outcomes name the kinds of error.
var outcomes = []struct {
	kind error
	name string
}{
	{ErrInvalid, "invalid"}, {ErrAuth, "auth"}, {ErrRateLimited, "rate_limited"}, {ErrUnavailable, "unavailable"}, {ErrTimeout, "timeout"},
	{ErrCanceled, "canceled"}, {ErrBadResponse, "bad_response"}, {ErrPromptTooLong, "prompt_too_long"}, {ErrAnswerTooLong, "answer_too_long"},
}

const outcomeOther = "other" // of a caller that broke off a stream, or a model that isn't this package's

// Outcomes returns all values that the Outcome of a Call can have.
func Outcomes() []string {
	names := []string{OutcomeAnswered}
	for _, o := range outcomes {
		names = append(names, o.name)
	}
	return append(names, outcomeOther)
}

func outcomeOf(err error) string {
	if err == nil {
		return OutcomeAnswered
	}
	for _, o := range outcomes {
		if errors.Is(err, o.kind) {
			return o.name
		}
	}
	return outcomeOther
}

// Instrument returns the same model, which reports its calls to the
// instruments.
func Instrument(m Model, in Instruments) Model {
	w := &instrumented{Model: m, operation: "chat", observe: in.Observe}
	if in.TracerProvider != nil {
		w.tracer = in.TracerProvider.Tracer("github.com/coppice-chat/coppice/llm")
	}
	return w
}

// InstrumentEmbedder returns the same embedder, which reports its calls as
// Instrument does.
func InstrumentEmbedder(e Embedder, in Instruments) Embedder {
	w := &instrumentedEmbedder{e, instrumented{operation: "embeddings", observe: in.Observe}}
	if in.TracerProvider != nil {
		w.calls.tracer = in.TracerProvider.Tracer("github.com/coppice-chat/coppice/llm")
	}
	return w
}

type instrumentedEmbedder struct {
	Embedder
	calls instrumented
}

func (e *instrumentedEmbedder) Embed(ctx context.Context, texts []string) (out Embeddings, err error) {
	ctx, end := e.calls.begin(ctx, e.Name())
	err = errPanicked
	defer func() { end(Response{PromptTokens: out.PromptTokens}, err) }()
	return e.Embedder.Embed(ctx, texts)
}

type instrumented struct {
	Model
	operation string                      // OpenTelemetry's word for a call
	tracer    trace.Tracer                // nil for none
	observe   func(context.Context, Call) // nil for none
}

// errPanicked is of a call that never returned.
var errPanicked = errors.New("the model panicked")

func (m *instrumented) Complete(ctx context.Context, req Request) (res Response, err error) {
	ctx, end := m.begin(ctx, m.Name())
	err = errPanicked
	defer func() { end(res, err) }()
	return m.Model.Complete(ctx, req)
}

func (m *instrumented) Stream(ctx context.Context, req Request, each func(Delta) error) (res Response, err error) {
	ctx, end := m.begin(ctx, m.Name())
	err = errPanicked
	came := 0
	defer func() {
		if err != nil && came > 0 && res.PromptTokens == 0 {
			res.PromptTokens, res.CompletionTokens = bytesOf(req)/bytesPerToken, (came+bytesPerToken-1)/bytesPerToken
		}
		end(res, err)
	}()
	return m.Model.Stream(ctx, req, func(d Delta) error {
		if came == 0 {
			trace.SpanFromContext(ctx).AddEvent("first piece")
		}
		came += max(1, len(d.Reasoning)+len(d.Content)+len(d.Refusal)+len(d.ToolCalls))
		return each(d)
	})
}

const bytesPerToken = 4 // of English, as OpenAI's help says

func bytesOf(req Request) (n int) {
	for _, m := range req.Messages {
		n += len(m)
	}
	for _, m := range req.Extra {
		n += len(m)
	}
	return n
}

// begin starts what is to be told of a call. The attributes are those of
// OpenTelemetry's conventions for generative models that hold no text.
func (m *instrumented) begin(ctx context.Context, name string) (context.Context, func(Response, error)) {
	start := time.Now()
	var span trace.Span
	if m.tracer != nil {
		ctx, span = m.tracer.Start(ctx, m.operation+" "+name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
			attribute.String("gen_ai.operation.name", m.operation), attribute.String("gen_ai.request.model", name)))
	}
	return ctx, func(res Response, err error) {
		call := Call{Model: name, Outcome: outcomeOf(err), Took: time.Since(start), PromptTokens: res.PromptTokens, CompletionTokens: res.CompletionTokens}
		if m.observe != nil {
			m.observe(ctx, call)
		}
		if span == nil {
			return
		}
		span.SetAttributes(attribute.Int("gen_ai.usage.input_tokens", call.PromptTokens), attribute.Int("gen_ai.usage.output_tokens", call.CompletionTokens))
		if err != nil {
			span.SetAttributes(attribute.String("error.type", call.Outcome))
			span.SetStatus(codes.Error, call.Outcome)
		}
		var e *Error
		if errors.As(err, &e) && e.Status != 0 {
			span.SetAttributes(attribute.Int("http.response.status_code", e.Status))
		}
		span.End()
	}
}

package anthropic

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/anthropic/wire"
)

// pass has the upstream answer. req is nil if the body can't be read: then nothing is
// recorded.
func (s service) pass(r *server.Request, req *wire.Request, body []byte) (server.Answer, error) {
	if req == nil {
		return s.relay(r, body)
	}
	prefill := req.TakePrefill()
	entries, err := req.History(false)
	if req.Continues {
		err = errThread
	}
	t := turn{r, req, entries, attemptOf(r, body), err}
	c := &call{upstream: s.upstream, spent: s.spent, request: t.Request, model: t.request.Model, body: body, prefill: prefill}
	c.waiting, c.begin = context.WithCancel(t.Context())
	defer c.begin()
	c.reader, c.writer = io.Pipe()
	if t.managed() {
		c.entries = t.entries
	}
	rep, unrecorded, err := t.begin(reply.Request{
		Prompt: t.prompt(), Model: c.model, Upstream: c, MaxOutputTokens: t.outputTokens(),
	})
	if err != nil {
		return nil, err
	}
	t.Release()
	context.AfterFunc(t.Context(), func() { c.reader.CloseWithError(t.Context().Err()) })
	if _, _ = rep.Wait(c.waiting); c.status.Load() == 0 { // it is another attempt's, or the upstream gave no answer
		return t.answered(rep, unrecorded, false)
	}
	c.reply = rep
	return server.Told{Answer: c, ConversationID: rep.ConversationID(), HeadID: rep.MessageID(), Unrecorded: unrecorded}, nil
}

// A call is the upstream as a model that answers one request. What it sends goes to the
// client through a pipe, as it comes. The end of the answer waits until the answer is
// stored: otherwise the client's next request could come before.
type call struct {
	upstream *server.Forward
	spent    func(ctx context.Context, model string, promptTokens, completionTokens int)
	request  *server.Request
	model    string
	body     []byte
	entries  []wire.Entry // of a request whose model reads the branch's context; nil otherwise
	prefill  []json.RawMessage

	waiting context.Context // of the client's request, until the upstream answers
	begin   func()          // ends waiting
	reply   *reply.Reply    // that this call answers
	status  atomic.Int64    // of the upstream's answer; 0 until it answers
	header  http.Header
	reader  *io.PipeReader
	writer  *io.PipeWriter
	last    []byte // the end of the answer, which the client gets when the reply has ended
	broken  bool   // the connection broke before the answer's end
}

// Name implements reply.Model.
func (c *call) Name() string { return c.model }

// CallsTools says that the upstream gets the client's tools and no others.
func (c *call) CallsTools() bool { return false }

// Complete implements reply.Model.
func (c *call) Complete(ctx context.Context, req reply.ModelRequest) (reply.ModelResponse, error) {
	return c.Stream(ctx, req, func(reply.ModelDelta) error { return nil })
}

// maxAnswer is how many bytes an upstream's answer may have. One that is cut isn't whole,
// and fails.
const maxAnswer = 32 << 20

// Stream implements reply.Model. Of the request it takes the messages, where the model
// reads the branch's context.
func (c *call) Stream(ctx context.Context, req reply.ModelRequest, each func(reply.ModelDelta) error) (reply.ModelResponse, error) {
	defer c.writer.Close()
	body := c.body
	if c.entries != nil {
		body = wire.Managed(body, c.entries, req.Messages)
	}
	res, err := c.upstream.Send(ctx, c.request, strings.TrimPrefix(c.request.URL.Path, Prefix), body)
	if err != nil {
		return reply.ModelResponse{}, server.Unreachable(err)
	}
	defer res.Body.Close()
	c.header = res.Header
	c.status.Store(int64(res.StatusCode))
	c.begin()
	limited := io.LimitReader(res.Body, maxAnswer)
	var got wire.Received
	if c.prefill != nil {
		if err := each(delta(got.Prefill(c.prefill))); err != nil {
			return reply.ModelResponse{}, err
		}
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case res.StatusCode != http.StatusOK:
		c.last, _ = io.ReadAll(limited) // the status says enough
		return reply.ModelResponse{}, server.Refusal(res.StatusCode)
	case kind == "text/event-stream":
		err = c.events(bufio.NewReader(limited), &got, each)
	default:
		c.last, err = io.ReadAll(limited)
		if c.broken = err != nil; !c.broken {
			var d sdk.Delta
			if d, err = got.Whole(c.last); err == nil {
				err = each(delta(d))
			}
		}
	}
	out := response(&got)
	c.spent(ctx, c.model, out.PromptTokens, out.CompletionTokens)
	return out, ended(ctx, &got, err)
}

// events reads the events of a stream, and sends them on, also those behind one that
// can't be read.
func (c *call) events(stream *bufio.Reader, got *wire.Received, each func(reply.ModelDelta) error) (failed error) {
	for {
		event, data, err := wire.ReadEvent(stream)
		if data != nil && failed == nil {
			var d sdk.Delta
			if d, failed = got.Add(data); failed == nil && (d.Text != "" || d.Reasoning != "" || d.Calls != nil) {
				failed = each(delta(d))
			}
		}
		if got.Done {
			c.last = append(c.last, event...)
		} else {
			_, _ = c.writer.Write(event) // a client that is gone ends the reply, not the stream
		}
		switch {
		case err == io.EOF:
			return failed
		case err != nil:
			c.broken = true
			return cmp.Or(failed, err)
		}
	}
}

func delta(d sdk.Delta) reply.ModelDelta {
	out := reply.ModelDelta{Reasoning: d.Reasoning, Content: d.Text}
	if d.Calls != nil {
		out.ToolCalls, _ = json.Marshal(d.Calls) // which are JSON
	}
	return out
}

// response is what came of the answer.
func response(got *wire.Received) reply.ModelResponse {
	body, reasoning := got.Message()
	return reply.ModelResponse{
		Message: body, Text: got.Text(), Reasoning: reasoning, Metadata: recordOf(got.Record()), FinishReason: got.FinishReason(), Model: got.Model,
		PromptTokens: got.Usage.Input + got.Usage.CacheCreation + got.Usage.CacheRead, CachedTokens: got.Usage.CacheRead, CompletionTokens: got.Usage.Output,
	}
}

// ended is the error of an answer that isn't whole; nil of one that is.
func ended(ctx context.Context, got *wire.Received, err error) error {
	switch {
	case err == nil && got.Done:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case got.Failed == "rate_limit_error" || got.Failed == "overloaded_error":
		return server.Refusal(http.StatusTooManyRequests)
	case got.Failed != "":
		return server.Refusal(http.StatusInternalServerError)
	case err == nil:
		err = io.ErrUnexpectedEOF
	}
	return server.Unreachable(err)
}

// Write writes the upstream's answer, as it comes.
func (c *call) Write(w http.ResponseWriter) error {
	r := c.request
	came := http.Response{StatusCode: int(c.status.Load()), Header: c.header, Body: c.reader}
	if err := c.upstream.Answer(&came).Write(w); err != nil {
		return err
	}
	end, err := c.reply.Wait(r.Context())
	switch {
	case err != nil:
		return err
	case end.Status == reply.StatusStopped: // the server cuts an answer that ends in an error
		return errStopped
	case c.broken:
		return end.Err
	case end.Err != nil:
		r.Note(end.Err)
		turn{Request: r}.recognizer().TakeBack(r.Context(), c.reply, end.Err, true)
	}
	_, err = w.Write(c.last)
	return err
}

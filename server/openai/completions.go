package openai

import (
	"encoding/json"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/recognize"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// createCompletion answers a history. One that is recorded becomes a branch; any
// other goes to the model and leaves nothing.
func (c Recognition) createCompletion(r *server.Request) (_ server.Answer, err error) {
	req, body, err := read(r, wire.ParseChat)
	if err != nil {
		return nil, err
	}
	if !req.Echo.Fit() {
		return nil, fault.New(fault.Invalid, wire.CodeValue, "metadata", "The metadata have more than %d bytes.", wire.MaxEcho)
	}
	rep, unrecorded, err := c.answer(r, req, recognize.AttemptOf(r.Header, r.URL.Path, body))
	if err != nil {
		return nil, inMessages(err)
	}
	defer func() {
		if err != nil {
			service(r).TakeBack(r.Context(), rep, err, true)
		}
	}()
	r.Release()
	if req.Stream {
		if err := rep.Begun(r.Context()); err != nil {
			return nil, err
		}
		return answered(followChunks(r, rep, req.Usage), unrecorded), nil
	}
	end, err := rep.Wait(r.Context())
	if err == nil && end.Status == reply.StatusFailed && !end.SaidNothing() {
		err = end.Err
	}
	if err != nil {
		return nil, err
	}
	turn := turnOf(rep, end.Message)
	return answered(answer{wire.Marshal(turn.Completion(endOf(end))), recorded(turn.Node)}, unrecorded), nil
}

// answer begins the reply, or finds the one that an earlier attempt of the request
// began. unrecorded says why a reply that was to be recorded isn't; nil if it is.
func (c Recognition) answer(r *server.Request, req *wire.Request, t recognize.Attempt) (rep *reply.Reply, unrecorded, err error) {
	if err := checkModel(r, req); err != nil {
		return nil, nil, err
	}
	ask := reply.Request{
		Prompt: &reply.Prompt{Messages: raw(req.Messages), Exact: true},
		Model:  req.Model, Temperature: req.Temperature, MaxOutputTokens: req.MaxOutputTokens, Extra: req.Extra, AnyEnd: true, Recall: req.Recall,
		Metadata: map[string]json.RawMessage{"openai": wire.Marshal(storedMetadata{Echo: &req.Echo, Completion: true})},
	}
	return c.recordOr(r, req, func() (*reply.Reply, error) { return c.record(r, req, t, ask) }, func() (*reply.Reply, error) { return r.Replies().Ask(r.Context(), ask) })
}

// record stores what is new in the history, and begins the reply to it.
func (c Recognition) record(r *server.Request, req *wire.Request, t recognize.Attempt, ask reply.Request) (*reply.Reply, error) {
	messages, files, err := keptMessages(req.Messages)
	if err != nil {
		return nil, err
	}
	return service(r).Record(r.Context(), turnTo(r, req, tree.History{Messages: messages}), recognize.Recording{
		Ask:     func(p recognize.Match) reply.Request { return c.read(ask, p, messages) },
		Attempt: t,
		Keep:    keep(r, files),
		Import:  r.Import,
	})
}

// read says what the model reads for a history: the messages that the client sent,
// as long as they fit, or the branch's context. Then a prompt of the client that isn't
// on the branch comes as instructions.
func (c Recognition) read(ask reply.Request, p recognize.Match, messages []*chat.Message) reply.Request {
	if !c.Managed {
		ask.Prompt = &reply.Prompt{Messages: ask.Prompt.Messages, Tokens: p.Tokens, Exact: ask.Prompt.Exact}
		return ask
	}
	ask.Prompt = nil
	var prompt []string
	for _, m := range messages[:p.Prompt] {
		if m.Role == chat.System || m.Role == chat.Developer {
			prompt = append(prompt, m.Text())
		}
	}
	if len(prompt) > 0 {
		ask.Instructions = strings.Join(append(prompt, ask.Instructions), "\n\n")
	}
	return ask
}

// inMessages names the parameter of this API that a refusal of the tree's or of
// the reply's is about.
func inMessages(err error) error {
	if !fault.Refused(err) {
		return err
	}
	e := *fault.Of(err)
	switch field, _, _ := strings.Cut(e.Field, "["); field {
	case "head_id", "parent_id", "id":
		e.Field = "messages"
	case "max_output_tokens":
		e.Field = "max_completion_tokens"
	}
	return &e
}

// followChunks answers with the chunks of a reply.
func followChunks(r *server.Request, rep *reply.Reply, usage bool) server.Answer {
	var c *wire.Chunks
	begin := func(dst []byte, stored *tree.Message) []byte {
		if c != nil {
			return dst
		}
		c = wire.NewChunks(turnOf(rep, stored), usage)
		return c.Begin(dst)
	}
	form := server.StreamForm{
		Event: func(dst []byte, e reply.Event) ([]byte, error) {
			switch {
			case e.Started != nil:
				return begin(dst, nil), nil
			case e.Message != nil:
				return dst, nil // the server answered its own call
			case e.Delta != nil:
				return c.Add(begin(dst, nil), wire.Delta{Reasoning: e.Delta.Reasoning, Text: e.Delta.Content, Refusal: e.Delta.Refusal, Calls: e.Delta.ToolCalls}), nil
			case e.End.Message == nil && e.End.Err != nil && c == nil && !e.End.SaidNothing():
				return wire.AppendEvent(dst, "", errorOf(server.ProblemOf(e.End.Err)).JSON()), nil
			}
			dst = begin(dst, e.End.Message)
			return c.End(dst, endOf(*e.End)), nil
		},
		Closed: func(dst []byte, p server.Problem) []byte {
			return wire.AppendEvent(dst, "", errorOf(p).JSON())
		},
	}
	return stream{r.Stream(rep, 0, form), recorded(answerOf(rep))}
}

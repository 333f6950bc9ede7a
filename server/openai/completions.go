package openai

import (
	"encoding/json"
	"fmt"
	"slices"

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
func (c Recognition) createCompletion(r *server.Request) (server.Answer, error) {
	req, body, err := read(r, parseChat)
	if err != nil {
		return nil, err
	}
	if !req.Echo.Fit() {
		return nil, fault.New(fault.Invalid, wire.CodeValue, "metadata", "The metadata have more than %d bytes.", wire.MaxEcho)
	}
	rep, unrecorded, err := c.answer(r, req, c.attempt(r, req, body))
	if err != nil {
		return nil, inParameter(err, "messages")
	}
	r.Release()
	return answered(r, req, rep, unrecorded, func(t wire.Turn) wire.Writer { return wire.NewChunks(t, req.Usage) }, func(end reply.End) (any, error) {
		if end.Status == reply.StatusFailed && !end.SaidNothing() {
			return nil, end.Err
		}
		return turnOf(rep, end.Message).Completion(endOf(end)), nil
	})
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
	return c.recordOr(r, req, t, func() (*reply.Reply, error) { return c.record(r, req, t, ask) }, func() (*reply.Reply, error) { return r.Replies().Ask(r.Context(), ask) })
}

// record stores what is new in the history, and begins the reply to it.
func (c Recognition) record(r *server.Request, req *wire.Request, t recognize.Attempt, ask reply.Request) (*reply.Reply, error) {
	messages, files := slices.Clone(req.Messages), recognize.Files{}
	for i, m := range messages {
		var err error
		if messages[i], err = files.Link(m, fmt.Sprintf("messages[%d]", i), "content"); err != nil {
			return nil, err
		}
	}
	return service(r).Record(r.Context(), turnTo(r, req, tree.History{Messages: messages}), recognize.Recording{
		Ask:     func(p recognize.Match) reply.Request { return c.read(ask, p, messages) },
		Attempt: t,
		Keep:    files.Keep(r.Context(), r.Store()),
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
	if prompt := p.Instructions(messages); prompt != "" {
		ask.Instructions = prompt + "\n\n" + ask.Instructions
	}
	return ask
}

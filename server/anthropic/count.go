package anthropic

import (
	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/anthropic/wire"
)

// countTokens counts what a request's system prompt, messages and tools have.
func (s service) countTokens(r *server.Request) (server.Answer, error) {
	req, body, passed, err := s.read(r)
	switch {
	case err != nil:
		return nil, err
	case passed:
		return s.relay(r, body)
	}
	entries, extra, err := req.Chat()
	if err != nil {
		return nil, err
	}
	if tools := extra["tools"]; tools != nil {
		entries = append(entries, wire.Entry{Message: chat.Text(chat.System, string(tools))})
	}
	total := 0
	for _, e := range entries {
		n, err := r.Store().Cost(r.Context(), e.Message)
		if err != nil {
			return nil, err
		}
		total += n
	}
	return asJSON(sdk.JSON("input_tokens", total)), nil
}

// listModels lists the models that a request can name: those of the upstream, or else
// the server's own and their aliases.
func (s service) listModels(r *server.Request) (server.Answer, error) {
	if s.upstream != nil {
		return s.relay(r, nil)
	}
	return asJSON(wire.EncodeModels(r.Replies().Names(), s.started)), nil
}

func (s service) getModel(r *server.Request) (server.Answer, error) {
	name := r.Value("model")
	switch {
	case has(r, name):
		return asJSON(wire.EncodeModel(name, s.started)), nil
	case s.upstream != nil:
		return s.relay(r, nil)
	}
	return nil, fault.New(fault.NotFound, "unknown_model", "", "This server has no model of the name %q.", fault.Clip(name))
}

package openai

import (
	"cmp"
	"encoding/json"
	"errors"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// parseChat reads a request for a chat completion. open gives the calls of its session that
// have no result yet.
func parseChat(body []byte, open func(*wire.Request) ([]string, error)) (*wire.Request, error) {
	var failed error
	var c format.Converter
	req, err := wire.ParseChat(body, func(req *wire.Request, raw json.RawMessage) ([]*chat.Message, error) {
		c.Open = func() (calls []string) {
			calls, failed = open(req)
			return calls
		}
		return c.Parse(raw)
	})
	return req, cmp.Or(failed, err)
}

// createCompletion answers a history. One that is recorded becomes a branch; any
// other goes to the model and leaves nothing.
func (c Recognition) createCompletion(r *server.Request) (server.Answer, error) {
	req, body, err := read(r, func(body []byte) (*wire.Request, error) {
		return parseChat(body, func(req *wire.Request) ([]string, error) {
			return service(r).OpenCalls(r.Context(), turnTo(r, req, tree.History{}).Session)
		})
	})
	if err != nil {
		return nil, err
	}
	rep, unrecorded, err := c.begin(r, req, body)
	if err != nil {
		return nil, inParameter(err, "messages")
	}
	return answered(r, req, rep, unrecorded, func(t wire.Turn) wire.Writer { return wire.NewChunks(t, req.Usage) }, func(end reply.End) (json.RawMessage, error) {
		if end.Status == reply.StatusFailed && !end.SaidNothing() {
			return nil, end.Err
		}
		return turnOf(rep, end.Message).Completion(endOf(end)), nil
	})
}

// getCompletion answers with a stored answer as a completion. One that failed is none.
func getCompletion(r *server.Request) (server.Answer, error) {
	id := r.Value("completion_id")
	n, err := wire.ParseCompletionID(id)
	if err != nil {
		return nil, err
	}
	m, err := r.Store().Answer(r.Context(), n.Conversation, n.Node)
	end := reply.EndOf(m)
	if errors.Is(err, fault.NotFound) || end.Status == reply.StatusFailed {
		err = wire.NoCompletion(id)
	}
	if err != nil {
		return nil, err
	}
	return tell(turnAt(n, storedMetadataOf(m.Metadata), &m).Completion(endOf(end)), n), nil
}

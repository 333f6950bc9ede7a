package openai

import (
	"errors"
	"time"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// The answers that chat completions recorded, as OpenAI's "stored chat
// completions".

// completionNode reads the answer that a completion is. Any other message is no
// completion.
func completionNode(r *server.Request) (wire.NodeID, tree.Message, error) {
	id := r.Value("completion_id")
	n, err := wire.ParseCompletionID(id)
	if err != nil {
		return n, tree.Message{}, err
	}
	m, err := r.Store().Message(r.Context(), n.Conversation, n.Node)
	if errors.Is(err, fault.NotFound) || err == nil && !isCompletion(m) {
		err = wire.NoCompletion(id)
	}
	return n, m, err
}

// isCompletion tells whether an answer is a completion. One that failed is none.
func isCompletion(m tree.Message) bool {
	return bool(storedMetadataOf(m.Metadata).Completion) && reply.EndOf(m).Status != reply.StatusFailed
}

// completionOf is the completion that a stored answer is.
func completionOf(m tree.Message) wire.Completion {
	t := wire.Turn{Node: nodeOf(m), CreatedAt: m.CreatedAt, Echo: wire.NewEcho(modelOf(&m))}
	if id := m.ID; id.Version() == 7 {
		t.CreatedAt = time.Unix(id.Time().UnixTime())
	}
	if note := storedMetadataOf(m.Metadata); note.Echo != nil {
		t.Echo = *note.Echo
	}
	return t.Completion(endOf(reply.EndOf(m)))
}

func getCompletion(r *server.Request) (server.Answer, error) {
	n, m, err := completionNode(r)
	if err != nil {
		return nil, err
	}
	return tell(completionOf(m), n), nil
}

package openai

import (
	"errors"

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

func getCompletion(r *server.Request) (server.Answer, error) {
	n, m, err := completionNode(r)
	if err != nil {
		return nil, err
	}
	return tell(turnAt(n, storedMetadata{}, &m).Completion(endOf(reply.EndOf(m))), n), nil
}

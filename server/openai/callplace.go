package openai

import (
	"errors"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
)

// calledIn finds the message of a conversation after which an input goes on that
// begins with the result of a call; uuid.Nil for any other input, and where nobody
// made the call. The active head comes first, and then the newest message that
// makes the call: of turns at a time, another one may have become the active branch
// since. A call that has its result already gets another one beside it.
func calledIn(r *server.Request, conversation uuid.UUID, entries []wire.Entry) (uuid.UUID, error) {
	if len(entries) == 0 || entries[0].Message == nil || entries[0].Message.Role != chat.Tool {
		return uuid.Nil, nil
	}
	result := inputMessage{Message: entries[0].Message}
	c, err := r.Store().Conversation(r.Context(), conversation)
	if err != nil || c.HeadID == uuid.Nil {
		return uuid.Nil, err
	}
	head, err := r.Store().Message(r.Context(), conversation, c.HeadID)
	if err != nil {
		return uuid.Nil, err
	}
	pending, err := pendingAt(r, head, []inputMessage{result})
	if err != nil || slices.Contains(pending, result.Answers()) {
		return head.ID, err
	}
	id, err := r.Store().FindCall(r.Context(), conversation, result.Answers())
	if errors.Is(err, fault.NotFound) {
		err = nil
	}
	return id, err
}

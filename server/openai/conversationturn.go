package openai

import (
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/recognize"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

// saidBefore gives the messages at the end of the active branch that added items
// begin with, so that they aren't stored once more:
//
//   - A turn reaches the server twice where a client keeps its session in a
//     conversation: it asks for responses without naming the conversation, with the
//     ids of earlier items, and then adds the turn's items. Only the answer of such
//     a response makes a turn known. A client that says the same again means it.
//   - A request that an SDK repeats, because no answer came, brings all of its
//     items again. Whether it is one, retried tells.
func saidBefore(r *server.Request, c tree.Conversation, messages []*chat.Message, retried bool) ([]tree.Message, error) {
	answered := slices.ContainsFunc(messages, func(m *chat.Message) bool { return m.Role == chat.Assistant })
	if c.HeadID == uuid.Nil || !retried && !answered {
		return nil, nil
	}
	stored, err := lastShown(r, c, len(messages))
	if err != nil {
		return nil, err
	}
	for end := stored; len(end) > 0; end = end[1:] {
		known := retried && len(end) == len(messages) || slices.ContainsFunc(end, answersAlone)
		if known && slices.EqualFunc(end, messages[:len(end)], recognize.Means) {
			return end, nil
		}
	}
	return nil, nil
}

// lastShown gives the last messages of the active branch that clients see, oldest
// first: n of them at most, and no more than one request can bring.
func lastShown(r *server.Request, c tree.Conversation, n int) (shown []tree.Message, err error) {
	p := tree.Paging{Limit: n}
	for taken := 0; ; {
		page, err := r.Store().Transcript(r.Context(), c.ID, c.HeadID, p)
		if err != nil {
			return nil, err
		}
		for _, m := range page.Data {
			taken += len(m.Body)
		}
		shown = append(slices.DeleteFunc(page.Data, reply.IsStep), shown...)
		if p.Cursor = page.Next; p.Cursor == "" || len(shown) >= n || taken > MaxBody {
			return shown[max(0, len(shown)-n):], nil
		}
	}
}

// answersAlone tells whether a message is the answer of a response whose request
// named no conversation.
func answersAlone(m tree.Message) bool {
	echo := storedMetadataOf(m.Metadata).Echo
	return echo != nil && echo.Conversation == nil
}

package openai

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/recognize"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/tree"
)

// addItems adds messages at the end of the active branch of the conversation that the
// path names. It gives all of them, and the conversation as it is then. Attempts of the
// request may come at the same time, and to several servers.
//
// If the request has a key, the ids of the messages derive from key and body, and each
// attempt gives the same messages. Without one, those that saidBefore finds aren't added,
// and the head that was looked at must still be the head. Where it isn't, what went on
// from it may be another attempt of the request: an SDK's client doesn't say the same
// twice at one moment.
func addItems(r *server.Request, body []byte, h tree.History, files recognize.Files) (c tree.Conversation, all []tree.Message, err error) {
	key, repeated := r.Header.Get("Idempotency-Key"), recognize.AttemptOf(r.Header, "", nil).Retried
	for {
		if c, err = namedConversation(r); err != nil {
			return c, nil, err
		}
		at := tree.AtHead()
		if key == "" {
			at = tree.IfHead(c.HeadID)
			if all, err = saidBefore(r, c, h.Messages, repeated); err != nil {
				return c, nil, err
			}
		}
		known := len(all)
		rest := h.After(known)
		if len(rest) == 0 {
			return c, all, nil
		}
		for i := 0; i < len(rest) && key != ""; i++ {
			if rest[i].ID, err = r.Store().DeriveID(r.Context(), "items", fmt.Sprintf("%s\x00%s\x00%x\x00%d", c.ID, key, sha256.Sum256(body), i)); err != nil {
				return c, nil, err
			}
		}
		if err = files.Keep(r.Context(), r.Store())(h.Messages[known:]); err != nil {
			return c, nil, err
		}
		added, err := r.Store().AppendChain(r.Context(), c.ID, c.HeadID, rest, at)
		switch {
		case err == nil:
			if added.Created {
				c.HeadID = added.Messages[len(rest)-1].ID
			}
			return c, append(all, added.Messages...), nil
		case fault.Of(err).Code != "changed_meanwhile":
			return c, nil, server.ConflictOfKey(inParameter(err, "items"), key != "")
		}
		repeated = repeated || r.Header.Get("X-Stainless-Retry-Count") != ""
	}
}

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
	// Of the branch, those count that clients see, and no more than one request can bring.
	var stored []tree.Message
	taken := 0
	for m, err := range branchMessages(r, c, wire.Page{Limit: len(messages)}, uuid.Nil) {
		if err != nil {
			return nil, err
		}
		if !reply.IsStep(m) {
			stored = append(stored, m)
		}
		if taken += len(m.Body); len(stored) == len(messages) || taken > MaxBody {
			break
		}
	}
	slices.Reverse(stored)
	for end := stored[max(0, len(stored)-len(messages)):]; len(end) > 0; end = end[1:] {
		known := retried && len(end) == len(messages) || slices.ContainsFunc(end, answersAlone)
		if known && slices.EqualFunc(end, messages[:len(end)], recognize.Means) {
			return end, nil
		}
	}
	return nil, nil
}

// answersAlone tells whether a message is the answer of a response whose request
// named no conversation.
func answersAlone(m tree.Message) bool {
	echo := storedMetadataOf(m.Metadata).Echo
	return echo != nil && echo.Conversation == nil
}

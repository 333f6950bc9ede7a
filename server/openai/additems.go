package openai

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/recognize"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

// An addition is messages that a request adds at the end of a conversation's active
// branch. Attempts of the request may come at the same time, and to several servers.
type addition struct {
	r *server.Request
	tree.History
	files recognize.Files
}

// add adds the messages but those that saidBefore finds. It gives all of them, and the
// conversation as it is then. The head that was looked at must still be the head. Where it
// isn't, what went on from it may be another attempt of the request: an SDK's client
// doesn't say the same twice at one moment.
//
// If the request has a key, the ids of the messages derive from key and body. Its attempts
// give the same messages for good, as long as these are on the active branch.
func (a addition) add(key string, body []byte) (c tree.Conversation, all []tree.Message, err error) {
	repeated := key == "" && recognize.AttemptOf(a.r.Header, "", nil).Retried
	for {
		if c, err = namedConversation(a.r); err != nil {
			return c, nil, err
		}
		var ids []uuid.UUID
		if key != "" {
			if ids, err = a.ids(c, key, body); err != nil {
				return c, nil, err
			}
			last, err := a.r.Store().Message(a.r.Context(), c.ID, ids[len(ids)-1])
			if err == nil {
				all, err = a.stored(c, last.ID)
			}
			if err == nil || !errors.Is(err, fault.NotFound) {
				return c, all, err
			}
		}
		there, err := saidBefore(a.r, c, a.Messages, repeated)
		if err != nil {
			return c, nil, err
		}
		all, err = a.append(&c, there, ids)
		if err == nil || fault.Of(err).Code != "changed_meanwhile" {
			return c, all, server.ConflictOfKey(err, key != "")
		}
		repeated = repeated || key == "" && a.r.Header.Get("X-Stainless-Retry-Count") != ""
	}
}

func (a addition) ids(c tree.Conversation, key string, body []byte) (ids []uuid.UUID, err error) {
	ids = make([]uuid.UUID, len(a.Messages))
	sum := sha256.Sum256(body)
	for i := range ids {
		if ids[i], err = a.r.Store().DeriveID(a.r.Context(), "items", fmt.Sprintf("%s\x00%s\x00%x\x00%d", c.ID, key, sum, i)); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// stored gives the messages of a request whose last one is in the tree.
func (a addition) stored(c tree.Conversation, last uuid.UUID) ([]tree.Message, error) {
	_, _, err := a.r.Store().BranchFrom(a.r.Context(), c.ID, c.HeadID, last, 1)
	if errors.Is(err, fault.NotFound) {
		return nil, server.ConflictOfKey(fault.New(fault.Conflict, string(server.CodeIDConflict), "id", "The items are on another branch."), true)
	}
	if err != nil {
		return nil, err
	}
	c.HeadID = last
	return lastShown(a.r, c, len(a.Messages))
}

// append stores the messages behind those that are there, with these ids if any.
func (a addition) append(c *tree.Conversation, there []tree.Message, ids []uuid.UUID) ([]tree.Message, error) {
	rest := a.After(len(there))
	if len(rest) == 0 {
		return there, nil
	}
	if err := a.files.Keep(a.r.Context(), a.r.Store())(a.Messages[len(there):]); err != nil {
		return nil, err
	}
	for i := range ids[min(len(there), len(ids)):] {
		rest[i].ID = ids[len(there)+i]
	}
	added, err := a.r.Store().AppendChain(a.r.Context(), c.ID, c.HeadID, rest, tree.IfHead(c.HeadID))
	if err != nil {
		return nil, inParameter(err, "items")
	}
	c.HeadID = added.Messages[len(added.Messages)-1].ID
	return append(there, added.Messages...), nil
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

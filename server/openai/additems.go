package openai

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/recognize"
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

// atHead adds the messages but those that saidBefore finds. It gives all of them, and
// the conversation as it is then. The head that was looked at must still be the head.
// Where it isn't, what went on from it may be another attempt of the request: an SDK's
// client doesn't say the same twice at one moment.
func (a addition) atHead() (c tree.Conversation, all []tree.Message, err error) {
	for repeated := recognize.AttemptOf(a.r.Header, "", nil).Retried; ; repeated = repeated || a.r.Header.Get("X-Stainless-Retry-Count") != "" {
		if c, err = namedConversation(a.r); err != nil {
			return c, nil, err
		}
		there, err := saidBefore(a.r, c, a.Messages, repeated)
		if err != nil {
			return c, nil, err
		}
		all, err = a.add(&c, there, nil, tree.IfHead(c.HeadID))
		if err == nil || fault.Of(err).Code != "changed_meanwhile" {
			return c, all, err
		}
	}
}

// once adds the messages of the request that a key and its bytes name: their ids
// derive from these. The request's attempts give the same messages for good, as long as
// these are on the active branch.
func (a addition) once(key string, body []byte) (c tree.Conversation, all []tree.Message, err error) {
	if c, err = namedConversation(a.r); err != nil {
		return c, nil, err
	}
	ids, sum := make([]uuid.UUID, len(a.Messages)), sha256.Sum256(body)
	for i := range ids {
		if ids[i], err = a.r.Store().DeriveID(a.r.Context(), "items", fmt.Sprintf("%s\x00%s\x00%x\x00%d", c.ID, key, sum, i)); err != nil {
			return c, nil, err
		}
	}
	last, err := a.r.Store().Message(a.r.Context(), c.ID, ids[len(ids)-1])
	switch {
	case err == nil:
		all, err = a.stored(c, last.ID)
		return c, all, err
	case !errors.Is(err, fault.NotFound):
		return c, nil, err
	}
	there, err := saidBefore(a.r, c, a.Messages, false)
	if err != nil {
		return c, nil, err
	}
	all, err = a.add(&c, there, ids, tree.AtHead())
	return c, all, server.ConflictOfKey(err, true)
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

// add stores the messages behind those that are there, with these ids if any.
func (a addition) add(c *tree.Conversation, there []tree.Message, ids []uuid.UUID, at tree.AppendOption) ([]tree.Message, error) {
	rest := a.After(len(there))
	if len(rest) == 0 {
		return there, nil
	}
	if err := a.files.Store(a.r.Context(), a.r.Store(), a.Messages[len(there):]...); err != nil {
		return nil, err
	}
	if ids != nil {
		for i, id := range ids[len(there):] {
			rest[i].ID = id
		}
	}
	added, err := a.r.Store().AppendChain(a.r.Context(), c.ID, c.HeadID, rest, at)
	if err != nil {
		return nil, inItems(err)
	}
	c.HeadID = added.Messages[len(added.Messages)-1].ID
	return append(there, added.Messages...), nil
}

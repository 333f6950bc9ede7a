package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/tree"
)

func appendMessages(r *Request) (Answer, error) {
	b := r.body.(*appendBody)
	id, err := r.ID("conversation_id")
	if err != nil {
		return nil, err
	}
	derived, err := r.nameMessages(b.Messages, id)
	if err != nil {
		return nil, err
	}
	var options []tree.AppendOption
	if b.keepHead {
		options = append(options, tree.KeepHead())
	}
	if b.parentID == nil {
		options = append(options, tree.AtHead())
	}
	if b.list {
		return r.appendChain(id, b, derived, options)
	}
	m, err := r.Store().Append(r.Context(), id, deref(b.parentID), b.Messages[0], options...)
	r.server.countAppend(1, m.Created, err)
	if err != nil {
		return nil, ConflictOfKey(err, derived["id"])
	}
	return answerCreated(m.Message, m.Created, messagePath(m.Message))
}

func (r *Request) appendChain(id uuid.UUID, b *appendBody, derived map[string]bool, options []tree.AppendOption) (Answer, error) {
	chain, err := r.Store().AppendChain(r.Context(), id, deref(b.parentID), b.Messages, options...)
	r.server.countAppend(len(chain.Messages), chain.Created, err)
	if err != nil {
		return nil, b.Given(ConflictOfKey(err, derived[deref(toProblem(err).Field)]))
	}
	a, err := answerPage(tree.Page[tree.Message]{Data: chain.Messages})
	if chain.Created {
		a.status, a.location = http.StatusCreated, messagePath(chain.Messages[len(chain.Messages)-1])
	}
	return a, err
}

func messagePath(m tree.Message) string {
	return conversationPath(m.ConversationID) + "/messages/" + m.ID.String()
}

// nameMessages gives messages without an id of their own the ids that derive
// from the Idempotency-Key, and tells by their fields which they are.
func (r *Request) nameMessages(messages []tree.NewMessage, conversationID uuid.UUID) (derived map[string]bool, err error) {
	key, err := r.idempotencyKey()
	if err != nil || key == nil {
		return nil, err
	}
	derived = make(map[string]bool)
	scope := conversationID.String() + "/messages"
	for i := range messages {
		if messages[i].ID != uuid.Nil {
			continue
		}
		if messages[i].ID, err = r.deriveID(*key, scope, i); err != nil {
			return nil, err
		}
		derived[fmt.Sprintf("messages[%d].id", i)] = true
		derived["id"] = true // of the only one, where it is no chain
	}
	return derived, nil
}

func getMessage(r *Request) (Answer, error) {
	conversationID, messageID, err := r.ids("message_id")
	if err != nil {
		return nil, err
	}
	m, err := r.Store().Message(r.Context(), conversationID, messageID)
	if err != nil {
		return nil, err
	}
	return answerWith(m)
}

// messageUpdate is the schema of this name.
type messageUpdate struct {
	pinned      *bool
	rating      json.RawMessage
	label, note nullable
}

func (b *messageUpdate) fields() []field {
	return []field{{"label", false, &b.label}, {"note", false, &b.note}, {"pinned", false, &b.pinned}, {"rating", false, &b.rating}}
}

func (b *messageUpdate) read(o reader.Object) error {
	if o.Empty() {
		return problemf(CodeMissingField, "", "Nothing is to be changed. Send one of %s.", strings.Join(names(b.fields()), ", "))
	}
	return bind(o, b.fields())
}

// update is what the body asks for.
func (b *messageUpdate) update() (u tree.MessageUpdate, err error) {
	u.Pinned = b.pinned
	if b.rating != nil {
		u.Rating = new(int)
		if string(b.rating) != "null" {
			if *u.Rating, err = strconv.Atoi(string(b.rating)); err != nil || *u.Rating == 0 {
				return u, problemf(CodeInvalidParameter, "rating", "A rating is 1 or -1, or null for none.")
			}
		}
	}
	u.Label, u.Note = b.label.orNone(), b.note.orNone()
	return u, nil
}

func updateMessage(r *Request) (Answer, error) {
	conversationID, messageID, err := r.ids("message_id")
	if err != nil {
		return nil, err
	}
	u, err := r.body.(*messageUpdate).update()
	if err != nil {
		return nil, err
	}
	m, err := r.Store().UpdateMessage(r.Context(), conversationID, messageID, u)
	if err != nil {
		return nil, err
	}
	return answerWith(m)
}

func pruneMessage(r *Request) (Answer, error) {
	conversationID, messageID, err := r.ids("message_id")
	if err != nil {
		return nil, err
	}
	keep, err := r.flag("keep_below", false)
	if err != nil {
		return nil, err
	}
	prune := r.Store().Prune
	if keep {
		prune = r.Store().Remove
	}
	pruned, err := prune(r.Context(), conversationID, messageID)
	if err != nil {
		return nil, err
	}
	return answerWith(pruned)
}

func listChildren(r *Request) (Answer, error) {
	_, messageID, err := r.ids("message_id")
	if err != nil {
		return nil, err
	}
	return r.children(messageID)
}

func listRoots(r *Request) (Answer, error) { return r.children(uuid.Nil) }

// children lists the messages below one, or the roots.
func (r *Request) children(parentID uuid.UUID) (Answer, error) {
	conversationID, p, err := r.list()
	if err != nil {
		return nil, err
	}
	list, err := r.Store().Children(r.Context(), conversationID, parentID, p)
	if err != nil {
		return nil, err
	}
	return answerPage(list)
}

func getNewestLeaf(r *Request) (Answer, error) {
	conversationID, messageID, err := r.ids("message_id")
	if err != nil {
		return nil, err
	}
	m, err := r.Store().NewestLeaf(r.Context(), conversationID, messageID)
	if err != nil {
		return nil, err
	}
	return answerWith(m)
}

func forkMessage(r *Request) (Answer, error) {
	conversationID, messageID, err := r.ids("message_id")
	if err != nil {
		return nil, err
	}
	n, derived, err := r.newConversation(fmt.Sprintf("%s/messages/%s/fork", conversationID, messageID))
	if err != nil {
		return nil, err
	}
	var options []tree.ForkOption
	switch given := r.Query("siblings"); {
	case given == nil, *given == "none":
	case *given == "all":
		options = append(options, tree.WithAlternates())
	default:
		return nil, problemf(CodeInvalidParameter, "siblings", "It is none or all.")
	}
	c, created, err := r.Store().Fork(r.Context(), conversationID, messageID, n, options...)
	if err != nil {
		return nil, ConflictOfKey(err, derived)
	}
	return answerCreated(c, created, conversationPath(c.ID))
}

package tree

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
)

// Fork copies a message's path, verbatim, and the summaries that hold for it
// into a new conversation whose active head is the message's copy. Of n, ID,
// Title, Metadata and Settings count; a title, metadata or settings that it
// leaves out are the source's, and the metadata then says where it comes from
// under "forked_from". The copies' ids derive from the new conversation's id
// and theirs, so that the same fork with the same id again changes nothing
// and returns created false.
//
// The cost grows with the path, at about 25,000 messages a second.
func (s *Store) Fork(ctx context.Context, conversationID, messageID uuid.UUID, n NewConversation) (_ Conversation, created bool, err error) {
	defer wrap(&err, nil, "Fork(%s, %s)", conversationID, messageID)
	var out Conversation
	err = s.inTx(ctx, func(s *Store) error {
		source, err := s.lock(ctx, conversationID)
		if err != nil {
			return err
		}
		if err := s.q.AllowLongStatements(ctx); err != nil {
			return err
		}
		if _, err := s.Message(ctx, conversationID, messageID); err != nil {
			return err
		}
		if n, err = forked(source, messageID, n); err != nil {
			return err
		}
		if out, created, err = s.CreateConversation(ctx, n); err != nil || !created {
			return err
		}
		return s.copyPath(ctx, &out, conversationID, messageID)
	})
	return out, created, err
}

func (s *Store) copyPath(ctx context.Context, to *Conversation, from, messageID uuid.UUID) error {
	old, err := s.q.ListPathIDs(ctx, db.ListPathIDsParams{ConversationID: toUUID(from), HeadID: toUUID(messageID)})
	if err != nil {
		return err
	}
	copies := make([]uuid.UUID, len(old))
	for i, id := range old {
		copies[i] = copyID(to.ID, uuid.UUID(id.Bytes))
	}
	if _, err := s.q.CopyPath(ctx, db.CopyPathParams{
		ToConversationID: toUUID(to.ID), FromConversationID: toUUID(from), OldIds: old, NewIds: toUUIDs(copies),
	}); err != nil {
		return err
	}
	to.HeadID = copyID(to.ID, messageID)
	return s.q.MoveHead(ctx, db.MoveHeadParams{ID: toUUID(to.ID), HeadID: toUUID(to.HeadID), UpdatedAt: to.UpdatedAt})
}

// forked fills in what n leaves out from the source of the fork.
func forked(source db.Conversation, messageID uuid.UUID, n NewConversation) (NewConversation, error) {
	if n.Title == "" {
		n.Title = source.Title
	}
	if n.Settings == nil {
		n.Settings = source.Settings
	}
	if n.Metadata != nil {
		return n, nil
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(source.Metadata, &members); err != nil {
		return n, err
	}
	origin, err := json.Marshal(map[string]string{"conversation_id": source.ID.String(), "message_id": messageID.String()})
	if err != nil {
		return n, err
	}
	members["forked_from"] = origin
	n.Metadata, err = json.Marshal(members)
	return n, err
}

// copyID is the id of a node's copy in another conversation.
func copyID(conversationID, id uuid.UUID) uuid.UUID { return uuid.NewSHA1(conversationID, id[:]) }

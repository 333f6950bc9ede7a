package tree

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// Fork copies a message's path, verbatim, and the summaries that hold for it into
// a new conversation. The copy of the message becomes its active head. Fork uses
// the ID, Title, Metadata, Settings and Order of n. A title, metadata, settings or
// tags that n leaves out are those of the source, and the metadata then names the source
// under "forked_from", if there is room for that. The ids of the copies are derived from the new
// conversation's id and their own.
//
// Asked again for the same fork, with the same id, message and n, Fork changes
// nothing and returns created false, even if the source or the fork have changed
// since. If another conversation has the id, it is a fault.Conflict.
//
// The cost grows with what is copied, at about 20,000 messages a second.
func (s *Store) Fork(ctx context.Context, conversationID, messageID uuid.UUID, n NewConversation, opts ...ForkOption) (_ Conversation, created bool, err error) {
	defer db.Wrap(&err, "tree.Fork(%s, %s)", conversationID, messageID)
	if n, err = checkSaid(n); err != nil {
		return Conversation{}, false, err
	}
	if err := s.checkSettings(n.Settings); err != nil {
		return Conversation{}, false, err
	}
	var o forkOptions
	for _, opt := range opts {
		opt(&o)
	}
	source := Source{conversationID, messageID, requestSum(n, o)}
	var out Conversation
	err = s.inTurn(ctx, conversationID, func(s *Store) error {
		if err := s.lockTenant(ctx); err != nil {
			return err
		}
		c, err := s.lock(ctx, conversationID)
		if err == nil {
			_, err = s.Message(ctx, conversationID, messageID)
		}
		if errors.Is(err, fault.NotFound) {
			out, err = s.earlierFork(ctx, n.ID, source, err)
			return err
		}
		if err != nil {
			return err
		}
		if n, err = forked(c, messageID, n); err != nil {
			return err
		}
		if n, err = checkNew(n); err != nil {
			return err
		}
		if out, created, err = s.create(ctx, n, source); err != nil || !created {
			return err
		}
		if err := s.allowLongStatements(ctx, func() error { return s.copyNodes(ctx, &out, conversationID, messageID, o) }); err != nil {
			return err
		}
		return s.note(ctx, Change{ConversationID: out.ID, Kind: ConversationCreated, Messages: out.messages})
	})
	if err != nil {
		return Conversation{}, false, err
	}
	return out, created, nil
}

// A ForkOption changes what a fork copies.
type ForkOption func(*forkOptions)

type forkOptions struct{ alternates bool }

// WithAlternates copies the other versions along, too: the siblings of each message of
// the path with all below them, and the summaries that hold there. What stands below the
// message itself is left out.
func WithAlternates() ForkOption { return func(o *forkOptions) { o.alternates = true } }

// requestSum tells what two requests for a fork say apart.
func requestSum(n NewConversation, o forkOptions) string {
	said := []any{n.Title, n.Metadata, n.Settings}
	if o.alternates {
		said = append(said, "alternates")
	}
	raw, _ := json.Marshal(said) // which checkSaid has found sound
	return fmt.Sprintf("%x", sha256.Sum256(raw))
}

// earlierFork is the fork that the same request made before its source was
// deleted, or else the error that the source is missing.
func (s *Store) earlierFork(ctx context.Context, id uuid.UUID, source Source, missing error) (Conversation, error) {
	there, err := s.Conversation(ctx, id)
	if errors.Is(err, fault.NotFound) || err == nil && there.Source != source {
		return Conversation{}, missing
	}
	return there, err
}

// copyChunk is how many nodes are copied at a time, so that memory doesn't
// grow with the path but for its ids.
const copyChunk = 1000

// copyNodes copies in chunks through the program. One statement that joined the
// new ids to the nodes would be planned for ten of them, and take hours for a
// million.
func (s *Store) copyNodes(ctx context.Context, to *Conversation, from, messageID uuid.UUID, o forkOptions) error {
	path, err := s.nodesToCopy(ctx, from, messageID, o)
	if err != nil {
		return err
	}
	summaries := map[pgtype.UUID]bool{}
	for _, n := range path {
		if n.IsSummary {
			summaries[n.ID] = true
		}
	}
	to.messages = len(path) - len(summaries)
	if err := s.roomFor(0, to.messages); err != nil {
		return err
	}
	copied := func(id uuid.UUID) uuid.UUID { return copyID(to.ID, id) }
	for chunk := range slices.Chunk(path, copyChunk) {
		ids := make([]pgtype.UUID, len(chunk))
		for i, n := range chunk {
			ids[i] = n.ID
		}
		nodes, err := s.q.ListNodes(ctx, db.ListNodesParams{ConversationID: toUUID(from), Ids: ids})
		if err != nil {
			return err
		}
		copies := make([]db.CopyNodesParams, len(nodes))
		for i, n := range nodes {
			copies[i] = copyNode(n, to.ID, summaries)
			if n.SiblingIndex.Valid && !o.alternates {
				copies[i].SiblingIndex.Int32 = 1
			}
		}
		if err := s.copyRows(ctx, copies); err != nil {
			return err
		}
		if err := s.copyUses(ctx, from, to.ID, ids, copied); err != nil {
			return err
		}
		if err := s.copyEmbeddings(ctx, from, to.ID, ids, copied); err != nil {
			return err
		}
	}
	to.HeadID = copyID(to.ID, messageID)
	return s.q.MoveHead(ctx, db.MoveHeadParams{ID: toUUID(to.ID), HeadID: toUUID(to.HeadID), UpdatedAt: to.UpdatedAt, AddedMessages: int32(to.messages)})
}

// nodesToCopy are the ids of what a fork copies, a parent before its children.
func (s *Store) nodesToCopy(ctx context.Context, from, messageID uuid.UUID, o forkOptions) ([]db.ListPathRow, error) {
	if !o.alternates {
		return s.q.ListPath(ctx, db.ListPathParams{ConversationID: toUUID(from), HeadID: toUUID(messageID)})
	}
	return s.q.ListBeside(ctx, db.ListBesideParams{ConversationID: toUUID(from), ID: toUUID(messageID)})
}

// copyNode is a node in another conversation, with every id that it names
// translated. A prior summary that is not among the copied, because it was
// undone, is named no more.
func copyNode(n db.Node, to uuid.UUID, summaries map[pgtype.UUID]bool) db.CopyNodesParams {
	translate := func(id pgtype.UUID) pgtype.UUID {
		if !id.Valid {
			return id
		}
		return toUUID(copyID(to, uuid.UUID(id.Bytes)))
	}
	if !summaries[n.PriorSummaryID] {
		n.PriorSummaryID = pgtype.UUID{}
	}
	c := db.CopyNodesParams(n)
	c.ConversationID, c.ID, c.ParentID, c.PrefixID = toUUID(to), translate(n.ID), translate(n.ParentID), translate(n.PrefixID)
	c.LastSummarizedID, c.PriorSummaryID = translate(n.LastSummarizedID), translate(n.PriorSummaryID)
	c.PathHash = nil // a client that keeps no ids goes on where it was
	if n.Kind == string(KindMessage) {
		c.Origin = graftedFrom(n.Origin, func(id uuid.UUID) uuid.UUID { return uuid.UUID(translate(toUUID(id)).Bytes) })
	}
	for i, id := range n.KeptIds {
		c.KeptIds[i] = translate(id)
	}
	return c
}

// forked fills in what n leaves out from the source of the fork.
func forked(source db.Conversation, messageID uuid.UUID, n NewConversation) (NewConversation, error) {
	if n.Title == "" {
		n.Title = source.Title
	}
	if n.Settings == nil {
		n.Settings = source.Settings
	}
	if n.Tags == nil {
		n.Tags = source.Tags
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
	if n.Metadata, err = json.Marshal(members); len(n.Metadata) > MaxMetadataBytes {
		n.Metadata = source.Metadata // without a name of the source, rather than no fork
	}
	return n, err
}

// copyID is the id of a node's copy in another conversation.
func copyID(conversationID, id uuid.UUID) uuid.UUID { return uuid.NewSHA1(conversationID, id[:]) }

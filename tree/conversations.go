package tree

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

var none = json.RawMessage("{}")

// CreateConversation makes a conversation without messages. If this tenant has a
// conversation of the id already, it returns that conversation and created false
// where title, metadata and settings are the same and the conversation isn't a
// fork, and a fault.Conflict otherwise.
func (s *Store) CreateConversation(ctx context.Context, n NewConversation) (_ Conversation, created bool, err error) {
	defer db.Wrap(&err, "tree.CreateConversation(%s)", n.ID)
	if n, err = checkNew(n); err != nil {
		return Conversation{}, false, err
	}
	if err := s.checkSettings(n.Settings); err != nil {
		return Conversation{}, false, err
	}
	return s.create(ctx, n, Source{})
}

// create makes a conversation, or gives the one that the same request made. Of a
// fork that is for its source to tell: both conversations may have changed.
func (s *Store) create(ctx context.Context, n NewConversation, source Source) (_ Conversation, created bool, err error) {
	row, err := s.insertConversation(ctx, n, source, source == (Source{}))
	if err == nil {
		if source == (Source{}) {
			s.committing(n.ID)
		}
		return fromConversation(row), true, nil
	}
	if !isNoRows(err) {
		return Conversation{}, false, err
	}
	there, err := s.Conversation(ctx, n.ID)
	if err == nil && there.Source == source &&
		(source != Source{} || there.Title == n.Title && sameJSON(there.Metadata, n.Metadata) && sameJSON(there.Settings, n.Settings)) {
		return there, false, nil
	}
	// The id may be another tenant's, which nothing here tells.
	if err == nil || errors.Is(err, fault.NotFound) {
		err = conflict("id", "The id %s is taken. Send a new id, or none.", n.ID)
	}
	return Conversation{}, false, err
}

// insertConversation makes a conversation, and notes that where nothing is copied
// into it: else whoever copies does so in the end.
func (s *Store) insertConversation(ctx context.Context, n NewConversation, source Source, noted bool) (row db.Conversation, err error) {
	params := db.InsertConversationParams{
		ID: toUUID(n.ID), TenantID: s.tenant, Title: n.Title, Metadata: n.Metadata, Settings: n.Settings,
		CreatedAt: n.CreatedAt, UpdatedAt: n.CreatedAt, Archived: n.Archived, Pinned: n.Pinned, Tags: n.Tags,
		SourceConversationID: toUUID(source.ConversationID), SourceMessageID: toUUID(source.MessageID),
		// The time, so that a conversation counts on where a deleted one of its id
		// ended, whosever that was.
		OwnerID:     cmp.Or(n.OwnerID, s.actor.User),
		FirstChange: now().UnixMicro(), NotedAt: pgtype.Timestamptz{Time: now(), Valid: noted},
	}
	if !n.Shared {
		params.PrivateTo = params.OwnerID
	}
	if source != (Source{}) {
		if !source.Valid() {
			return row, fault.New(fault.Invalid, "invalid_id", "source", "A fork's source is two ids and a SHA-256 in hex. Give all three, or none.")
		}
		params.SourceRequest, _ = hex.DecodeString(source.Request)
	}
	if s.limits.Conversations == 0 {
		return s.q.InsertConversation(ctx, params)
	}
	err = s.inTx(ctx, func(s *Store) error {
		if err := s.lockTenant(ctx); err != nil {
			return err
		}
		if row, err = s.q.InsertConversation(ctx, params); err != nil {
			return err
		}
		return s.checkConversations(ctx)
	})
	return row, err
}

// checkSaid checks what a caller says of a new conversation.
func checkSaid(n NewConversation) (_ NewConversation, err error) {
	if err = checkTitle(n.Title); err != nil {
		return n, err
	}
	if n.Metadata, err = checkExtra(n.Metadata, "metadata"); err != nil {
		return n, err
	}
	if n.Settings, err = checkExtra(n.Settings, "settings"); err != nil {
		return n, err
	}
	if err := access.CheckUser("owner_id", n.OwnerID); err != nil {
		return n, err
	}
	return n, checkTags(n.Tags)
}

// checkNew fills in what a caller leaves out, besides.
func checkNew(n NewConversation) (NewConversation, error) {
	n, err := checkSaid(n)
	if err != nil {
		return n, err
	}
	if n.Metadata == nil {
		n.Metadata = none
	}
	if n.Settings == nil {
		n.Settings = none
	}
	if n.Tags == nil {
		n.Tags = []string{}
	}
	if n.ID == uuid.Nil {
		n.ID = newID()
	}
	if n.CreatedAt.IsZero() {
		n.CreatedAt = now()
	}
	n.CreatedAt = stamp(n.CreatedAt)
	return n, nil
}

// Conversation reads one conversation.
func (s *Store) Conversation(ctx context.Context, id uuid.UUID) (_ Conversation, err error) {
	defer db.Wrap(&err, "tree.Conversation(%s)", id)
	row, err := s.q.GetConversation(ctx, db.GetConversationParams{ID: toUUID(id), TenantID: s.tenant, Reader: s.reader})
	if err != nil {
		return Conversation{}, orMissing(err, errConversationNotFound)
	}
	return fromConversation(row), nil
}

// Head returns a conversation's active head. While there is no message, it is a
// fault.NotFound.
func (s *Store) Head(ctx context.Context, conversationID uuid.UUID) (_ uuid.UUID, err error) {
	c, err := s.Conversation(ctx, conversationID)
	if err != nil {
		return uuid.Nil, err
	}
	if c.HeadID == uuid.Nil {
		return uuid.Nil, errNoActiveHead
	}
	return c.HeadID, nil
}

var errNoActiveHead = fault.New(fault.NotFound, "no_active_head", "",
	"The conversation has no message yet, so no branch is active. Append one first.")

// Conversations lists the conversations that a filter keeps. Pinned ones stand
// first, and of both sorts the one that changed last, by a message or a prune. A
// query keeps the conversations whose title contains it, in upper or lower case, and
// those that the filter names.
//
// Without a query or a tag, a page costs its rows, and those of the minutes in which it
// begins and ends. With one it costs the conversations down to its last row.
func (s *Store) Conversations(ctx context.Context, f ConversationFilter, p Paging) (_ Page[Conversation], err error) {
	defer db.Wrap(&err, "tree.Conversations(%+v)", p)
	limit, after, err := p.pinnedFirst("conversations", s.tenant, strconv.FormatBool(f.Archived), strconv.Quote(f.Tag), f.Query)
	if err != nil {
		return Page[Conversation]{}, err
	}
	if f.Tag != "" {
		if err := checkTag(f.Tag, "tag"); err != nil {
			return Page[Conversation]{}, err
		}
	}
	if err := CheckQuery(f.Query); err != nil {
		return Page[Conversation]{}, err
	}
	params := db.ListConversationsParams{
		TenantID: s.tenant, Reader: s.reader, Archived: f.Archived, Tag: f.Tag, Chosen: f.Chosen, Among: toUUIDs(f.Among),
		BeforePinned: after.pinned, BeforeUpdatedAt: after.time(), BeforeID: toUUID(after.ID),
		RowLimit: int32(limit), ByteLimit: MaxPageBytes,
	}
	rows, err := s.q.ListConversations(ctx, params)
	if err != nil {
		return Page[Conversation]{}, err
	}
	out, more := make([]Conversation, len(rows)), false
	for i, row := range rows {
		out[i], more = fromListed(row), row.More
	}
	if f.Shapes {
		if err := s.addShapes(ctx, out); err != nil {
			return Page[Conversation]{}, err
		}
	}
	return paged(out, more, after, func(c Conversation) Position {
		last := timed(c.UpdatedAt, c.ID)
		last.pinned = c.Pinned
		return last
	}), nil
}

// addShapes tells the shape of each conversation that has a message, by one query
// for all of them.
func (s *Store) addShapes(ctx context.Context, list []Conversation) error {
	ids := make([]uuid.UUID, len(list))
	for i, c := range list {
		ids[i] = c.ID
	}
	rows, err := s.q.ListBranchLengths(ctx, db.ListBranchLengthsParams{Ids: toUUIDs(ids), TenantID: s.tenant, Reader: s.reader})
	if err != nil {
		return err
	}
	branch := make(map[uuid.UUID]int, len(rows))
	for _, row := range rows {
		branch[row.ID.Bytes] = int(row.Messages)
	}
	for i, c := range list {
		if n := branch[c.ID]; n > 0 {
			list[i].Shape = Shape{Messages: max(c.messages, n), BranchMessages: n}
		}
	}
	return nil
}

func fromListed(row db.ListConversationsRow) Conversation {
	return fromConversation(db.Conversation{
		ID: row.ID, TenantID: row.TenantID, Title: row.Title, Metadata: row.Metadata, Settings: row.Settings, HeadID: row.HeadID,
		CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt, MessageCount: row.MessageCount, SourceConversationID: row.SourceConversationID,
		SourceMessageID: row.SourceMessageID, SourceRequest: row.SourceRequest, ChangeCount: row.ChangeCount,
		Archived: row.Archived, Pinned: row.Pinned, Tags: row.Tags, OwnerID: row.OwnerID, Reader: row.Reader,
	})
}

// MaxQueryBytes is how long the text of a search is at most.
const MaxQueryBytes = 1000

// CheckQuery checks the text of a search.
func CheckQuery(query string) error { return checkText(query, "query", MaxQueryBytes) }

// UpdateConversation changes the title, metadata, settings, active head or order. A head
// that isn't a message of the conversation is a fault.Invalid. If HeadFrom isn't the
// active head any more, it is a fault.Conflict. UpdatedAt stays as it is.
func (s *Store) UpdateConversation(ctx context.Context, id uuid.UUID, u ConversationUpdate) (_ Conversation, err error) {
	defer db.Wrap(&err, "tree.UpdateConversation(%s)", id)
	params := db.UpdateConversationParams{ID: toUUID(id), TenantID: s.tenant, Reader: s.reader, HeadID: toUUID(u.HeadID)}
	if u.Title != nil {
		if err := checkTitle(*u.Title); err != nil {
			return Conversation{}, err
		}
		params.Title = pgtype.Text{String: *u.Title, Valid: true}
	}
	if err := s.updateObjects(u, &params); err != nil {
		return Conversation{}, err
	}
	if err := checkTags(u.Tags); err != nil {
		return Conversation{}, err
	}
	params.Archived, params.Pinned, params.Tags = toBool(u.Archived), toBool(u.Pinned), u.Tags
	if u.Title == nil && params.Metadata == nil && u.ChangeMetadata == nil && params.Settings == nil && u.HeadID == uuid.Nil &&
		u.Archived == nil && u.Pinned == nil && u.Tags == nil && u.OwnerID == nil && u.Private == nil && u.If == nil {
		return s.Conversation(ctx, id)
	}
	var row db.Conversation
	err = s.inTurn(ctx, id, func(s *Store) error {
		was, err := s.lock(ctx, id)
		if err != nil {
			return err
		}
		if u.If != nil {
			if err := u.If(fromConversation(was)); err != nil {
				return err
			}
		}
		if u.Merge {
			merged := u
			merged.Merge = false
			if u.Metadata != nil {
				merged.Metadata = mergePatch(was.Metadata, u.Metadata)
			}
			if u.Settings != nil {
				merged.Settings = mergePatch(was.Settings, u.Settings)
			}
			if err := s.updateObjects(merged, &params); err != nil {
				return err
			}
		}
		if u.HeadFrom != uuid.Nil && u.HeadFrom != uuid.UUID(was.HeadID.Bytes) {
			return fault.New(fault.Conflict, "changed_meanwhile", "head_id", "Another branch became active meanwhile, or the branch went on. Read the conversation and move its head again.")
		}
		if u.ChangeMetadata != nil {
			if params.Metadata, err = checkExtra(u.ChangeMetadata(was.Metadata), "metadata"); err != nil {
				return err
			}
		}
		if u.OwnerID != nil || u.Private != nil {
			if err := s.hand(&params, was, u); err != nil {
				return err
			}
		}
		row, err = s.q.UpdateConversation(ctx, params)
		if isNoRows(err) {
			err = fault.New(fault.Invalid, "head_not_found", "head_id", "The conversation has no message with this id, so it can't be the active head.")
		}
		if err == nil && row.HeadID != was.HeadID {
			err = s.note(ctx, Change{ConversationID: id, Kind: HeadMoved, MessageID: u.HeadID})
		}
		handed := row.OwnerID != was.OwnerID || row.Reader != was.Reader
		if err == nil && handed {
			err = s.Admin().Audit(ctx, AuditEvent{Action: ActionConversationHanded, ConversationID: id, Detail: row.OwnerID + " " + string(visibility(row.OwnerID, row.Reader))})
		}
		if err == nil && (handed || row.Title != was.Title || params.Metadata != nil || params.Settings != nil ||
			row.Archived != was.Archived || row.Pinned != was.Pinned || !slices.Equal(row.Tags, was.Tags)) {
			err = s.note(ctx, Change{ConversationID: id, Kind: ConversationUpdated})
		}
		return err
	})
	if err != nil {
		return Conversation{}, err
	}
	return fromConversation(row), nil
}

// updateObjects checks the metadata and the settings of an update. Patches are checked
// again when they are merged.
func (s *Store) updateObjects(u ConversationUpdate, params *db.UpdateConversationParams) (err error) {
	if params.Metadata, err = checkExtra(u.Metadata, "metadata"); err != nil {
		return err
	}
	if params.Settings, err = checkExtra(u.Settings, "settings"); err != nil || u.Merge {
		return err
	}
	return s.checkSettings(params.Settings)
}

// DeleteConversation deletes a conversation with all its nodes. The cost grows
// with them, at about 25,000 a second.
func (s *Store) DeleteConversation(ctx context.Context, id uuid.UUID) (err error) {
	defer db.Wrap(&err, "tree.DeleteConversation(%s)", id)
	return s.dropping(ctx, id, func(s *Store, c db.Conversation) error {
		if !s.actor.Owns(c.OwnerID) {
			return errNotOwner
		}
		return s.deleteConversation(ctx, id)
	})
}

// Readable returns those of the conversations that are the tenant's and that the Store's
// principal may read.
func (s *Store) Readable(ctx context.Context, ids []uuid.UUID) (readable []uuid.UUID, err error) {
	defer db.Wrap(&err, "tree.Readable(%d)", len(ids))
	rows, err := s.q.ListReadable(ctx, db.ListReadableParams{Ids: toUUIDs(ids), TenantID: s.tenant, Reader: s.reader})
	return fromUUIDs(rows), err
}

// hand sets who owns a conversation and whether only that one reads it.
func (s *Store) hand(params *db.UpdateConversationParams, was db.Conversation, u ConversationUpdate) error {
	owner, private := was.OwnerID, was.Reader != ""
	if u.OwnerID != nil {
		owner = *u.OwnerID
	}
	if u.Private != nil {
		private = *u.Private
	}
	switch {
	case !s.actor.Owns(was.OwnerID):
		return errNotOwner
	case owner != was.OwnerID && s.actor.User != "":
		return errNoOtherOwner
	}
	if err := access.CheckUser("owner_id", owner); err != nil {
		return err
	}
	params.OwnerID, params.PrivateTo = pgtype.Text{String: owner, Valid: true}, pgtype.Text{Valid: true}
	if private && owner == "" {
		return fault.New(fault.Invalid, "invalid_parameter", "visibility", "Without an owner, nobody could read it. Name one as owner_id.")
	}
	if private {
		params.PrivateTo.String = owner
	}
	return nil
}

// deleteConversation deletes a locked conversation.
func (s *Store) deleteConversation(ctx context.Context, id uuid.UUID) error {
	return s.allowLongStatements(ctx, func() error {
		if err := s.note(ctx, Change{ConversationID: id, Kind: ConversationDeleted}); err != nil {
			return err
		}
		if err := s.forgetAllWords(ctx, toUUID(id)); err != nil {
			return err
		}
		deleted, err := s.q.DeleteConversation(ctx, db.DeleteConversationParams{ID: toUUID(id), TenantID: s.tenant, Reader: s.reader})
		if err == nil && deleted == 0 {
			err = errConversationNotFound
		}
		if err != nil {
			return err
		}
		if err := s.q.DeletePlaces(ctx, toUUID(id)); err != nil {
			return err
		}
		return s.Admin().Audit(ctx, AuditEvent{Action: ActionConversationDeleted, ConversationID: id})
	})
}

// DeleteEmpty deletes a conversation if it has no message, and reports whether it
// had none. A message that another request stores at the same time keeps the
// conversation, or finds it gone and isn't stored.
func (s *Histories) DeleteEmpty(ctx context.Context, id uuid.UUID) (deleted bool, err error) {
	defer db.Wrap(&err, "tree.Histories.DeleteEmpty(%s)", id)
	err = s.store().inTurn(ctx, id, func(s *Store) error {
		c, err := s.lock(ctx, id)
		if err != nil || c.MessageCount > 0 {
			return ignoreNotFound(err)
		}
		deleted = true
		return s.deleteConversation(ctx, id)
	})
	return deleted && err == nil, err
}

// Lock keeps all other writers of a conversation waiting until the store's
// transaction ends. What is read after it stays true until then.
func (s *Store) Lock(ctx context.Context, conversationID uuid.UUID) (err error) {
	defer db.Wrap(&err, "tree.Lock(%s)", conversationID)
	_, err = s.lock(ctx, conversationID)
	return err
}

package tree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
)

// Import stores whole conversations in one transaction: all of them or none.
// Of a conversation that is there it adds the nodes that are missing and
// leaves everything else as it is, so that importing twice adds nothing; it
// tells which nodes are there and say something else. A node that is unsound, or whose parent is in neither the bundle nor the
// store, is an ErrInvalid that names it.
//
// Memory and cost grow with the largest conversation, stored nodes included.
func (s *Store) Import(ctx context.Context, bundles ...Bundle) (_ []Imported, err error) {
	defer wrap(&err, nil, "Import(%d bundles)", len(bundles))
	out := make([]Imported, len(bundles))
	err = s.inTx(ctx, func(s *Store) error {
		if err := s.takeTurn(ctx); err != nil {
			return err
		}
		for i, b := range bundles {
			if out[i], err = s.importOne(ctx, b); err != nil {
				return at(err, fmt.Sprintf("conversation %s", b.Conversation.ID))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Store) importOne(ctx context.Context, b Bundle) (Imported, error) {
	if b.Conversation.ID == uuid.Nil {
		return Imported{}, invalid("missing_id", "id", "A conversation to be imported needs an id, so that it can be imported again.")
	}
	n, err := checkNew(b.Conversation)
	if err != nil {
		return Imported{}, err
	}
	im := &importer{s: s, id: n.ID, known: map[uuid.UUID]known{}, siblings: map[uuid.UUID]int32{}}
	result := Imported{ConversationID: n.ID}
	_, err = s.insertConversation(ctx, n)
	switch {
	case err == nil:
		result.Created = true
	case isNoRows(err):
		err = im.load(ctx)
	}
	if err != nil {
		return Imported{}, err
	}
	var present []BundleNode
	for i, node := range b.Nodes {
		if k, ok := im.known[node.ID]; ok {
			result.Present++
			if k.stored && k.parentID != node.ParentID {
				result.Changed = append(result.Changed, Changed{ID: node.ID, Moved: true})
			} else if k.stored {
				present = append(present, node)
			}
			continue
		}
		if err := im.add(ctx, node); err != nil {
			return Imported{}, at(err, fmt.Sprintf("nodes[%d]", i))
		}
	}
	rewritten, err := im.rewritten(ctx, present)
	if err != nil {
		return Imported{}, err
	}
	result.Changed = append(result.Changed, rewritten...)
	result.Added = len(im.rows)
	if result.Added == 0 {
		return result, nil
	}
	if err := s.roomFor(im.stored, messageCount(im.rows)); err != nil {
		return Imported{}, err
	}
	if err := s.copyNodes(ctx, im.rows); err != nil {
		return Imported{}, err
	}
	return result, im.settleHead(ctx, b.HeadID, n.CreatedAt)
}

// An importer places one bundle's nodes among those that are stored.
type importer struct {
	s        *Store
	id       uuid.UUID
	known    map[uuid.UUID]known
	siblings map[uuid.UUID]int32 // children so far, by parent
	rows     []db.CopyNodesParams
	newest   db.CopyNodesParams // newest message added
	hadHead  bool
	stored   int // messages that were there before
}

// known is what placing a child under a node, or a summary over it, needs.
type known struct {
	place
	parentID uuid.UUID
	kind     Kind
	stored   bool
	body     *body // of a message that isn't stored yet
}

// load reads the places of a conversation that is there, and waits its turn.
func (im *importer) load(ctx context.Context) error {
	c, err := im.s.lock(ctx, im.id)
	if err != nil {
		return conflict("id", "The id %s is taken by a conversation that isn't this tenant's. "+
			"Import the file for the tenant that it was exported from, into another database, or with other ids.", im.id)
	}
	im.hadHead, im.stored = c.HeadID.Valid, int(c.MessageCount)
	rows, err := im.s.q.ListPlaces(ctx, toUUID(im.id))
	for _, row := range rows {
		parentID := uuid.UUID(row.ParentID.Bytes)
		im.known[uuid.UUID(row.ID.Bytes)] = known{
			place:    place{uuid.UUID(row.ID.Bytes), int(row.Depth), row.PathTokens, uuid.UUID(row.PrefixID.Bytes)},
			parentID: parentID, kind: Kind(row.Kind), stored: true,
		}
		im.siblings[parentID] = max(im.siblings[parentID], row.SiblingIndex.Int32)
	}
	return err
}

// rewritten finds those of stored nodes that say something else than the store.
// It reads the bodies of those alone, a few at a time.
func (im *importer) rewritten(ctx context.Context, nodes []BundleNode) (changed []Changed, err error) {
	const atOnce = 20 // bodies in memory besides the bundle's
	given := make(map[uuid.UUID]json.RawMessage, len(nodes))
	for _, n := range nodes {
		given[n.ID] = n.Body
	}
	sums, err := im.s.q.ListBodySums(ctx, db.ListBodySumsParams{ConversationID: toUUID(im.id), Ids: toUUIDs(slices.Collect(maps.Keys(given)))})
	if err != nil {
		return nil, err
	}
	differ := make(map[uuid.UUID]bool)
	for _, row := range sums {
		id := uuid.UUID(row.ID.Bytes)
		if sum := sha256.Sum256(given[id]); !bytes.Equal(sum[:], row.BodySum) {
			differ[id] = true
		}
	}
	for ids := range slices.Chunk(slices.Collect(maps.Keys(differ)), atOnce) {
		rows, err := im.s.q.ListNodes(ctx, db.ListNodesParams{ConversationID: toUUID(im.id), Ids: toUUIDs(ids)})
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			id := uuid.UUID(row.Node.ID.Bytes)
			differ[id] = !sameJSON(row.Node.Body, given[id])
		}
	}
	for _, n := range nodes { // in their order
		if differ[n.ID] {
			changed = append(changed, Changed{ID: n.ID})
			delete(differ, n.ID) // lest it be told twice
		}
	}
	return changed, nil
}

func (im *importer) add(ctx context.Context, n BundleNode) error {
	if n.ID == uuid.Nil {
		return invalid("missing_id", "id", "A node to be imported needs an id.")
	}
	parent, err := im.parent(n)
	if err != nil {
		return err
	}
	if n.Summary != nil {
		return im.addSummary(n, parent)
	}
	d, err := im.s.draft(NewMessage{ID: n.ID, Body: n.Body, Metadata: n.Metadata, Pinned: n.Pinned, CreatedAt: n.CreatedAt})
	if err != nil {
		return err
	}
	if d.Role == RoleTool {
		open, err := im.callsAt(ctx, n.ParentID)
		if err != nil {
			return err
		}
		if err := open.answer(d.body); err != nil {
			return err
		}
	}
	im.siblings[n.ParentID]++
	row, own := d.row(im.id, parent, im.siblings[n.ParentID])
	im.known[n.ID] = known{place: own, parentID: n.ParentID, kind: KindMessage, body: d.body}
	im.rows = append(im.rows, row)
	if im.newest.CreatedAt.IsZero() || !row.CreatedAt.Before(im.newest.CreatedAt) {
		im.newest = row
	}
	return nil
}

func (im *importer) parent(n BundleNode) (place, error) {
	if n.ParentID == uuid.Nil && n.Summary == nil {
		return root, nil
	}
	parent, ok := im.known[n.ParentID]
	if !ok || parent.kind != KindMessage {
		return place{}, invalid("parent_not_found", "parent_id", "No message before this node has the id %s.", n.ParentID)
	}
	return parent.place, nil
}

func (im *importer) addSummary(n BundleNode, anchor place) error {
	d, err := im.s.summaryDraft(NewSummary{ID: n.ID, AnchorID: n.ParentID, Range: *n.Summary, Body: n.Body, Metadata: n.Metadata, CreatedAt: n.CreatedAt})
	if err != nil {
		return err
	}
	cutoff, at := im.known[n.Summary.LastSummarizedID], im.known[n.ParentID]
	for at.depth > cutoff.depth {
		at = im.known[at.parentID]
	}
	if cutoff.id == uuid.Nil || at.id != cutoff.id {
		return errCutoff
	}
	row := d.summaryRow(im.id, anchor, *n.Summary)
	im.known[n.ID] = known{place: place{id: n.ID}, parentID: n.ParentID, kind: KindSummary}
	im.rows = append(im.rows, row)
	return nil
}

// callsAt is Store.callsAt among nodes of which some aren't stored yet.
func (im *importer) callsAt(ctx context.Context, parentID uuid.UUID) (calls, error) {
	var answered []string
	for id := parentID; id != uuid.Nil; id = im.known[id].parentID {
		k := im.known[id]
		if k.body != nil && k.body.Role == RoleTool {
			answered = append(answered, *k.body.ToolCallID)
			continue
		}
		open, err := im.openAt(ctx, k)
		for _, call := range answered {
			open[call] = true
		}
		return open, err
	}
	return nil, nil
}

func (im *importer) openAt(ctx context.Context, k known) (calls, error) {
	if k.body != nil {
		return openCalls(k.body.ToolCalls), nil
	}
	return im.s.callsAt(ctx, im.id, k.id)
}

// settleHead makes the bundle's head active, or the newest leaf. A head that
// somebody chose here stays.
func (im *importer) settleHead(ctx context.Context, headID uuid.UUID, createdAt time.Time) error {
	touch := db.TouchConversationParams{ID: toUUID(im.id), UpdatedAt: im.newest.CreatedAt, AddedMessages: int32(messageCount(im.rows))}
	if touch.UpdatedAt.Before(createdAt) {
		touch.UpdatedAt = createdAt
	}
	if !im.hadHead {
		if k, ok := im.known[headID]; !ok || k.kind != KindMessage {
			leaf, err := im.s.newestLeaf(ctx, im.id)
			if err != nil {
				return err
			}
			headID = leaf
		}
		touch.HeadID = toUUID(headID)
	}
	return im.s.q.TouchConversation(ctx, touch)
}

// Export reads a whole conversation, as Import takes it: a parent before its
// children, a summary after its anchor. Memory doesn't grow with the tree;
// while the sequence is read a connection is in use.
func (s *Store) Export(ctx context.Context, conversationID uuid.UUID) (_ Conversation, _ iter.Seq2[BundleNode, error], err error) {
	defer wrap(&err, nil, "Export(%s)", conversationID)
	c, err := s.Conversation(ctx, conversationID)
	if err != nil {
		return Conversation{}, nil, err
	}
	return c, func(yield func(BundleNode, error) bool) {
		if err := s.export(ctx, conversationID, yield); err != nil {
			yield(BundleNode{}, fmt.Errorf("tree.Export(%s): %w", conversationID, err))
		}
	}, nil
}

func (s *Store) export(ctx context.Context, conversationID uuid.UUID, yield func(BundleNode, error) bool) error {
	rows, err := db.StreamNodeRows(ctx, s.h, toUUID(conversationID))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		row, err := pgx.RowToStructByPos[db.Node](rows)
		if err != nil {
			return err
		}
		n := BundleNode{
			ID: uuid.UUID(row.ID.Bytes), ParentID: uuid.UUID(row.ParentID.Bytes), Body: row.Body, Metadata: row.Metadata,
			Pinned: row.Pinned, CreatedAt: row.CreatedAt.UTC(),
		}
		if row.Kind == string(KindSummary) {
			r := fromSummary(row).Range
			n.Summary = &r
		}
		if !yield(n, nil) {
			return nil
		}
	}
	return rows.Err()
}

package tree

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

// Import stores whole conversations in one transaction: all of them or none. To a
// conversation that is stored already it adds the missing nodes, and leaves
// everything else as it is, so that a second import adds nothing. It says which
// stored nodes differ from the bundle's. An unsound node is a fault.Invalid that
// names it, and so is a node whose parent is neither in the bundle nor stored.
//
// Memory and cost grow with the largest conversation, stored nodes included.
func (s *Store) Import(ctx context.Context, bundles ...Bundle) (_ []Imported, err error) {
	defer db.Wrap(&err, "tree.Import(%d bundles)", len(bundles))
	out := make([]Imported, len(bundles))
	err = s.inTx(ctx, func(s *Store) error {
		if err := s.lockTenant(ctx); err != nil {
			return err
		}
		there, err := s.holdNamed(ctx, bundles)
		if err != nil {
			return err
		}
		for i, b := range bundles {
			if out[i], err = s.importOne(ctx, b, there); err != nil {
				return fault.At(err, fmt.Sprintf("conversation %s", b.Conversation.ID))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *Store) importOne(ctx context.Context, b Bundle, there map[[sha256.Size]byte]Attachment) (Imported, error) {
	if b.Conversation.ID == uuid.Nil {
		return Imported{}, fault.New(fault.Invalid, "missing_id", "id", "A conversation to be imported needs an id, so that it can be imported again.")
	}
	n, err := checkNew(b.Conversation)
	if err != nil {
		return Imported{}, err
	}
	im := &importer{
		s: s, id: n.ID, format: b.Format, at: now(), there: there, known: map[uuid.UUID]known{}, siblings: map[uuid.UUID]int32{},
		rows: make([]db.CopyNodesParams, 0, min(rowsAtOnce, max(len(b.Nodes), 1))),
	}
	result := Imported{ConversationID: n.ID}
	if result.Created, err = im.begin(ctx, n, b.Source); err != nil {
		return Imported{}, err
	}
	var present []*BundleNode
	for i, node := range b.Nodes {
		if i%256 == 0 && ctx.Err() != nil {
			return Imported{}, ctx.Err()
		}
		if k, ok := im.known[node.ID]; ok {
			result.Present++
			if k.stored && k.parentID != node.ParentID {
				result.Changed = append(result.Changed, Changed{ID: node.ID, Moved: true})
			} else if k.stored {
				present = append(present, &b.Nodes[i])
			}
			continue
		}
		if err := im.add(ctx, node); err != nil {
			return Imported{}, fault.At(err, fmt.Sprintf("nodes[%d]", i))
		}
		if im.waiting > textAtOnce || len(im.rows) == cap(im.rows) {
			if err := im.copy(ctx); err != nil {
				return Imported{}, err
			}
		}
	}
	if err := im.copy(ctx); err != nil {
		return Imported{}, err
	}
	for nodes := range slices.Chunk(present, cap(im.rows)) {
		rewritten, err := im.rewritten(ctx, nodes)
		if err != nil {
			return Imported{}, err
		}
		result.Changed = append(result.Changed, rewritten...)
	}
	if result.Added = im.added; result.Added > 0 {
		if err := im.settleHead(ctx, b.HeadID, n.CreatedAt); err != nil {
			return result, err
		}
	}
	if !result.Created && result.Added == 0 {
		return result, nil
	}
	return result, s.note(ctx, Change{ConversationID: n.ID, Kind: ConversationImported, Messages: im.messages})
}

// A large conversation is copied in several pieces of so many rows or bytes of
// text, so that its rows don't stand in memory beside its nodes.
const (
	rowsAtOnce = 1000
	textAtOnce = 1 << 20

	// What is less is stored within the bound of any statement, so it is spared
	// the two round trips that lift the bound.
	rowsInTime = 100
	textInTime = 64 << 10
)

// copy stores the rows that wait.
func (im *importer) copy(ctx context.Context) error {
	if len(im.rows) == 0 {
		return nil
	}
	im.added += len(im.rows)
	im.messages += messageCount(im.rows)
	if err := im.s.roomFor(im.stored, im.messages); err != nil {
		return err
	}
	store := func() error {
		if err := im.s.copyRows(ctx, im.rows); err != nil {
			return err
		}
		if len(im.said) > 0 {
			if _, err := im.s.q.CopyAnnotations(ctx, im.said); err != nil {
				return err
			}
		}
		if len(im.naming) == 0 {
			return nil
		}
		return im.s.q.AddAttachmentUses(ctx, im.s.usesOf(im.id, im.naming)) // holdNamed holds them
	}
	var err error
	if len(im.rows) > rowsInTime || im.waiting > textInTime {
		err = im.s.allowLongStatements(ctx, store)
	} else {
		err = store()
	}
	clear(im.rows)
	clear(im.naming)
	im.rows, im.naming, im.said, im.waiting = im.rows[:0], im.naming[:0], im.said[:0], 0
	return err
}

// An importer places one bundle's nodes among those that are stored.
type importer struct {
	s        *Store
	id       uuid.UUID
	format   string
	at       time.Time // of the import
	known    map[uuid.UUID]known
	siblings map[uuid.UUID]int32              // children so far, by parent
	there    map[[sha256.Size]byte]Attachment // of those that nodes of the import name
	rows     []db.CopyNodesParams             // not copied yet
	waiting  int                              // bytes of text in them
	said     []db.CopyAnnotationsParams       // of the rows that are annotated
	naming   []*draft                         // those of the rows that name attachments
	added    int                              // rows copied
	messages int                              // of them
	newest   time.Time                        // of the newest message added
	hadHead  bool
	stored   int // messages that were there before
}

// known is what placing a child under a node, or a summary over it, needs.
type known struct {
	parentState
	parentID uuid.UUID
	jump     uuid.UUID // a message above, as jumpBelow gives it
	kind     Kind
	stored   bool
	role     Role
	made     calls  // by the message; nil for none, and of a stored one until they are asked for
	answers  string // the call that such a message answers
}

// begin makes the conversation, or waits its turn in the one that is there. One that
// another writer deletes while the import waits is made anew.
func (im *importer) begin(ctx context.Context, n NewConversation, source Source) (created bool, err error) {
	for range 2 {
		if _, err = im.s.insertConversation(ctx, n, source, false); !isNoRows(err) {
			return err == nil, err
		}
		if err = im.load(ctx); !errors.Is(err, fault.NotFound) {
			return false, err
		}
	}
	// The id may be another tenant's, which nothing here tells.
	return false, conflict("id", "The id %s can't be had here. Write another id into the conversation's line of the file, "+
		"or import the file into another database.", im.id)
}

// load reads the parent states of a conversation that is there, after it has locked it.
func (im *importer) load(ctx context.Context) error {
	c, err := im.s.lock(ctx, im.id)
	if err != nil {
		return err
	}
	im.hadHead, im.stored = c.HeadID.Valid, int(c.MessageCount)
	rows, err := im.s.q.ListParentStates(ctx, toUUID(im.id))
	slices.SortFunc(rows, func(a, b db.ListParentStatesRow) int { return cmp.Compare(a.Depth, b.Depth) }) // for jumpBelow
	for _, row := range rows {
		parentID := uuid.UUID(row.ParentID.Bytes)
		im.known[uuid.UUID(row.ID.Bytes)] = known{
			parentState: parentStateOf(db.Node{ID: row.ID, Depth: row.Depth, PathTokens: row.PathTokens, PrefixID: row.PrefixID, PathHash: row.PathHash}),
			parentID:    parentID, jump: im.jumpBelow(uuid.UUID(row.ID.Bytes), parentID), kind: Kind(row.Kind), stored: true,
		}
		im.siblings[parentID] = max(im.siblings[parentID], row.SiblingIndex.Int32)
	}
	return err
}

// holdNamed gives the attachments that there are of those which nodes of the bundles
// name: until the import ends, none is added and none deleted. It holds all of them at
// once, in the order in which those that delete attachments lock them.
func (s *Store) holdNamed(ctx context.Context, bundles []Bundle) (there map[[sha256.Size]byte]Attachment, err error) {
	named := map[[sha256.Size]byte]bool{}
	for _, b := range bundles {
		for _, n := range b.Nodes {
			if n.Summary != nil || !chat.MayName(n.Body) {
				continue
			}
			for _, a := range chat.Read(n.Body).Attachments() {
				named[a.Hash] = true
			}
		}
	}
	if len(named) == 0 {
		return nil, nil
	}
	hashes := slices.Collect(maps.Keys(named))
	err = s.allowLongStatements(ctx, func() (err error) {
		if err = s.lockKind(ctx, naming); err != nil {
			return err
		}
		if _, err = s.hold(ctx, rawHashes(hashes)); err == nil {
			there, err = s.Attachments().All(ctx, hashes...)
		}
		return err
	})
	return there, err
}

// rewritten finds those of stored nodes that say something else than the store.
// It reads the bodies of those alone, a few at a time.
func (im *importer) rewritten(ctx context.Context, nodes []*BundleNode) (changed []Changed, err error) {
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
			id := uuid.UUID(row.ID.Bytes)
			differ[id] = !sameJSON(row.Body, given[id])
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
		return fault.New(fault.Invalid, "missing_id", "id", "A node to be imported needs an id.")
	}
	parent, err := im.parent(n)
	if err != nil {
		return err
	}
	if n.Summary != nil {
		return im.addSummary(ctx, n, parent)
	}
	d, err := im.s.draft(ctx, NewMessage{ID: n.ID, Message: &chat.Message{Raw: n.Body}, Reasoning: n.Reasoning, Metadata: n.Metadata, Pinned: n.Pinned, Graft: n.Graft, CreatedAt: n.CreatedAt})
	if err != nil {
		return err
	}
	if len(d.attachments) > 0 {
		if d.tokenCount, err = im.s.cost(ctx, d.Message, im.there); err != nil {
			return err
		}
		im.naming = append(im.naming, d)
	}
	if d.Message.Role == RoleTool {
		open, err := im.callsAt(ctx, n.ParentID, d.Message.Answers())
		if err != nil {
			return err
		}
		if err := open.answer(d.Message); err != nil {
			return err
		}
	}
	im.siblings[n.ParentID]++
	row, own := d.row(im.id, parent, im.siblings[n.ParentID])
	k := known{parentState: own, parentID: n.ParentID, jump: im.jumpBelow(n.ID, n.ParentID), kind: KindMessage, role: d.Message.Role}
	if d.Message.Role == RoleTool {
		k.answers = d.Message.Answers()
	}
	if len(d.Message.Calls) > 0 {
		k.made = openCalls(d.Message.Calls)
	}
	im.known[n.ID] = k
	im.addRow(row)
	if n.Annotation != (Annotation{}) {
		if err := n.Annotation.Check(d.Message); err != nil {
			return err
		}
		im.said = append(im.said, annotationRow(im.id, n.ID, n.Annotation))
	}
	if im.newest.IsZero() || !row.CreatedAt.Before(im.newest) {
		im.newest = row.CreatedAt
	}
	return nil
}

func (im *importer) addRow(row db.CopyNodesParams) {
	im.rows = append(im.rows, row)
	im.waiting += len(row.Body) + len(row.Metadata) + len(row.Reasoning.String)
}

func (im *importer) parent(n BundleNode) (parentState, error) {
	if n.ParentID == uuid.Nil && n.Summary == nil {
		return root, nil
	}
	parent, ok := im.known[n.ParentID]
	if !ok || parent.kind != KindMessage {
		return parentState{}, fault.New(fault.Invalid, "parent_not_found", "parent_id", "No message before this node has the id %s.", n.ParentID)
	}
	return parent.parentState, nil
}

// settleHead makes the bundle's head active, or the newest leaf. A head that
// somebody chose here stays.
func (im *importer) settleHead(ctx context.Context, headID uuid.UUID, createdAt time.Time) error {
	touch := db.TouchConversationParams{ID: toUUID(im.id), UpdatedAt: im.newest, AddedMessages: int32(im.messages)}
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

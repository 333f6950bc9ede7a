package tree

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
)

// A Pending is a conversation that changed since a follower handled it: the follower is
// behind.
type Pending struct {
	TenantID       string
	ConversationID uuid.UUID
	Place          int64 // sequence of the last change that was handled; 0: none was
	Sequence       int64 // sequence of the newest change
}

// Pending returns those of these conversations, of all tenants, in which a follower
// is behind the newest change. It costs two look-ups for each. It is for no request.
func (s *Feed) Pending(ctx context.Context, follower string, conversations []uuid.UUID) (_ []Pending, err error) {
	defer db.Wrap(&err, "tree.Feed.Pending(%s, %d conversations)", follower, len(conversations))
	rows, err := s.q.ListBehind(ctx, db.ListBehindParams{Follower: follower, Ids: toUUIDs(conversations)})
	var out []Pending
	for _, row := range rows {
		if row.ChangeCount > row.Place {
			out = append(out, Pending{row.TenantID, uuid.UUID(row.ID.Bytes), row.Place, row.ChangeCount})
		}
	}
	return out, err
}

// Move moves a follower's places from Place to Sequence, in one round trip and
// one commit, and reports which of them moved. A place that stands elsewhere by now
// doesn't: another server handled the conversation. Nor does that of a conversation
// that is gone. A Store over a transaction commits places with what the follower
// wrote.
func (s *Feed) Move(ctx context.Context, follower string, all ...Pending) (moved []bool, err error) {
	defer db.Wrap(&err, "tree.Feed.Move(%s, %d conversations)", follower, len(all))
	if len(all) == 0 {
		return nil, nil
	}
	// In one order, so that two servers don't wait for each other.
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return bytes.Compare(all[a].ConversationID[:], all[b].ConversationID[:]) })
	params := make([]db.MovePlaceParams, len(all))
	for i, at := range order {
		b := all[at]
		params[i] = db.MovePlaceParams{ConversationID: toUUID(b.ConversationID), Follower: follower, Sequence: b.Sequence, FromSequence: b.Place}
	}
	inOrder, err := db.ExecAll(ctx, s.h, params, func(q *db.Queries, arg db.MovePlaceParams) { _, _ = q.MovePlace(ctx, arg) })
	if err != nil {
		return nil, err
	}
	moved = make([]bool, len(all))
	for i, at := range order {
		moved[at] = inOrder[i] > 0
	}
	return moved, nil
}

// ChangedConversations returns conversations of all tenants of which the feed has
// changes, in the order of their ids, those after an id. It is for no request.
func (s *Feed) ChangedConversations(ctx context.Context, after uuid.UUID, limit int) (_ []uuid.UUID, err error) {
	defer db.Wrap(&err, "tree.Feed.ChangedConversations(after %s)", after)
	ids, err := s.q.ListChangedConversations(ctx, db.ListChangedConversationsParams{AfterID: pgtype.UUID{Bytes: after, Valid: true}, RowLimit: int32(limit)})
	return fromUUIDs(ids), err
}

// AllConversations returns conversations of all tenants in the order of their ids,
// those after an id. It is for no request.
func (s *Feed) AllConversations(ctx context.Context, after uuid.UUID, limit int) (_ []uuid.UUID, err error) {
	defer db.Wrap(&err, "tree.Feed.AllConversations(after %s)", after)
	ids, err := s.q.ListOfAllTenants(ctx, db.ListOfAllTenantsParams{AfterID: pgtype.UUID{Bytes: after, Valid: true}, RowLimit: int32(limit)})
	return fromUUIDs(ids), err
}

// A Growth is what changed in a conversation since a follower's place.
type Growth struct {
	Settings json.RawMessage // of the conversation; nil where there is no row
	Branches []GrownBranch   // by their appends, the oldest first
	Reshaped bool            // a summary came or went, messages were pruned or imported: branches above may have other contexts
	Forgot   bool            // the feed doesn't reach back to the place: of what it forgot, only the active head is among Branches
}

// A GrownBranch is the path to a message that was appended.
type GrownBranch struct {
	HeadID         uuid.UUID
	ParentID       uuid.UUID // message that was the head before; uuid.Nil where that isn't known, or the path is new
	PathTokens     int64     // sum of its messages' tokens
	Depth          int       // messages above the head
	PrefixTokens   int       // of PathTokens: those of the leading system and developer messages
	PrefixMessages int
	AnsweredBy     string // the model of the reply that the head is; "" where it is none
}

// mostGrown is how many changes of one conversation are read, the newest.
const mostGrown = 1000

// Growths returns what changed in each of the conversations since the follower's
// place, in one round trip. It costs look-ups for each change.
func (s *Feed) Growths(ctx context.Context, all ...Pending) (_ []Growth, err error) {
	defer db.Wrap(&err, "tree.Feed.Growths(%d conversations)", len(all))
	params := make([]db.ListGrownParams, len(all))
	for i, p := range all {
		params[i] = db.ListGrownParams{ConversationID: toUUID(p.ConversationID), TenantID: p.TenantID, Place: p.Place, RowLimit: mostGrown}
	}
	rows := make([][]db.ListGrownRow, len(all))
	err = db.Each(ctx, s.h, (*db.Queries).ListGrown, params, func(i int, row db.ListGrownRow) error {
		rows[i] = append(rows[i], row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	out := make([]Growth, len(all))
	for i := range out {
		out[i].Forgot = len(rows[i]) == mostGrown
		for _, row := range slices.Backward(rows[i]) {
			out[i].add(row)
		}
	}
	return out, nil
}

func (g *Growth) add(row db.ListGrownRow) {
	g.Settings = row.Settings
	switch ChangeKind(row.Kind) {
	case MessagesAppended:
		g.Forgot = g.Forgot || row.Messages == 0
		if !row.Stored { // pruned since
			return
		}
		g.Branches = append(g.Branches, GrownBranch{
			HeadID: uuid.UUID(row.MessageID.Bytes), ParentID: uuid.UUID(row.ParentID.Bytes),
			PathTokens: row.PathTokens, Depth: int(row.Depth), PrefixTokens: int(row.PrefixTokens), PrefixMessages: int(row.PrefixMessages), AnsweredBy: row.AnsweredBy,
		})
	case SummaryCreated, SummaryDeleted, MessagesPruned, ConversationImported:
		g.Reshaped = true
	}
}

// Leaves returns the branches that no other one of the Growth goes on from.
func (g Growth) Leaves() (leaves []GrownBranch) {
	gone := map[uuid.UUID]bool{}
	for _, b := range g.Branches {
		gone[b.ParentID] = true
	}
	for _, b := range g.Branches {
		if !gone[b.HeadID] {
			gone[b.HeadID] = true // the active head may be there twice
			leaves = append(leaves, b)
		}
	}
	return leaves
}

// A Lead is what the one server does that looks for what a follower missed, or sweeps.
type Lead struct {
	Follower string
	ServerID string
	Lease    time.Duration // without a renewal: then another server may lead
	Scans    bool          // a new follower looks at all conversations, and not only at the changes of the last hour
}

// longestAbsence is how long a follower may be without a server before it looks at
// all conversations: the feed holds the changes of KeepChanges.
const longestAbsence = KeepChanges / 2

// Renew makes the server lead, or keeps it so. It reports false if another server
// leads. scans tells that a look at all conversations isn't done, and scanned is the
// last conversation that it came to, in the order of their ids.
func (l Lead) Renew(ctx context.Context, s *Store) (leads, scans bool, scanned uuid.UUID, err error) {
	defer db.Wrap(&err, "tree.Lead.Renew(%s)", l.Follower)
	id, err := s.q.LeadFollower(ctx, db.LeadFollowerParams{
		Name: l.Follower, ServerID: l.ServerID, LeaseSeconds: l.Lease.Seconds(), Scans: l.Scans, AbsenceSeconds: longestAbsence.Seconds(),
	})
	if isNoRows(err) {
		return false, false, uuid.Nil, nil
	}
	return err == nil, id.Valid, uuid.UUID(id.Bytes), err
}

// Scanned notes the last conversation that a look at all of them came to; uuid.Nil:
// it is done.
func (l Lead) Scanned(ctx context.Context, s *Store, last uuid.UUID) (err error) {
	defer db.Wrap(&err, "tree.Lead.Scanned(%s, %s)", l.Follower, last)
	return s.q.NoteScan(ctx, db.NoteScanParams{Name: l.Follower, ServerID: l.ServerID, ScannedID: toUUID(last)})
}

// Leave lets another server lead at once.
func (l Lead) Leave(ctx context.Context, s *Store) (err error) {
	defer db.Wrap(&err, "tree.Lead.Leave(%s)", l.Follower)
	return s.q.LeaveFollower(ctx, db.LeaveFollowerParams{Name: l.Follower, ServerID: l.ServerID})
}

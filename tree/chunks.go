package tree

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
)

// SearchFollower names the follower that keeps the index of words.
const SearchFollower = "search"

// A Chunk is a part of the index of words: some messages of a conversation, in the
// order in which they came, and which words they have.
type Chunk struct {
	ConversationID uuid.UUID
	Number         int // grows with the chunks of a conversation
	Messages       []uuid.UUID
	NewestAt       time.Time // of the newest message
	Data           []byte    // nil after a prune, until the chunk is made again
}

// Unchunked returns the messages of a conversation that are in no chunk, in the
// order in which they came, as far as that is known: those that came between the
// place and the sequence of p, or all, where the feed has lost the changes in
// between. It may return more messages than there are: some were pruned since. titled
// tells whether the title may have changed.
func (s *Index) Unchunked(ctx context.Context, p Pending) (ids []uuid.UUID, titled bool, err error) {
	defer db.Wrap(&err, "tree.Index.Unchunked(%s)", p.ConversationID)
	const most = 1000
	changes, err := s.q.ListChanges(ctx, db.ListChangesParams{ConversationID: toUUID(p.ConversationID), After: p.Place, RowLimit: most})
	if err != nil {
		return nil, false, err
	}
	next, known := p.Place+1, true
	for _, c := range changes {
		if !known || next > p.Sequence {
			break
		}
		known = c.Sequence == next && c.Kind != string(ConversationCreated) && c.Kind != string(ConversationImported)
		next++
		titled = titled || c.Kind == string(ConversationUpdated)
		switch {
		case c.Kind != string(MessagesAppended):
		case c.Messages == 1:
			ids = append(ids, uuid.UUID(c.MessageID.Bytes))
		default:
			chain, err := s.q.ListPathHashes(ctx, db.ListPathHashesParams{ConversationID: toUUID(p.ConversationID), HeadID: c.MessageID, TenantID: s.tenant, Reader: s.reader, RowLimit: c.Messages})
			if err != nil {
				return nil, false, err
			}
			for _, m := range slices.Backward(chain) {
				ids = append(ids, uuid.UUID(m.ID.Bytes))
			}
			known = known && len(chain) == int(c.Messages) // else its end was pruned
		}
	}
	if !known || next <= p.Sequence {
		rows, err := s.q.ListUnchunked(ctx, toUUID(p.ConversationID))
		return fromUUIDs(rows), true, err
	}
	// A message may have been stored again under its id after a prune.
	seen := map[uuid.UUID]bool{}
	return slices.DeleteFunc(ids, func(id uuid.UUID) bool {
		again := seen[id]
		seen[id] = true
		return again
	}), titled, nil
}

// OpenChunks returns the chunks of a conversation that may change: those of fewer
// than full messages, and those that have lost a message, in their order. next is
// the number of a new chunk.
func (s *Index) OpenChunks(ctx context.Context, conversationID uuid.UUID, full int) (open []Chunk, next int, err error) {
	defer db.Wrap(&err, "tree.Index.OpenChunks(%s)", conversationID)
	rows, err := s.q.ListOpenChunks(ctx, db.ListOpenChunksParams{TenantID: s.tenant, ConversationID: toUUID(conversationID), FullSize: int32(full)})
	if err != nil {
		return nil, 0, err
	}
	last, err := s.q.GetLastChunk(ctx, toUUID(conversationID))
	if isNoRows(err) {
		return nil, 0, nil
	}
	return fromChunks(rows), int(last.Number + last.Messages), err
}

// SaveChunks puts chunks of one conversation in the place of open ones with these
// numbers, and moves the follower's place to the sequence to. title has the words by
// which the conversation's title is found, nil where they stay. It saves nothing and
// reports false where the place has moved, an open chunk has changed, or a message
// was pruned, since p was read.
func (s *Index) SaveChunks(ctx context.Context, p Pending, to int64, open []int32, chunks []Chunk, title []string) (saved bool, err error) {
	defer db.Wrap(&err, "tree.Index.SaveChunks(%s, %d)", p.ConversationID, len(chunks))
	return s.changeIndex(ctx, func(s *Store) error {
		moves := p
		moves.Sequence = to
		moved, err := s.Feed().Move(ctx, SearchFollower, moves)
		if err != nil || !moved[0] {
			return cmp.Or(err, errStale)
		}
		pruned, err := s.q.PrunedSince(ctx, db.PrunedSinceParams{ConversationID: toUUID(p.ConversationID), Sequence: p.Sequence})
		if err != nil || pruned {
			return cmp.Or(err, errStale)
		}
		if title != nil {
			if err := s.setTitleWords(ctx, p.ConversationID, title); err != nil {
				return err
			}
		}
		if len(open) > 0 {
			deleted, err := s.q.DeleteChunks(ctx, db.DeleteChunksParams{ConversationID: toUUID(p.ConversationID), Numbers: open})
			if err != nil || int(deleted) < len(open) {
				return cmp.Or(err, errStale)
			}
		}
		rows := make([]db.InsertChunkParams, len(chunks))
		for i, c := range chunks {
			rows[i] = db.InsertChunkParams{ConversationID: toUUID(c.ConversationID), Number: int32(c.Number), TenantID: s.tenant, Messages: toUUIDs(c.Messages), NewestAt: c.NewestAt, Data: c.Data}
		}
		_, err = db.ExecAll(ctx, s.h, rows, func(q *db.Queries, arg db.InsertChunkParams) { _ = q.InsertChunk(ctx, arg) })
		return err
	})
}

// changeIndex makes a change of the tenant's index of words that no other server makes
// beside it. It reports false where that is an errStale, and nothing is changed.
func (s *Index) changeIndex(ctx context.Context, change func(*Store) error) (changed bool, err error) {
	err = s.store().inTx(ctx, func(s *Store) error {
		if err := s.q.CommitLater(ctx); err != nil {
			return err
		}
		if err := s.lockKind(ctx, indexing); err != nil {
			return err
		}
		return change(s)
	})
	if errors.Is(err, errStale) {
		return false, nil
	}
	return err == nil, err
}

// forgetWords takes pruned messages out of the index of words, in the transaction
// of the prune, as its last work but one: other changes of the tenant's index wait.
func (s *Store) forgetWords(ctx context.Context, conversationID pgtype.UUID, ids []pgtype.UUID) error {
	if err := s.lockKind(ctx, indexing); err != nil {
		return err
	}
	rows, err := s.q.ListChunksOf(ctx, db.ListChunksOfParams{ConversationID: conversationID, Ids: ids})
	if err != nil || len(rows) == 0 {
		return err
	}
	var numbers []int32
	var places []db.ListPlacesOfRow
	for _, row := range rows {
		numbers = append(numbers, row.Number)
		places = append(places, db.ListPlacesOfRow{Segment: row.Segment, Place: row.Place})
		if err := s.q.TearChunk(ctx, db.TearChunkParams{ConversationID: conversationID, Number: row.Number, Ids: ids}); err != nil {
			return err
		}
	}
	if err := s.q.DeleteEmptyChunks(ctx, db.DeleteEmptyChunksParams{ConversationID: conversationID, Numbers: numbers}); err != nil {
		return err
	}
	return s.dropParts(ctx, places)
}

// forgetAllWords does the same for a conversation that is about to be deleted with
// its chunks.
func (s *Store) forgetAllWords(ctx context.Context, conversationID pgtype.UUID) error {
	if err := s.lockKind(ctx, indexing); err != nil {
		return err
	}
	places, err := s.q.ListPlacesOf(ctx, conversationID)
	if err != nil {
		return err
	}
	return s.dropParts(ctx, places)
}

// LooseChunks returns the tenant's chunks that no segment names, the newest first.
func (s *Index) LooseChunks(ctx context.Context, limit int) (_ []Chunk, err error) {
	defer db.Wrap(&err, "tree.Index.LooseChunks")
	rows, err := s.q.ListLooseChunks(ctx, db.ListLooseChunksParams{TenantID: s.tenant, RowLimit: int32(limit)})
	return fromChunks(rows), err
}

// ConversationChunks returns chunks of each of the conversations, the newest first and
// beyond so many, in one round trip.
func (s *Index) ConversationChunks(ctx context.Context, beyond, limit int, conversations ...uuid.UUID) (_ []Chunk, err error) {
	defer db.Wrap(&err, "tree.Index.ConversationChunks(%d conversations)", len(conversations))
	params := make([]db.ListConversationChunksParams, len(conversations))
	for i, id := range conversations {
		params[i] = db.ListConversationChunksParams{ConversationID: toUUID(id), TenantID: s.tenant, RowLimit: int32(limit), Beyond: int32(beyond)}
	}
	rows, err := db.All(ctx, s.h, (*db.Queries).ListConversationChunks, params)
	return fromChunks(rows), err
}

// Unfollowed returns the tenant's conversations in which a follower is behind, the
// one that changed last first: among some and those that changed since a time, or
// among all where since is zero.
func (s *Feed) Unfollowed(ctx context.Context, follower string, among []uuid.UUID, since time.Time, limit int) (out []Pending, err error) {
	defer db.Wrap(&err, "tree.Feed.Unfollowed(%s)", follower)
	if since.IsZero() {
		rows, err := s.q.ListAllBehind(ctx, db.ListAllBehindParams{Follower: follower, TenantID: s.tenant, RowLimit: int32(limit)})
		for _, row := range rows {
			out = append(out, Pending{s.tenant, uuid.UUID(row.ID.Bytes), row.Place, row.ChangeCount})
		}
		return out, err
	}
	rows, err := s.q.ListTenantBehind(ctx, db.ListTenantBehindParams{Follower: follower, TenantID: s.tenant, Ids: toUUIDs(among), Since: since, RowLimit: int32(limit)})
	for _, row := range rows {
		out = append(out, Pending{s.tenant, uuid.UUID(row.ID.Bytes), row.Place, row.ChangeCount})
	}
	return out, err
}

func (s *Store) setTitleWords(ctx context.Context, conversationID uuid.UUID, words []string) error {
	if err := s.q.DeleteTitleWords(ctx, db.DeleteTitleWordsParams{ConversationID: toUUID(conversationID), Words: words}); err != nil || len(words) == 0 {
		return err
	}
	return s.q.AddTitleWords(ctx, db.AddTitleWordsParams{ConversationID: toUUID(conversationID), Words: words, TenantID: s.tenant})
}

// Titled calls fn with the tenant's conversations whose titles were found to have one of
// the words, or one that begins with one of the beginnings, and with those among some,
// the one touched last first, until fn returns false.
func (s *Index) Titled(ctx context.Context, words, beginnings []string, among []uuid.UUID, fn func(Conversation) bool) (err error) {
	defer db.Wrap(&err, "tree.Index.Titled")
	params := db.ListTitledParams{TenantID: s.tenant, Reader: s.reader, Words: words, Beginnings: beginnings, Among: toUUIDs(among)}
	for row, err := range db.Stream(ctx, s.h, (*db.Queries).ListTitled, params) {
		if err != nil || !fn(fromConversation(row)) {
			return err
		}
	}
	return nil
}

// Hits describes messages that a search found, in their order. Those that are gone
// are left out. Each hit names the newest leaf below it. To find it, the messages
// below are walked, at about 200,000 a second.
func (s *Index) Hits(ctx context.Context, places []Place) (out []Hit, err error) {
	defer db.Wrap(&err, "tree.Index.Hits(%d)", len(places))
	if len(places) == 0 {
		return nil, nil
	}
	var which []db.DescribeHitsParams
	for conversation, some := range byConversation(places) {
		which = append(which, db.DescribeHitsParams{ConversationID: toUUID(conversation), Ids: some, TenantID: s.tenant, Reader: s.reader})
	}
	rows, err := db.All(ctx, s.h, (*db.Queries).DescribeHits, which)
	if err != nil {
		return nil, err
	}
	found := make(map[Place]db.DescribeHitsRow, len(rows))
	var branched []Place
	for _, row := range rows {
		at := Place{uuid.UUID(row.Node.ConversationID.Bytes), uuid.UUID(row.Node.ID.Bytes)}
		if found[at] = row; !row.IsLine {
			branched = append(branched, at)
		}
	}
	leaves, err := s.newestLeaves(ctx, branched)
	if err != nil {
		return nil, err
	}
	for _, p := range places {
		if row, ok := found[p]; ok {
			hit := Hit{Message: fromMessage(row.Node, row.SiblingCount, row.Annotation), LeafID: uuid.UUID(row.HeadID.Bytes), Title: row.Title}
			if !row.IsLine {
				hit.LeafID, ok = leaves[p]
			}
			if ok { // else it has gone meanwhile
				out = append(out, hit)
			}
		}
	}
	return out, nil
}

// newestLeaves gives the newest leaf at or below each of some messages that are there.
func (s *Index) newestLeaves(ctx context.Context, messages []Place) (map[Place]uuid.UUID, error) {
	leaves := map[Place]uuid.UUID{}
	var which []db.ListNewestLeavesParams
	for conversation, ids := range byConversation(messages) {
		which = append(which, db.ListNewestLeavesParams{ConversationID: toUUID(conversation), Ids: ids})
	}
	err := db.Each(ctx, s.h, (*db.Queries).ListNewestLeaves, which, func(i int, row db.ListNewestLeavesRow) error {
		leaves[Place{uuid.UUID(which[i].ConversationID.Bytes), uuid.UUID(row.HitID.Bytes)}] = uuid.UUID(row.LeafID.Bytes)
		return nil
	})
	return leaves, err
}

// errStale says that what was about to be written rests on what is no more.
var errStale = errors.New("what this rests on has changed")

// fromChunks is the one converter of chunks.
func fromChunks(rows []db.SearchChunk) []Chunk {
	out := make([]Chunk, len(rows))
	for i, row := range rows {
		out[i] = Chunk{uuid.UUID(row.ConversationID.Bytes), int(row.Number), fromUUIDs(row.Messages), row.NewestAt.UTC(), row.Data}
	}
	return out
}

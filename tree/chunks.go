package tree

import (
	"bytes"
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

// A Segment says which chunks of a tenant have words of one bucket.
type Segment struct {
	ID       uuid.UUID
	Bucket   int
	NewestAt time.Time // of the newest message in its chunks
	Data     []byte
}

// A PlacedChunk names a chunk by its place in a segment.
type PlacedChunk struct {
	SegmentID uuid.UUID
	Place     int
}

// Buckets are numbers of a kind of segment's buckets: so many from the first on.
type Buckets struct{ First, Count int }

// The buckets of small segments and of large ones.
var (
	SmallSegment = Buckets{First: 256, Count: 64}
	LargeSegment = Buckets{First: 512, Count: 2048}
)

func (b Buckets) all() []int16 {
	out := make([]int16, b.Count)
	for i := range out {
		out[i] = int16(b.First + i)
	}
	return out
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
// numbers, and moves the follower's place to the sequence to. It saves nothing and
// reports false where the place has moved, an open chunk has changed, or a message
// was pruned, since p was read.
func (s *Index) SaveChunks(ctx context.Context, p Pending, to int64, open []int, chunks []Chunk) (saved bool, err error) {
	defer db.Wrap(&err, "tree.Index.SaveChunks(%s, %d)", p.ConversationID, len(chunks))
	err = s.store().inTx(ctx, func(s *Store) error {
		if err := s.q.CommitLater(ctx); err != nil {
			return err
		}
		if err := s.lockKind(ctx, indexing); err != nil {
			return err
		}
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
		numbers := make([]int32, len(open))
		for i, n := range open {
			numbers[i] = int32(n)
		}
		if len(numbers) > 0 {
			deleted, err := s.q.DeleteChunks(ctx, db.DeleteChunksParams{ConversationID: toUUID(p.ConversationID), Numbers: numbers})
			if err != nil || int(deleted) < len(numbers) {
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
	if errors.Is(err, errStale) {
		return false, nil
	}
	return err == nil, err
}

// AddSegment names size of the tenant's oldest chunks together, if a quarter more are named
// by no segment. make gives the data of each bucket, of chunks in their places; nil
// where it can't. AddSegment then changes nothing and reports false, as where there are fewer.
func (s *Index) AddSegment(ctx context.Context, size int, make func([]Chunk) map[int][]byte) (added bool, err error) {
	defer db.Wrap(&err, "tree.Index.AddSegment")
	enough := func(s *Store) (bool, error) {
		loose, err := s.q.CountLooseChunks(ctx, db.CountLooseChunksParams{TenantID: s.tenant, AtMost: int32(size + size/4)})
		return err == nil && int(loose) == size+size/4, err
	}
	if is, err := enough(s.store()); !is || err != nil {
		return false, err
	}
	err = s.store().inTx(ctx, func(s *Store) error {
		if err := s.q.CommitLater(ctx); err != nil {
			return err
		}
		if err := s.lockKind(ctx, indexing); err != nil {
			return err
		}
		if is, err := enough(s); !is || err != nil {
			return cmp.Or(err, errStale)
		}
		keys, err := s.q.ListLooseKeys(ctx, db.ListLooseKeysParams{TenantID: s.tenant, RowLimit: int32(size)})
		if err != nil {
			return err
		}
		segment := toUUID(newID())
		slices.SortFunc(keys, func(a, b db.ListLooseKeysRow) int {
			return cmp.Or(bytes.Compare(a.ConversationID.Bytes[:], b.ConversationID.Bytes[:]), cmp.Compare(a.Number, b.Number))
		})
		var places []db.PlaceChunkParams
		for i, key := range keys {
			places = append(places, db.PlaceChunkParams{Segment: segment, Place: pgtype.Int2{Int16: int16(i), Valid: true}, ConversationID: key.ConversationID, Number: key.Number})
		}
		rows, err := db.All[db.SearchChunk](ctx, s.h, places, func(q *db.Queries, arg db.PlaceChunkParams) { _, _ = q.PlaceChunk(ctx, arg) })
		if err != nil || len(rows) < size {
			return cmp.Or(err, errStale)
		}
		p := db.InsertSegmentParams{TenantID: s.tenant, Segment: segment}
		for _, row := range rows {
			if row.NewestAt.After(p.NewestAt) {
				p.NewestAt = row.NewestAt
			}
		}
		parts := make(fromChunks(rows))
		if parts == nil {
			return errStale
		}
		return s.insertSegment(ctx, p, parts)
	})
	if errors.Is(err, errStale) {
		return false, nil
	}
	return err == nil, err
}

// MergeSegments makes a large segment of so many small ones, the oldest, if there are a
// quarter more. The chunks of each get their places behind those of the one before, size
// apart. merge gives the data of each bucket, of the small segments' buckets; nil where it
// can't. MergeSegments then changes nothing and reports false, as where there are fewer.
func (s *Index) MergeSegments(ctx context.Context, count, size int, merge func([][]Segment) map[int][]byte) (merged bool, err error) {
	defer db.Wrap(&err, "tree.Index.MergeSegments")
	smalls := func(s *Store) ([]db.ListSegmentIDsRow, error) {
		return s.q.ListSegmentIDs(ctx, db.ListSegmentIDsParams{TenantID: s.tenant, FirstBucket: int16(SmallSegment.First), LastBucket: int16(SmallSegment.First + SmallSegment.Count - 1)})
	}
	if rows, err := smalls(s.store()); err != nil || len(rows) < count+count/4 {
		return false, err
	}
	err = s.store().inTx(ctx, func(s *Store) error {
		if err := s.q.CommitLater(ctx); err != nil {
			return err
		}
		if err := s.lockKind(ctx, indexing); err != nil {
			return err
		}
		all, err := smalls(s)
		if err != nil || len(all) < count+count/4 {
			return cmp.Or(err, errStale)
		}
		into := db.InsertSegmentParams{TenantID: s.tenant, Segment: toUUID(newID())}
		var ids []pgtype.UUID
		var moves []db.MoveChunksParams
		for i, small := range all[:count] {
			ids = append(ids, small.Segment)
			moves = append(moves, db.MoveChunksParams{TenantID: s.tenant, Segment: small.Segment, IntoSegment: into.Segment, Distance: pgtype.Int2{Int16: int16(i * size), Valid: true}})
			if small.NewestAt.After(into.NewestAt) {
				into.NewestAt = small.NewestAt
			}
		}
		rows, err := s.q.ListBucketsOf(ctx, db.ListBucketsOfParams{TenantID: s.tenant, Buckets: SmallSegment.all(), Segments: ids})
		if err != nil {
			return err
		}
		segments := make([][]Segment, count)
		for _, row := range rows {
			i := slices.Index(ids, row.Segment)
			segments[i] = append(segments[i], fromSegment(row))
		}
		parts := merge(segments)
		if parts == nil {
			return errStale
		}
		if _, err := db.ExecAll(ctx, s.h, moves, func(q *db.Queries, arg db.MoveChunksParams) { _ = q.MoveChunks(ctx, arg) }); err != nil {
			return err
		}
		if err := s.q.DeleteSegments(ctx, db.DeleteSegmentsParams{TenantID: s.tenant, Buckets: SmallSegment.all(), Segments: ids}); err != nil {
			return err
		}
		return s.insertSegment(ctx, into, parts)
	})
	if errors.Is(err, errStale) {
		return false, nil
	}
	return err == nil, err
}

func (s *Store) insertSegment(ctx context.Context, p db.InsertSegmentParams, buckets map[int][]byte) error {
	for bucket, data := range buckets {
		p.Buckets, p.Parts = append(p.Buckets, int16(bucket)), append(p.Parts, data)
	}
	return s.q.InsertSegment(ctx, p)
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
	var segments []pgtype.UUID
	var numbers []int32
	for _, row := range rows {
		numbers = append(numbers, row.Number)
		if row.Segment.Valid && !slices.Contains(segments, row.Segment) {
			segments = append(segments, row.Segment)
		}
		if err := s.q.TearChunk(ctx, db.TearChunkParams{ConversationID: conversationID, Number: row.Number, Ids: ids}); err != nil {
			return err
		}
	}
	if err := s.q.DeleteEmptyChunks(ctx, db.DeleteEmptyChunksParams{ConversationID: conversationID, Numbers: numbers}); err != nil {
		return err
	}
	return s.dropSegments(ctx, segments)
}

// forgetAllWords does the same for a conversation that is about to be deleted with
// its chunks.
func (s *Store) forgetAllWords(ctx context.Context, conversationID pgtype.UUID) error {
	if err := s.lockKind(ctx, indexing); err != nil {
		return err
	}
	segments, err := s.q.ListSegmentsOf(ctx, conversationID)
	if err != nil {
		return err
	}
	return s.dropSegments(ctx, segments)
}

func (s *Store) dropSegments(ctx context.Context, segments []pgtype.UUID) error {
	if len(segments) == 0 {
		return nil
	}
	for _, buckets := range []Buckets{SmallSegment, LargeSegment} {
		if err := s.q.DeleteSegments(ctx, db.DeleteSegmentsParams{TenantID: s.tenant, Buckets: buckets.all(), Segments: segments}); err != nil {
			return err
		}
	}
	return s.q.LoosenChunks(ctx, db.LoosenChunksParams{TenantID: s.tenant, Segments: segments})
}

// LooseChunks returns the tenant's chunks that no segment names, the newest first.
func (s *Index) LooseChunks(ctx context.Context, limit int) (_ []Chunk, err error) {
	defer db.Wrap(&err, "tree.Index.LooseChunks")
	rows, err := s.q.ListLooseChunks(ctx, db.ListLooseChunksParams{TenantID: s.tenant, RowLimit: int32(limit)})
	return fromChunks(rows), err
}

// ConversationChunks returns chunks of a conversation, the newest first, beyond so
// many.
func (s *Index) ConversationChunks(ctx context.Context, conversationID uuid.UUID, beyond, limit int) (_ []Chunk, err error) {
	defer db.Wrap(&err, "tree.Index.ConversationChunks(%s)", conversationID)
	rows, err := s.q.ListConversationChunks(ctx, db.ListConversationChunksParams{
		ConversationID: toUUID(conversationID), TenantID: s.tenant, RowLimit: int32(limit), Beyond: int32(beyond),
	})
	return fromChunks(rows), err
}

// NewestChunks returns the newest chunks of each of the conversations, so many at
// most, in one round trip.
func (s *Index) NewestChunks(ctx context.Context, conversations []uuid.UUID, limit int) (_ []Chunk, err error) {
	defer db.Wrap(&err, "tree.Index.NewestChunks(%d conversations)", len(conversations))
	params := make([]db.ListConversationChunksParams, len(conversations))
	for i, id := range conversations {
		params[i] = db.ListConversationChunksParams{ConversationID: toUUID(id), TenantID: s.tenant, RowLimit: int32(limit)}
	}
	rows, err := db.All[db.SearchChunk](ctx, s.h, params, func(q *db.Queries, arg db.ListConversationChunksParams) { _, _ = q.ListConversationChunks(ctx, arg) })
	return fromChunks(rows), err
}

// Segments returns some buckets of all of the tenant's segments.
func (s *Index) Segments(ctx context.Context, buckets []int) (_ []Segment, err error) {
	defer db.Wrap(&err, "tree.Index.Segments(%d)", buckets)
	p := db.ListSegmentsParams{TenantID: s.tenant}
	for _, b := range buckets {
		p.Buckets = append(p.Buckets, int16(b))
	}
	rows, err := s.q.ListSegments(ctx, p)
	out := make([]Segment, len(rows))
	for i, row := range rows {
		out[i] = fromSegment(row)
	}
	return out, err
}

// NewestInSegments returns the time of the newest message in the tenant's segments that
// have some buckets; the zero time where none has.
func (s *Index) NewestInSegments(ctx context.Context, buckets []int) (_ time.Time, err error) {
	defer db.Wrap(&err, "tree.Index.NewestInSegments(%d)", buckets)
	p := db.GetNewestSegmentParams{TenantID: s.tenant}
	for _, b := range buckets {
		p.Buckets = append(p.Buckets, int16(b))
	}
	at, err := s.q.GetNewestSegment(ctx, p)
	if isNoRows(err) {
		return time.Time{}, nil
	}
	return at.UTC(), err
}

// PlacedChunks returns chunks by their places. Those that are gone are left out.
func (s *Index) PlacedChunks(ctx context.Context, at []PlacedChunk) (_ []Chunk, err error) {
	defer db.Wrap(&err, "tree.Index.PlacedChunks(%d)", len(at))
	var params []db.ListPlacedChunksParams
	index := map[uuid.UUID]int{}
	for _, c := range at {
		i, known := index[c.SegmentID]
		if !known {
			i, index[c.SegmentID] = len(params), len(params)
			params = append(params, db.ListPlacedChunksParams{Segment: toUUID(c.SegmentID), TenantID: s.tenant})
		}
		params[i].Places = append(params[i].Places, int16(c.Place))
	}
	rows, err := db.All[db.SearchChunk](ctx, s.h, params, func(q *db.Queries, arg db.ListPlacedChunksParams) { _, _ = q.ListPlacedChunks(ctx, arg) })
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

// SetTitleWords stores by which words a conversation's title is found.
func (s *Index) SetTitleWords(ctx context.Context, conversationID uuid.UUID, words []string) (err error) {
	defer db.Wrap(&err, "tree.Index.SetTitleWords(%s)", conversationID)
	return s.store().inTx(ctx, func(s *Store) error {
		if err := s.q.DeleteTitleWords(ctx, db.DeleteTitleWordsParams{ConversationID: toUUID(conversationID), Words: words}); err != nil || len(words) == 0 {
			return err
		}
		return s.q.AddTitleWords(ctx, db.AddTitleWordsParams{ConversationID: toUUID(conversationID), Words: words, TenantID: s.tenant})
	})
}

// Titled calls fn with the tenant's conversations whose titles were found to have one of
// the words, or one that begins with one of the beginnings, and with those among some,
// the one touched last first, until fn returns false.
func (s *Index) Titled(ctx context.Context, words, beginnings []string, among []uuid.UUID, fn func(Conversation) bool) (err error) {
	defer db.Wrap(&err, "tree.Index.Titled")
	for row, err := range db.Stream[db.Conversation](ctx, s.h, func(q *db.Queries) {
		_, _ = q.ListTitled(ctx, db.ListTitledParams{TenantID: s.tenant, Reader: s.reader, Words: words, Beginnings: beginnings, Among: toUUIDs(among)})
	}) {
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
	ids := map[uuid.UUID][]pgtype.UUID{}
	for _, p := range places {
		ids[p.ConversationID] = append(ids[p.ConversationID], toUUID(p.MessageID))
	}
	which := make([]db.DescribeHitsParams, 0, len(ids))
	for conversation, some := range ids {
		which = append(which, db.DescribeHitsParams{ConversationID: toUUID(conversation), Ids: some, TenantID: s.tenant, Reader: s.reader})
	}
	rows, err := db.All[db.DescribedHit](ctx, s.h, which, func(q *db.Queries, arg db.DescribeHitsParams) { _, _ = q.DescribeHits(ctx, arg) })
	if err != nil {
		return nil, err
	}
	found := make(map[Place]db.DescribedHit, len(rows))
	for _, row := range rows {
		found[Place{uuid.UUID(row.Node.ConversationID.Bytes), uuid.UUID(row.Node.ID.Bytes)}] = row
	}
	for _, p := range places {
		if row, ok := found[p]; ok {
			out = append(out, Hit{Message: fromMessage(row.Node, row.SiblingCount, row.Annotation), LeafID: uuid.UUID(row.LeafID.Bytes), Title: row.Title})
		}
	}
	return out, nil
}

// errStale says that what was about to be written rests on what is no more.
var errStale = errors.New("what this rests on has changed")

// fromSegment is the one converter of segments.
func fromSegment(row db.SearchSegment) Segment {
	return Segment{uuid.UUID(row.Segment.Bytes), int(row.Bucket), row.NewestAt.UTC(), row.Data}
}

// fromChunks is the one converter of chunks.
func fromChunks(rows []db.SearchChunk) []Chunk {
	out := make([]Chunk, len(rows))
	for i, row := range rows {
		out[i] = Chunk{uuid.UUID(row.ConversationID.Bytes), int(row.Number), fromUUIDs(row.Messages), row.NewestAt.UTC(), row.Data}
	}
	return out
}

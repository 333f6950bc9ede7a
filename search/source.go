package search

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

const (
	// What a search reads of conversations that the follower is behind in: the rest is
	// told to be missing.
	mostBehind         = 100
	mostBehindMessages = 2000

	// mostLoose is how many chunks in no segment a search looks at: there are more only
	// while a follower that was away makes good.
	mostLoose = 4096

	// beginningLooks is among how many of the newest messages the beginnings of words
	// are looked for, where nothing else in the query finds messages.
	beginningLooks = 1000

	firstChunks, mostChunks = 16, 256 // of a conversation, that are read together
	mostPlaced              = 32      // chunks of segments that are read together, about
)

// A candidate is a message that may match.
type candidate struct {
	tree.Place
	at  int64  // microseconds
	bit uint64 // in its chunk
}

// newestFirst compares candidates by their time and ids.
func newestFirst(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.at, a.at), bytes.Compare(b.MessageID[:], a.MessageID[:]), bytes.Compare(b.ConversationID[:], a.ConversationID[:]))
}

// A part is a chunk of a conversation with the ids of its messages.
type part struct {
	conversationID uuid.UUID
	ids            []uuid.UUID
	at             []int64
	words          table
}

func partOf(conversationID uuid.UUID, m made) (*part, error) {
	words, _, err := readTable(m.table(), keyBits, len(m.ids), padding)
	return &part{conversationID, m.ids, m.at, words}, err
}

// having returns the messages that have a word.
func (p *part) having(t *wanted) uint64 { return uint64(p.words.having(t.hashes)) }

func (p *part) candidates(mask uint64) (out []candidate) {
	for i, id := range p.ids {
		if bit := uint64(1) << i; mask&bit != 0 {
			out = append(out, candidate{tree.Place{ConversationID: p.conversationID, MessageID: id}, p.at[i], bit})
		}
	}
	return out
}

// An extent is what a search searches: one conversation, or all of the tenant's. It
// gives the parts that may have matches, in a few steps: those that no segment
// names first, and then the newest.
type extent struct {
	store        *tree.Store
	make         *maker
	conversation uuid.UUID // uuid.Nil for all
	since        int64     // older messages don't count
	missing      bool      // some messages aren't indexed yet, and weren't looked at

	behind []tree.Pending // conversations that the follower is behind in
	loose  []*part        // that no segment names

	once  bool                    // one match of each conversation is enough
	hits  map[tree.Place]tree.Hit // messages that were read whole; nil where texts are read
	bytes int                     // of them

	read     int             // chunks of the conversation
	last     bool            // there are no more
	oldest   int64           // of the conversation's chunks that were read: others aren't newer
	segments []namedPart     // of the tenant's segments, that are still to be read, the newest first
	number   int             // of the parts of the tenant's segments
	named    map[*wanted]int // chunks in segments that have a word
}

// A namedPart is one of a segment, with the chunks in it that may match.
type namedPart struct {
	at       tree.PlacedChunk // the part's first place
	newestAt int64
	places   set
}

// open reads what no segment names.
func (s *Service) open(ctx context.Context, store *tree.Store, in Within) (*extent, error) {
	conversation := in.ConversationID
	x := &extent{store: store, make: newMaker(), conversation: conversation}
	x.since, _ = in.micros()
	var err error
	if x.behind, err = s.unfollowed(ctx, store, conversation); err != nil {
		return nil, err
	}
	left := mostBehindMessages
	for i, p := range x.behind {
		ids, _, err := store.Index().Unchunked(ctx, p)
		if err != nil {
			return nil, err
		}
		if i >= mostBehind || len(ids) > left {
			x.missing = true
			ids = ids[max(0, len(ids)-left):]
		}
		left -= len(ids)
		came, err := x.make.make(ctx, store, p.ConversationID, ids)
		if err != nil {
			return nil, err
		}
		for _, m := range came {
			p, err := partOf(p.ConversationID, m)
			if err != nil {
				return nil, err
			}
			x.loose = append(x.loose, p)
		}
		if left == 0 {
			break
		}
	}
	if conversation != uuid.Nil {
		return x, x.more(ctx, firstChunks)
	}
	rows, err := store.Index().LooseChunks(ctx, mostLoose)
	if err != nil {
		return nil, err
	}
	x.missing = x.missing || len(rows) == mostLoose
	parts, err := x.parts(ctx, rows)
	x.loose = append(x.loose, parts...)
	return x, err
}

func (x *extent) parts(ctx context.Context, rows []tree.Chunk) ([]*part, error) {
	parts := make([]*part, 0, len(rows))
	for _, row := range rows {
		if at, words, err := unpack(row.Data, len(row.Messages)); err == nil {
			parts = append(parts, &part{row.ConversationID, row.Messages, at, words})
			continue
		}
		m, err := x.make.read(ctx, x.store, row)
		if err != nil {
			return nil, err
		}
		if len(m.ids) > 0 {
			p, err := partOf(row.ConversationID, m)
			if err != nil {
				return nil, err
			}
			parts = append(parts, p)
		}
	}
	return parts, nil
}

// more reads the next chunks of the conversation.
func (x *extent) more(ctx context.Context, limit int) error {
	rows, err := x.store.Index().ConversationChunks(ctx, x.read, limit, x.conversation)
	if err != nil {
		return err
	}
	x.read += len(rows)
	if x.last = len(rows) < limit; !x.last {
		x.oldest = rows[len(rows)-1].NewestAt.UnixMicro()
	}
	parts, err := x.parts(ctx, rows)
	x.loose = append(x.loose, parts...)
	return err
}

// look asks the segments which chunks may match one of the alternatives.
func (x *extent) look(ctx context.Context, q query) error {
	x.named = map[*wanted]int{}
	if x.conversation != uuid.Nil {
		return nil
	}
	rows, err := x.store.Index().Segments(ctx, q.buckets())
	if err != nil {
		return err
	}
	newest, sets := map[tree.PlacedChunk]int64{}, map[*wanted]map[tree.PlacedChunk]set{}
	for _, t := range q.terms {
		sets[t] = map[tree.PlacedChunk]set{}
	}
	for _, row := range rows {
		read, err := parts(row)
		if err != nil { // a newer program's
			x.missing = true
			continue
		}
		for i, p := range read {
			at := tree.PlacedChunk{SegmentID: row.ID, Place: i * segmentChunks}
			newest[at] = p.newest
			for _, t := range q.terms {
				if places := p.chunks(row.Bucket, t); places != 0 {
					sets[t][at] |= places
					x.named[t] += places.count()
				}
			}
		}
	}
	x.number = len(newest)
	for at, newestAt := range newest {
		var all set
		for _, a := range q.alternatives {
			named := ^set(0)
			for _, c := range sure(a) {
				for _, t := range c.words {
					named &= sets[t][at]
				}
			}
			all |= named
		}
		if all != 0 {
			x.segments = append(x.segments, namedPart{at, newestAt, all})
		}
	}
	slices.SortFunc(x.segments, func(a, b namedPart) int {
		return cmp.Or(cmp.Compare(b.newestAt, a.newestAt), bytes.Compare(b.at.SegmentID[:], a.at.SegmentID[:]), cmp.Compare(b.at.Place, a.at.Place))
	})
	return nil
}

// buckets returns those that the hashes of a query are in.
func (q query) buckets() (buckets []int) {
	for _, t := range q.terms {
		for _, h := range t.hashes {
			for _, b := range []int{small.bucket(h), large.bucket(h)} {
				if !slices.Contains(buckets, b) {
					buckets = append(buckets, b)
				}
			}
		}
	}
	return buckets
}

// having returns parts in segments that have a word, the newest: about so many.
func (x *extent) having(ctx context.Context, t *wanted, most int) (parts []*part, err error) {
	y := &extent{store: x.store, make: x.make}
	if err := y.look(ctx, query{alternatives: [][]*clause{{{words: []*wanted{t}}}}, terms: []*wanted{t}}); err != nil {
		return nil, err
	}
	for len(parts) < most {
		some, more, err := y.next(ctx)
		if err != nil || !more {
			return parts, err
		}
		parts = append(parts, some...)
	}
	return parts, nil
}

// next reads the next parts; more is false where there are none.
func (x *extent) next(ctx context.Context) (parts []*part, more bool, err error) {
	if x.conversation != uuid.Nil {
		if x.last {
			return nil, false, nil
		}
		before := len(x.loose)
		err := x.more(ctx, min(mostChunks, max(firstChunks, x.read)))
		return x.loose[before:], true, err
	}
	var at []tree.PlacedChunk
	for len(x.segments) > 0 && (len(at) == 0 || len(at)+x.segments[0].places.count() <= mostPlaced) {
		for place := range x.segments[0].places.all() {
			chunk := x.segments[0].at
			chunk.Place += place
			at = append(at, chunk)
		}
		x.segments = x.segments[1:]
	}
	if len(at) == 0 {
		return nil, false, nil
	}
	rows, err := x.store.Index().PlacedChunks(ctx, at)
	if err != nil {
		return nil, false, err
	}
	parts, err = x.parts(ctx, rows)
	return parts, true, err
}

// bound is the time that no part which is still to be read goes beyond.
func (x *extent) bound() int64 {
	switch {
	case x.conversation != uuid.Nil && !x.last:
		return x.oldest
	case len(x.segments) > 0: // of a tenant
		return x.segments[0].newestAt
	}
	return math.MinInt64
}

// An unfollowed tells since when a tenant's conversations may be ahead of the
// follower, and which were before: by the time at which they last were. A crash of
// Postgres takes back what the follower committed last.
type unfollowed struct {
	since time.Time
	among map[uuid.UUID]time.Time
}

const (
	// lateCommit is how long after its time a change is committed at most.
	lateCommit = 15 * time.Second

	// mostChanges is of how long the changes are looked through, before all conversations
	// are looked at again. Changes are kept for an hour.
	mostChanges = 10 * time.Minute
)

// mostTenants is how many tenants are remembered.
const mostTenants = 10_000

// unfollowed returns the conversations of the tenant that the follower is behind in,
// or one conversation if it is. All of a tenant's are looked at once, and then those
// that changed since.
func (s *Service) unfollowed(ctx context.Context, store *tree.Store, conversation uuid.UUID) ([]tree.Pending, error) {
	if conversation != uuid.Nil {
		behind, err := store.Feed().Pending(ctx, tree.SearchFollower, []uuid.UUID{conversation})
		return behind, err
	}
	s.mu.Lock()
	known := s.behind[store.TenantID()]
	s.mu.Unlock()
	now := time.Now()
	if now.Sub(known.since) > mostChanges {
		known = unfollowed{}
	}
	behind, err := store.Feed().Unfollowed(ctx, tree.SearchFollower, slices.Collect(maps.Keys(known.among)), known.since, mostBehind+1)
	if err != nil {
		return nil, err
	}
	next := unfollowed{now.Add(-lateCommit), map[uuid.UUID]time.Time{}}
	for id, at := range known.among {
		if at.After(next.since) {
			next.among[id] = at
		}
	}
	for _, p := range behind {
		next.among[p.ConversationID] = now
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.behind) >= mostTenants {
		clear(s.behind)
	}
	if s.behind[store.TenantID()] = next; len(behind) > mostBehind { // perhaps even more
		delete(s.behind, store.TenantID())
	}
	return behind, nil
}

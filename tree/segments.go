package tree

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
)

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

const (
	// PartPlaces is how many chunks a part of a segment names. Package search makes the
	// data of a bucket of parts, one after the other: a small segment has one.
	PartPlaces = 32

	partsEnd = 7 // bytes behind the last part
)

func (b Buckets) all() []int16 {
	out := make([]int16, b.Count)
	for i := range out {
		out[i] = int16(b.First + i)
	}
	return out
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
	return s.changeIndex(ctx, func(s *Store) error {
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
		rows, err := db.All(ctx, s.h, (*db.Queries).PlaceChunk, places)
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
	return s.changeIndex(ctx, func(s *Store) error {
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
}

func (s *Store) insertSegment(ctx context.Context, p db.InsertSegmentParams, buckets map[int][]byte) error {
	for bucket, data := range buckets {
		p.Buckets, p.Parts = append(p.Buckets, int16(bucket)), append(p.Parts, data)
	}
	return s.q.InsertSegment(ctx, p)
}

// dropParts empties the parts of segments that name some chunks, and makes loose what else
// they name. So a prune costs the parts that it is in, and not the large segments.
func (s *Store) dropParts(ctx context.Context, of []db.ListPlacesOfRow) error {
	parts := map[pgtype.UUID][]int32{}
	for _, c := range of {
		if part := int32(c.Place.Int16) / PartPlaces; c.Segment.Valid && !slices.Contains(parts[c.Segment], part) {
			parts[c.Segment] = append(parts[c.Segment], part)
		}
	}
	for segment, gone := range parts {
		for _, buckets := range []Buckets{SmallSegment, LargeSegment} {
			if err := s.emptyParts(ctx, segment, buckets, gone); err != nil {
				return err
			}
		}
		if err := s.q.LoosenChunks(ctx, db.LoosenChunksParams{TenantID: s.tenant, Segment: segment, PartPlaces: PartPlaces, Parts: gone}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) emptyParts(ctx context.Context, segment pgtype.UUID, of Buckets, gone []int32) error {
	segments := []pgtype.UUID{segment}
	rows, err := s.q.ListBucketsOf(ctx, db.ListBucketsOfParams{TenantID: s.tenant, Buckets: of.all(), Segments: segments})
	if err != nil || len(rows) == 0 {
		return err
	}
	var empty []int16
	left := db.SetBucketsParams{TenantID: s.tenant, Segment: segment}
	for _, row := range rows {
		if data := withoutParts(row.Data, gone); data == nil {
			empty = append(empty, row.Bucket)
		} else {
			left.Buckets, left.Parts = append(left.Buckets, row.Bucket), append(left.Parts, data)
		}
	}
	if err := s.q.DeleteSegments(ctx, db.DeleteSegmentsParams{TenantID: s.tenant, Buckets: empty, Segments: segments}); err != nil || len(left.Buckets) == 0 {
		return err
	}
	return s.q.SetBuckets(ctx, left)
}

// withoutParts empties parts of a bucket. It returns nil if no part has a word then. Of a
// part it knows as much as it needs to pass it: it begins with four numbers as varints, the
// second of which is how many words it has, and the last two are the lengths of what follows.
func withoutParts(data []byte, gone []int32) []byte {
	var out []byte
	words := false
	for part := int32(0); len(data) > partsEnd; part++ {
		var head [4]int
		size := 0
		for i := range head {
			v, n := binary.Uvarint(data[size:])
			if n <= 0 {
				return nil
			}
			head[i], size = int(v), size+n
		}
		size += head[2] + head[3]
		if size > len(data) {
			return nil
		}
		if slices.Contains(gone, part) {
			out = append(out, 0, 0, 0, 0)
		} else {
			out, words = append(out, data[:size]...), words || head[1] > 0
		}
		data = data[size:]
	}
	if !words {
		return nil
	}
	return append(out, data...)
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
	rows, err := db.All(ctx, s.h, (*db.Queries).ListPlacedChunks, params)
	return fromChunks(rows), err
}

// fromSegment is the one converter of segments.
func fromSegment(row db.SearchSegment) Segment {
	return Segment{uuid.UUID(row.Segment.Bytes), int(row.Bucket), row.NewestAt.UTC(), row.Data}
}

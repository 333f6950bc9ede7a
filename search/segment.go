package search

import (
	"encoding/binary"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/coppice-chat/coppice/tree"
)

// A small segment names so many chunks, and a large one takes the place of so many small
// ones. So a search for a rare word reads few rows, and looks itself at no more than 40
// chunks that no segment names.
const (
	segmentChunks = tree.PartPlaces
	largeParts    = 32
)

// A level is a kind of segment. The first bits of a hash name its bucket, and the others
// are its key there. A large segment has more buckets, so that a bucket has about as many
// bytes in both.
type level struct {
	tree.Buckets
	keyBits int
}

var small, large = levelOf(tree.SmallSegment), levelOf(tree.LargeSegment)

func levelOf(b tree.Buckets) level { return level{b, keyBits - bits.Len(uint(b.Count-1))} }

func (l level) bucket(k hash) int { return l.First + int(k>>l.keyBits) }

func (l level) key(k hash) hash { return k & (1<<l.keyBits - 1) }

// A bucket of a segment is stored as its parts, of segmentChunks places each. A part is
// how many seconds its newest message is older than the segment's, as a varint, and the
// table of its keys. A small segment has one part.
type segmentPart struct {
	newest int64 // microseconds; up to a second too late
	table
}

// chunks returns the places of the part's chunks that have a word, if its bucket has some.
func (p segmentPart) chunks(bucket int, t *wanted) (places set) {
	for _, h := range t.hashes {
		for _, l := range []level{small, large} {
			if l.bucket(h) == bucket {
				places |= p.having([]hash{l.key(h)})
			}
		}
	}
	return places
}

// parts reads a bucket.
func parts(s tree.Segment) (all []segmentPart, err error) {
	l, data := small, s.Data
	if s.Bucket >= large.First {
		l = large
	}
	for len(data) > padding {
		older, n := binary.Uvarint(data)
		if n <= 0 {
			return nil, errChunk
		}
		p := segmentPart{newest: s.NewestAt.UnixMicro() - int64(older)*1e6}
		if p.table, data, err = readTable(data[n:], l.keyBits, segmentChunks, 0); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// A segmentMaker makes the buckets of a segment, part after part.
type segmentMaker struct {
	level
	buckets [][]byte
	filled  []bool
}

func newSegment(l level) *segmentMaker {
	return &segmentMaker{l, make([][]byte, l.Count), make([]bool, l.Count)}
}

// add adds a part: the sets of hashes, which are in order.
func (m *segmentMaker) add(older time.Duration, hashes []hash, of func(i int) set) {
	from := 0
	for i := range m.buckets {
		var keys []hash
		for to := from; to < len(hashes) && m.bucket(hashes[to]) == m.First+i; to++ {
			keys = append(keys, m.key(hashes[to]))
		}
		m.filled[i] = m.filled[i] || len(keys) > 0
		m.buckets[i] = binary.AppendUvarint(m.buckets[i], uint64(older/time.Second))
		m.buckets[i] = packTable(m.buckets[i], m.keyBits, segmentChunks, 0, keys, func(n int) set { return of(from + n) })
		from += len(keys)
	}
}

// made returns the buckets that have a key.
func (m *segmentMaker) made() map[int][]byte {
	out := map[int][]byte{}
	for i, data := range m.buckets {
		if m.filled[i] {
			out[m.First+i] = append(data, make([]byte, padding)...)
		}
	}
	return out
}

// smallSegment names chunks in their places. It returns nil where a chunk is a newer
// program's: a segment without its words would hide it.
func smallSegment(rows []tree.Chunk) map[int][]byte {
	sets := map[hash]set{}
	for place, row := range rows {
		c, err := decodeChunk(row.Data, len(row.Messages))
		if err != nil {
			return nil
		}
		for _, k := range c.keys {
			sets[k] |= 1 << place
		}
	}
	hashes := slices.Sorted(maps.Keys(sets))
	m := newSegment(small)
	m.add(0, hashes, func(i int) set { return sets[hashes[i]] })
	return m.made()
}

// largeSegment makes one of small ones: of each all its buckets, in order. It returns nil
// where it can't read one.
func largeSegment(all [][]tree.Segment) map[int][]byte {
	newest := func(s []tree.Segment) time.Time { return s[0].NewestAt }
	last := newest(slices.MaxFunc(all, func(a, b []tree.Segment) int { return newest(a).Compare(newest(b)) }))
	m := newSegment(large)
	for _, buckets := range all {
		var hashes []hash
		var sets []set
		for _, b := range buckets {
			read, err := parts(b)
			if err != nil || len(read) != 1 {
				return nil
			}
			for k, s := range read[0].all() {
				hashes, sets = append(hashes, hash(b.Bucket-small.First)<<small.keyBits|k), append(sets, s)
			}
		}
		m.add(last.Sub(newest(buckets)), hashes, func(i int) set { return sets[i] })
	}
	return m.made()
}

package search

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

const (
	// chunkMessages is how many messages a chunk has at most: one bit each of a
	// uint64.
	chunkMessages = 64

	// A term's key has so many bits, of which the first name its bucket in a
	// segment. A chunk of 1,000 terms has another term of the same key in one look-up
	// of 4,000, which costs that one more message is read.
	keyBits    = 22
	bucketBits = 8
)

// A hash is what a chunk has of a term.
type hash uint32

func (t term) hash() hash { return hash(t >> (64 - keyBits)) }

func (k hash) bucket() int  { return int(k >> (keyBits - bucketBits)) }
func (k hash) rest() uint16 { return uint16(k & (1<<(keyBits-bucketBits) - 1)) }

// A chunk knows which of its messages have which terms.
type chunk struct {
	at    []int64  // of each message: its time, in microseconds
	words []uint32 // of each message: how many it has
	keys  []hash   // in order
	masks []uint64 // by key: the messages that have it, the first as the lowest bit
}

// add adds a message with terms in any order, some more than once.
func (c *chunk) add(at time.Time, words int, terms []hash) {
	bit := uint64(1) << len(c.at)
	c.at, c.words = append(c.at, at.UnixMicro()), append(c.words, uint32(words))
	slices.Sort(terms)
	terms = slices.Compact(terms)
	c.merge(terms, func(int) uint64 { return bit })
}

// join adds the messages of a chunk behind those of c.
func (c *chunk) join(other *chunk) {
	shift := len(c.at)
	c.at, c.words = append(c.at, other.at...), append(c.words, other.words...)
	c.merge(other.keys, func(i int) uint64 { return other.masks[i] << shift })
}

func (c *chunk) merge(keys []hash, mask func(i int) uint64) {
	all, masks := make([]hash, 0, len(c.keys)+len(keys)), make([]uint64, 0, len(c.keys)+len(keys))
	i := 0
	for j, k := range keys {
		for ; i < len(c.keys) && c.keys[i] < k; i++ {
			all, masks = append(all, c.keys[i]), append(masks, c.masks[i])
		}
		m := mask(j)
		if i < len(c.keys) && c.keys[i] == k {
			m |= c.masks[i]
			i++
		}
		all, masks = append(all, k), append(masks, m)
	}
	c.keys, c.masks = append(all, c.keys[i:]...), append(masks, c.masks[i:]...)
}

// having returns the messages that have a term of one of the hashes.
func (c *chunk) having(keys []hash) (mask uint64) {
	for _, k := range keys {
		if i, found := slices.BinarySearch(c.keys, k); found {
			mask |= c.masks[i]
		}
	}
	return mask
}

// A chunk is stored as a version, the number of messages, their times and words, the
// number of hashes, the bytes and then the distances of the hashes, and the masks.
// Numbers are varints. A mask of few messages is stored as their places: most terms
// occur in one.
const (
	chunkVersion = 1
	listedMasks  = 8 // messages of a mask that is stored as places
	wholeMask    = 0xff
)

func (c *chunk) encode() []byte {
	out := []byte{chunkVersion}
	out = binary.AppendUvarint(out, uint64(len(c.at)))
	last := int64(0)
	for i, at := range c.at {
		out = binary.AppendVarint(out, at-last)
		out = binary.AppendUvarint(out, uint64(c.words[i]))
		last = at
	}
	var distances []byte
	before := hash(0)
	for _, k := range c.keys {
		distances = binary.AppendUvarint(distances, uint64(k-before))
		before = k
	}
	out = binary.AppendUvarint(out, uint64(len(c.keys)))
	out = binary.AppendUvarint(out, uint64(len(distances)))
	out = append(out, distances...)
	for _, m := range c.masks {
		n := bits.OnesCount64(m)
		switch {
		case n == 1:
			out = append(out, byte(bits.TrailingZeros64(m)))
		case n <= listedMasks:
			out = append(out, byte(chunkMessages+n))
			for ; m != 0; m &= m - 1 {
				out = append(out, byte(bits.TrailingZeros64(m)))
			}
		default:
			out = binary.BigEndian.AppendUint64(append(out, wholeMask), m)
		}
	}
	return out
}

var errChunk = errors.New("the index of words holds what this program can't read")

// A packed chunk is one as it is stored. A search looks for a few hashes in each of
// some hundred chunks, for which it need not take them apart.
type packed struct {
	at     []int64
	words  []uint32
	hashes int
	keys   []byte // distances
	masks  []byte
}

// unpack reads the head of a chunk of so many messages.
func unpack(data []byte, messages int) (*packed, error) {
	r := reader{rest: data}
	if r.byte() != chunkVersion || r.uvarint() != uint64(messages) || messages > chunkMessages {
		return nil, errChunk
	}
	p := &packed{at: make([]int64, messages), words: make([]uint32, messages)}
	last := int64(0)
	for i := range messages {
		last += r.varint()
		p.at[i], p.words[i] = last, uint32(r.uvarint())
	}
	n := r.uvarint()
	bytes := r.uvarint()
	if r.short || bytes > uint64(len(r.rest)) || n > bytes {
		return nil, errChunk
	}
	p.hashes, p.keys, p.masks = int(n), r.rest[:bytes], r.rest[bytes:]
	return p, nil
}

// having returns the messages that have a term of one of the hashes, which are in
// order.
func (p *packed) having(sought []hash) (mask uint64) {
	keys, k, next := p.keys, hash(0), 0
	masks := reader{rest: p.masks}
	skipped := 0 // masks that were read
	for i := 0; len(keys) > 0 && next < len(sought); i++ {
		distance, n := hash(0), 0
		for ; n < len(keys) && keys[n] >= 0x80; n++ {
			distance |= hash(keys[n]&0x7f) << (7 * n)
		}
		if n == len(keys) {
			return mask
		}
		k += distance | hash(keys[n])<<(7*n)
		keys = keys[n+1:]
		for next < len(sought) && sought[next] < k {
			next++
		}
		if next < len(sought) && sought[next] == k {
			for ; skipped < i; skipped++ {
				masks.mask()
			}
			mask |= masks.mask()
			skipped++
		}
	}
	return mask
}

// decodeChunk takes a stored chunk apart.
func decodeChunk(data []byte, messages int) (*chunk, error) {
	p, err := unpack(data, messages)
	if err != nil {
		return nil, err
	}
	c := &chunk{at: p.at, words: p.words, keys: make([]hash, p.hashes), masks: make([]uint64, p.hashes)}
	keys, masks, k := reader{rest: p.keys}, reader{rest: p.masks}, hash(0)
	for i := range c.keys {
		k += hash(keys.uvarint())
		c.keys[i], c.masks[i] = k, masks.mask()
	}
	if keys.short || masks.short {
		return nil, errChunk
	}
	return c, nil
}

// A reader takes numbers from the front of bytes. Behind the end all are 0.
type reader struct {
	rest  []byte
	short bool
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.rest) {
		r.short, r.rest = true, nil
		return make([]byte, n)
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) byte() byte { return r.bytes(1)[0] }

// mask reads the messages that have a term.
func (r *reader) mask() (mask uint64) {
	switch b := r.byte(); {
	case b < chunkMessages:
		return 1 << b
	case b == wholeMask:
		return binary.BigEndian.Uint64(r.bytes(8))
	default:
		for _, place := range r.bytes(int(b - chunkMessages)) {
			mask |= 1 << (place % chunkMessages)
		}
		return mask
	}
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.rest)
	r.skip(n)
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.rest)
	r.skip(n)
	return v
}

func (r *reader) skip(n int) {
	if n <= 0 {
		r.short, r.rest = true, nil
		return
	}
	r.rest = r.rest[n:]
}

// segmentChunks is how many chunks a segment names. Up to 160 chunks of a tenant are
// in no segment, and are looked at by each search.
const segmentChunks = 128

// segment makes the data of each bucket from chunks in their places: the rests of
// the keys, each with the number of the chunks that have it and their places.
func segment(chunks []*chunk) map[int][]byte {
	type placed struct {
		key   hash
		place byte
	}
	var all []placed
	for place, c := range chunks {
		for _, k := range c.keys {
			all = append(all, placed{k, byte(place)})
		}
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.place, b.place)) })
	data := map[int][]byte{}
	for len(all) > 0 {
		k, n := all[0].key, 1
		for n < len(all) && all[n].key == k {
			n++
		}
		d := binary.BigEndian.AppendUint16(data[k.bucket()], k.rest())
		d = append(d, byte(n))
		for _, p := range all[:n] {
			d = append(d, p.place)
		}
		data[k.bucket()], all = d, all[n:]
	}
	return data
}

// A placeSet is a set of places in a segment.
type placeSet [segmentChunks / 64]uint64

func (s *placeSet) add(place byte) { s[place/64%2] |= 1 << (place % 64) }

func (s placeSet) and(other placeSet) placeSet { return placeSet{s[0] & other[0], s[1] & other[1]} }
func (s placeSet) or(other placeSet) placeSet  { return placeSet{s[0] | other[0], s[1] | other[1]} }
func (s placeSet) count() int                  { return bits.OnesCount64(s[0]) + bits.OnesCount64(s[1]) }

// all returns the chunks of the set in a segment.
func (s placeSet) all(segmentID uuid.UUID) (at []tree.PlacedChunk) {
	for i, m := range s {
		for ; m != 0; m &= m - 1 {
			at = append(at, tree.PlacedChunk{SegmentID: segmentID, Place: 64*i + bits.TrailingZeros64(m)})
		}
	}
	return at
}

// placesOf returns the chunks that have a key of the data's bucket.
func placesOf(data []byte, k hash) (set placeSet) {
	for len(data) > 3 {
		n := int(data[2])
		if len(data) < 3+n {
			return set
		}
		switch rest := binary.BigEndian.Uint16(data); {
		case rest > k.rest():
			return set
		case rest == k.rest():
			for _, place := range data[3 : 3+n] {
				set.add(place)
			}
			return set
		}
		data = data[3+n:]
	}
	return set
}

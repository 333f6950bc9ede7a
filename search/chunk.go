package search

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"
)

const (
	// chunkMessages is how many messages a chunk has at most: one bit each of a
	// uint64.
	chunkMessages = 64

	// A term's key has so many bits. A chunk of 1,000 terms has another term of the same
	// key in one look-up of 4,000, which costs that one more message is read.
	keyBits = 22
)

// A hash is what a chunk has of a term.
type hash uint32

func (t term) hash() hash { return hash(t >> (64 - keyBits)) }

// A chunk knows which of its messages have which terms.
type chunk struct {
	at    []int64  // of each message: its time, in microseconds
	keys  []hash   // in order
	masks []uint64 // by key: the messages that have it, the first as the lowest bit
}

// add adds a message with terms in any order, some more than once.
func (c *chunk) add(at time.Time, terms []hash) {
	bit := uint64(1) << len(c.at)
	c.at = append(c.at, at.UnixMicro())
	slices.Sort(terms)
	c.merge(slices.Compact(terms), func(int) uint64 { return bit })
}

// join adds the messages of a chunk behind those of c.
func (c *chunk) join(other *chunk) {
	shift := len(c.at)
	c.at = append(c.at, other.at...)
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

// A chunk is stored as a version, the times of its messages as varints, each as the
// distance from the one before, and the table of its keys.
const chunkVersion = 2

var errChunk = errors.New("the index of words holds what this program can't read")

func (c *chunk) encode() []byte {
	out := []byte{chunkVersion}
	last := int64(0)
	for _, at := range c.at {
		out = binary.AppendVarint(out, at-last)
		last = at
	}
	return append(out, c.table()...)
}

func (c *chunk) table() []byte {
	return packTable(nil, keyBits, len(c.at), padding, c.keys, func(i int) set { return set(c.masks[i]) })
}

// unpack reads a stored chunk of so many messages. A search looks for a few hashes in
// each of some hundred chunks, for which it need not take them apart.
func unpack(data []byte, messages int) (at []int64, words table, err error) {
	if len(data) == 0 || data[0] != chunkVersion || messages > chunkMessages {
		return nil, table{}, errChunk
	}
	data = data[1:]
	at = make([]int64, messages)
	last := int64(0)
	for i := range at {
		distance, n := binary.Varint(data)
		if n <= 0 {
			return nil, table{}, errChunk
		}
		last, data = last+distance, data[n:]
		at[i] = last
	}
	words, rest, err := readTable(data, keyBits, messages, padding)
	if len(rest) > 0 {
		return nil, table{}, errChunk
	}
	return at, words, err
}

// decodeChunk takes a stored chunk apart.
func decodeChunk(data []byte, messages int) (*chunk, error) {
	at, words, err := unpack(data, messages)
	if err != nil {
		return nil, err
	}
	c := &chunk{at: at}
	for k, s := range words.all() {
		c.keys, c.masks = append(c.keys, k), append(c.masks, uint64(s))
	}
	return c, nil
}

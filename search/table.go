package search

import (
	"encoding/binary"
	"iter"
	"math/bits"
)

// A set is one of places, the first as the lowest bit: of messages in a chunk, or of
// chunks in a part of a segment.
type set uint64

func (s set) count() int { return bits.OnesCount64(uint64(s)) }

// all gives the places in order.
func (s set) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for ; s != 0; s &= s - 1 {
			if !yield(bits.TrailingZeros64(uint64(s))) {
				return
			}
		}
	}
}

// A table has sets by keys. It is stored in bits, which take about three quarters of the
// bytes that varints would, as keys are evenly spread and most sets have one place.
//
// Of each key the distance from the one before is stored, by Rice's code: what it has
// above the bits of a middling distance as so many ones and a zero, then these bits. Of
// each set the number of its places less one is stored, as so many ones and a zero, and
// then the places; of a larger one a bit for each place that there is.
type table struct {
	keyBits, places, size int    // bits of a key, places that there are, and keys
	keys, sets            []byte // each goes on with what follows it, for eight bytes can be read from each
}

const (
	mostOnes  = 24 // of a distance: a larger one follows whole
	mostNamed = 8  // places of a set: else it has a bit for each
	padding   = 7  // bytes at the end, so that eight can be read from each
)

// rice returns how many bits a middling distance has.
func (t table) rice() int { return max(0, t.keyBits-bits.Len(uint(t.size))) }

func (t table) placeBits() int { return bits.Len(uint(max(0, t.places-1))) }

// packTable appends the sets of keys, which are in order. pad bytes follow the keys and
// the sets.
func packTable(out []byte, keyBits, places, pad int, keys []hash, of func(i int) set) []byte {
	t := table{keyBits: keyBits, places: places, size: len(keys)}
	var packed, sets bitWriter
	next := hash(0) // the least that the next key can be
	for i, k := range keys {
		if distance := uint64(k - next); distance>>t.rice() < mostOnes {
			packed.ones(int(distance >> t.rice()))
			packed.put(distance, t.rice())
		} else {
			packed.ones(mostOnes)
			packed.put(distance, keyBits)
		}
		next = k + 1
		if s := of(i); s.count() <= mostNamed {
			sets.ones(s.count() - 1)
			for place := range s.all() {
				sets.put(uint64(place), t.placeBits())
			}
		} else {
			sets.ones(mostNamed)
			for from := 0; from < places; from += 32 {
				sets.put(uint64(s>>from), min(32, places-from))
			}
		}
	}
	for _, n := range []int{len(keys), len(packed.out), len(sets.out)} {
		out = binary.AppendUvarint(out, uint64(n))
	}
	out = append(append(out, packed.out...), make([]byte, pad)...)
	return append(append(out, sets.out...), make([]byte, pad)...)
}

// readTable reads a table of so many places, and returns what follows it.
func readTable(data []byte, keyBits, places, pad int) (t table, rest []byte, err error) {
	var head [3]int
	for i := range head {
		v, n := binary.Uvarint(data)
		if n <= 0 || v > 1<<30 {
			return table{}, nil, errChunk
		}
		head[i], data = int(v), data[n:]
	}
	sets := head[1] + pad
	end := sets + head[2] + pad
	if len(data) < end || head[0] > 8*head[1] {
		return table{}, nil, errChunk
	}
	return table{keyBits, places, head[0], data, data[sets:]}, data[end:], nil
}

// all gives the keys in order, and their sets.
func (t table) all() iter.Seq2[hash, set] {
	return func(yield func(hash, set) bool) {
		keys, sets, next := bitReader{data: t.keys}, bitReader{data: t.sets}, hash(0)
		for range t.size {
			k := next + keys.distance(t.keyBits, t.rice())
			if next = k + 1; !yield(k, sets.set(t.places, t.placeBits())) {
				return
			}
		}
	}
}

// having returns the places of the sets of some keys, which are in order. A search does
// this for each of some hundred chunks, most of which have none of the keys.
func (t table) having(sought []hash) (found set) {
	keys, sets, next, rice := bitReader{data: t.keys}, bitReader{data: t.sets}, hash(0), t.rice()
	read := 0 // sets
	for i := 0; i < t.size && len(sought) > 0; i++ {
		k := next + keys.distance(t.keyBits, rice)
		for len(sought) > 0 && sought[0] < k {
			sought = sought[1:]
		}
		if len(sought) > 0 && sought[0] == k {
			for ; read < i; read++ {
				sets.set(t.places, t.placeBits())
			}
			found |= sets.set(t.places, t.placeBits())
			read++
		}
		next = k + 1
	}
	return found
}

// A bitWriter appends bits, the lowest first.
type bitWriter struct {
	out  []byte
	have int // bits in the last byte; 0 where it is full
}

func (w *bitWriter) put(v uint64, n int) {
	for n > 0 {
		if w.have == 0 {
			w.out = append(w.out, 0)
		}
		some := min(n, 8-w.have)
		w.out[len(w.out)-1] |= byte(v&(1<<some-1)) << w.have
		w.have, v, n = (w.have+some)%8, v>>some, n-some
	}
}

// ones appends so many ones and a zero.
func (w *bitWriter) ones(n int) { w.put(1<<n-1, n+1) }

// A bitReader takes bits from the front of bytes. Behind the end all are 0.
type bitReader struct {
	data []byte
	at   uint
}

// next returns the next 57 bits or more.
func (r *bitReader) next() uint64 {
	if i := r.at / 8; i+8 <= uint(len(r.data)) {
		return binary.LittleEndian.Uint64(r.data[i:]) >> (r.at % 8)
	}
	return 0
}

func (r *bitReader) take(n int) uint64 {
	v := r.next() & (1<<(n&63) - 1)
	r.at += uint(n)
	return v
}

func (r *bitReader) ones() int {
	n := bits.TrailingZeros64(^r.next())
	r.at += uint(n + 1)
	return n
}

// distance reads that of a key: both parts of it are in 57 bits.
func (r *bitReader) distance(keyBits, rice int) hash {
	next := r.next()
	n := bits.TrailingZeros64(^next)
	next >>= (n + 1) & 63
	if n >= mostOnes {
		n, rice = 0, keyBits
		r.at += mostOnes
	}
	r.at += uint(n + 1 + rice)
	return hash(uint64(n)<<(rice&63) | next&(1<<(rice&63)-1))
}

func (r *bitReader) set(places, placeBits int) (s set) {
	n := r.ones()
	if n < mostNamed {
		for range n + 1 {
			s |= 1 << (r.take(placeBits) & 63)
		}
		return s
	}
	for from := 0; from < places; from += 32 {
		s |= set(r.take(min(32, places-from))) << from
	}
	return s
}

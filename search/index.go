package search

import (
	"encoding/binary"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"unsafe"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// An index knows which words the messages of a conversation have. It holds no text: a
// term is a hash, and a message is a few numbers. Messages are only added; see
// conversation for what is pruned.
type index struct {
	entries  []entry
	byID     map[uuid.UUID]int32
	waiting  map[uuid.UUID][]int32 // by the id of a parent that is not here yet
	parents  map[int32]uuid.UUID   // the same the other way round
	postings map[term]posting
	order    []uint16        // two bytes of each term, entry by entry, in the order of the text
	names    []map[term]bool // of speakers, and of those who are called by name; numbered from 1
	byName   map[string]int32
	bytes    int64
	stems    *stemmer

	vectors map[uuid.UUID]stored // of the conversation's messages, also of those that aren't entries
	stamp   int64                // of the newest of them
}

// A term is the hash of a stem, the same in every process.
type term uint64

func termOf(stem string) term {
	h := uint64(14695981039346656037) // FNV-1a
	for i := range len(stem) {
		h = (h ^ uint64(stem[i])) * 1099511628211
	}
	h ^= h >> 32 // its last bits alone depend on all of the stem
	return term(h * 0x9E3779B97F4A7C15)
}

// short is what an entry's order has of a term.
func (t term) short() uint16 { return uint16(t) }

// An entry is a message. Entries are numbered in the order in which they came.
type entry struct {
	id       uuid.UUID
	parent   int32 // number of the parent; noParent or unread
	depth    int32
	words    int32 // without function words
	tokens   int32
	speaker  int32 // number of the name; 0 for none
	calls    int32 // number of the name by which it calls whom it answers; 0 for none
	version  tree.Version
	decay    float32 // see rank.go
	reach    float32
	weight   float32
	at       uint32 // seconds of its time; 0 for none
	order    uint32 // where its terms begin in the index's order
	marks    marks
	language language
}

const (
	noParent int32 = -1 // a root
	unread   int32 = -2 // the parent is not here yet
)

// A posting lists the entries that have a term: pairs of numbers in variable
// length, the distance from the entry before and how often the term occurs.
type posting struct {
	data  []byte
	last  int32 // number of the last entry
	count int32 // of entries
}

func newIndex() *index {
	return &index{
		byID: map[uuid.UUID]int32{}, waiting: map[uuid.UUID][]int32{}, parents: map[int32]uuid.UUID{},
		postings: map[term]posting{},
		byName:   map[string]int32{}, stems: newStemmer(), vectors: map[uuid.UUID]stored{},
	}
}

// Rough costs in memory, for the bound on it.
const (
	entryBytes   = int64(unsafe.Sizeof(entry{})) + 64   // with its place in byID
	postingBytes = int64(unsafe.Sizeof(posting{})) + 24 // with its place in postings
)

// add brings in a message that is not there yet, of a speaker who may have a name. text
// is what of it is searched, and words are those of the text.
func (x *index) add(t tree.MessageText, name *string, text string, words []word) {
	n := int32(len(x.entries))
	e := entry{id: t.ID, depth: int32(t.Depth), tokens: int32(t.Tokens), version: t.Version, parent: noParent, language: languageOf(words)}
	e.marks = marksOf(t.Role, text, words)
	if !t.CreatedAt.IsZero() {
		e.at = uint32(t.CreatedAt.Unix())
	}
	terms := make([]term, 0, len(words))
	e.order = uint32(len(x.order))
	for _, w := range words {
		if stem, ok := x.stems.termIn(w, e.language); ok {
			terms = append(terms, stem)
			if !w.part {
				x.order = append(x.order, stem.short())
			}
		}
	}
	e.words = int32(len(terms))
	if name != nil {
		e.speaker = x.speaker(*name)
		terms = slices.AppendSeq(terms, maps.Keys(x.names[e.speaker-1]))
	} else if called := calls(text, words); called != "" && e.marks&isSaid != 0 {
		e.calls = x.speaker(called)
	}
	slices.Sort(terms)
	for len(terms) > 0 {
		count := 1
		for count < len(terms) && terms[count] == terms[0] {
			count++
		}
		x.post(terms[0], n, count)
		terms = terms[count:]
	}
	if t.ParentID != uuid.Nil {
		e.parent = unread
		x.waiting[t.ParentID] = append(x.waiting[t.ParentID], n)
		x.parents[n] = t.ParentID
	}
	e.decay, e.reach, e.weight = factors(e.words)
	x.entries = append(x.entries, e)
	x.byID[t.ID] = n
	x.bytes += entryBytes + 2*(int64(len(x.order))-int64(e.order))
	x.link(t.ID, n)
}

// link makes an entry the parent of those that wait for it.
func (x *index) link(id uuid.UUID, n int32) {
	for _, child := range x.waiting[id] {
		x.entries[child].parent = n
		delete(x.parents, child)
	}
	delete(x.waiting, id)
}

func (x *index) speaker(name string) int32 {
	if n, ok := x.byName[name]; ok {
		return n
	}
	terms := map[term]bool{}
	for _, w := range wordsOf(name) {
		if t, ok := x.stems.termIn(w, 0); ok {
			terms[t] = true
		}
	}
	x.names = append(x.names, terms)
	x.byName[name] = int32(len(x.names))
	x.bytes += int64(len(name)) + 128
	return int32(len(x.names))
}

func (x *index) post(t term, n int32, count int) {
	p, known := x.postings[t]
	if !known {
		x.bytes += postingBytes
	}
	before := cap(p.data)
	p.data = binary.AppendUvarint(p.data, uint64(n-p.last))
	p.data = binary.AppendUvarint(p.data, uint64(count))
	p.last, p.count = n, p.count+1
	x.bytes += int64(cap(p.data) - before)
	x.postings[t] = p
}

// orderOf gives two bytes of each term of an entry, in the order of its text.
func (x *index) orderOf(n int32) []uint16 {
	if int(n)+1 < len(x.entries) {
		return x.order[x.entries[n].order:x.entries[n+1].order]
	}
	return x.order[x.entries[n].order:]
}

// all gives the entries that have a term, and how often they do.
func (p posting) all() iter.Seq2[int32, int] {
	return func(yield func(int32, int) bool) {
		n := int32(0)
		for rest := p.data; len(rest) > 0; {
			distance, size := binary.Uvarint(rest)
			count, more := binary.Uvarint(rest[size:])
			rest = rest[size+more:]
			if n += int32(distance); !yield(n, int(count)) {
				return
			}
		}
	}
}

// maxKnown is how many words' terms a stemmer remembers: a text has most of its
// words more than once, and stemming is most of the work of reading it.
const maxKnown = 1 << 15

// termIn gives a word's term in a language; false for one of its function words.
func (s *stemmer) termIn(w word, l language) (term, bool) {
	if w.bigram {
		return termOf(w.text), true
	}
	key := wordIn{w.text, l}
	if t, ok := s.known[key]; ok {
		return t, t != 0
	}
	var t term // 0 for a function word; no hash is 0, for all practical purposes
	if !l.isStopword(w.text) {
		t = termOf(s.stem(w.text, l))
	}
	if len(s.known) >= maxKnown {
		clear(s.known)
	}
	key.word = strings.Clone(key.word) // not the whole message that it is part of
	s.known[key] = t
	return t, t != 0
}

// path gives the numbers of the entries from the root to head, by their depth.
// Where the messages above one of them were not read yet, it gives unread for those,
// that one's number, and false.
func (x *index) path(head int32) (path []int32, top int32, whole bool) {
	path = make([]int32, x.entries[head].depth+1)
	for n := head; ; n = x.entries[n].parent {
		path[x.entries[n].depth] = n
		switch x.entries[n].parent {
		case noParent:
			return path, n, true
		case unread:
			for i := range x.entries[n].depth {
				path[i] = unread
			}
			return path, n, false
		}
	}
}

// factors are what of an entry its rank depends on, besides its terms and marks.
func factors(words int32) (decay, reach, weight float32) {
	w := float64(words)
	decay = float32(math.Exp(-w / decayWords))
	reach = float32(math.Pow(min(1, reachWords/max(w, 1)), reachPower))
	return decay, reach, float32(math.Pow(min(1, (w+1)/shortWords), shortPower))
}

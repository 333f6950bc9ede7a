package tokens

import "context"

// maxBlock is how much of a piece is merged at once, in bytes. A longer piece,
// which no natural language has, is counted block by block, and may so count one
// token more for each block.
const maxBlock = 4 << 10

// count says into how many tokens byte-pair encoding splits a piece. It takes 20
// bytes of memory for each byte of a block. If the context ends between two blocks,
// count returns its error.
func (v *vocabulary) count(ctx context.Context, piece string) (tokens int, err error) {
	m := merge{v: v}
	for len(piece) > maxBlock {
		tokens += m.count(piece[:maxBlock])
		piece = piece[maxBlock:]
		if err := ctx.Err(); err != nil {
			return 0, err
		}
	}
	return tokens + m.count(piece), nil
}

// A merge is a block on its way. A part is named by the offset at which it
// begins.
type merge struct {
	v       *vocabulary
	piece   string
	next    []uint32 // the part after each part; the block's length after the last
	prev    []uint32 // the part before each part; not read of the first
	ranks   []uint32 // of each part joined to the next one, or none
	waiting []uint64 // a heap of pairs: rank, and offset of the left part
}

// count begins with single bytes and merges, again and again, the two neighbours
// whose joint token has the lowest rank, the leftmost of several. The cost is
// n log n for n bytes, because the pairs wait in a heap.
//
// The algorithm is that of Sennrich, Haddow and Birch, "Neural Machine
// Translation of Rare Words with Subword Units" (2016), over bytes.
func (m *merge) count(piece string) int {
	if len(piece) < 2 || m.v.rank(piece) != none {
		return min(len(piece), 1)
	}
	m.begin(piece)
	tokens := len(piece)
	for len(m.waiting) > 0 {
		rank, left := m.pop()
		if m.ranks[left] != rank {
			continue // one of the two was merged meanwhile
		}
		m.join(left)
		tokens--
	}
	return tokens
}

// begin makes a part of each byte. It takes the memory of the block before, which
// was no shorter.
func (m *merge) begin(piece string) {
	n := len(piece)
	m.piece = piece
	if cap(m.next) < n {
		space := make([]uint32, 3*n)
		m.next, m.prev, m.ranks = space[:n:n], space[n:2*n:2*n], space[2*n:]
		m.waiting = make([]uint64, 0, n)
	}
	m.next, m.prev, m.ranks = m.next[:n], m.prev[:n], m.ranks[:n]
	for i := range n {
		m.next[i] = uint32(i + 1)
		m.prev[i] = uint32(i - 1)
	}
	for i := range n {
		m.look(uint32(i))
	}
}

// look finds the rank of a part joined to the next one.
func (m *merge) look(left uint32) {
	m.ranks[left] = none
	right := m.next[left]
	if int(right) == len(m.piece) {
		return
	}
	if rank := m.v.rank(m.piece[left:m.next[right]]); rank != none {
		m.ranks[left] = rank
		m.push(rank, left)
	}
}

// join makes one part of a part and the next one.
func (m *merge) join(left uint32) {
	right := m.next[left]
	m.ranks[right] = none
	m.next[left] = m.next[right]
	if after := m.next[left]; int(after) < len(m.piece) {
		m.prev[after] = left
	}
	m.look(left)
	if left > 0 {
		m.look(m.prev[left])
	}
}

// push adds a pair to the heap.
func (m *merge) push(rank, left uint32) {
	h := append(m.waiting, uint64(rank)<<32|uint64(left))
	m.waiting = h
	for i := len(h) - 1; i > 0; {
		parent := (i - 1) / 2
		if h[parent] <= h[i] {
			break
		}
		h[parent], h[i] = h[i], h[parent]
		i = parent
	}
}

// pop takes the pair with the lowest rank, the leftmost of several.
func (m *merge) pop() (rank, left uint32) {
	h := m.waiting
	top := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	m.waiting = h
	for i := 0; ; {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h[child] < h[least] {
				least = child
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	return uint32(top >> 32), uint32(top)
}

package tokens

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"io"
)

// packed is the vocabulary o200k_base, gzipped: each token's length as an
// unsigned varint, and its bytes, in the order of the ranks. It is OpenAI's,
// published with tiktoken (https://github.com/openai/tiktoken) under the MIT
// licence. go test ./tokens -run Vocabulary -update writes it anew.
//
//go:embed o200k_base.gz
var packed []byte

// A vocabulary gives tokens their ranks. The lower a rank, the earlier
// byte-pair encoding merges two tokens into that one. It takes 4 MB; a Go map
// of the same tokens takes 25.
type vocabulary struct {
	text   string   // all tokens, one after another
	starts []uint32 // of each rank's token in text, and the end of the last
	slots  []uint32 // rank+1 by the token's hash, open addressing; 0 is free
	seed   maphash.Seed
}

// none is the rank of a text that is no token.
const none = ^uint32(0)

// unpack reads a vocabulary.
func unpack(packed []byte) (*vocabulary, error) {
	zipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("tokens.unpack: %w", err)
	}
	data, err := io.ReadAll(zipped)
	if err != nil {
		return nil, fmt.Errorf("tokens.unpack: %w", err)
	}
	v := &vocabulary{starts: []uint32{0}, seed: maphash.MakeSeed()}
	text := make([]byte, 0, len(data))
	for len(data) > 0 {
		length, n := binary.Uvarint(data)
		if n <= 0 || length == 0 || length > uint64(len(data)-n) {
			return nil, fmt.Errorf("tokens.unpack: token %d is cut off", len(v.starts)-1)
		}
		text = append(text, data[n:n+int(length)]...)
		v.starts = append(v.starts, uint32(len(text)))
		data = data[n+int(length):]
	}
	v.text = string(text)
	v.index()
	return v, nil
}

// index fills the slots, of which at least half stay free.
func (v *vocabulary) index() {
	tokens := len(v.starts) - 1
	size := 2
	for size < 2*tokens {
		size *= 2
	}
	v.slots = make([]uint32, size)
	for rank := range tokens {
		at := v.slot(v.token(uint32(rank)))
		for v.slots[at] != 0 {
			at = (at + 1) % size
		}
		v.slots[at] = uint32(rank) + 1
	}
}

func (v *vocabulary) token(rank uint32) string { return v.text[v.starts[rank]:v.starts[rank+1]] }

func (v *vocabulary) slot(token string) int {
	return int(maphash.String(v.seed, token) % uint64(len(v.slots)))
}

// rank gives a token's rank, or none.
func (v *vocabulary) rank(token string) uint32 {
	for at := v.slot(token); v.slots[at] != 0; at = (at + 1) % len(v.slots) {
		if rank := v.slots[at] - 1; v.token(rank) == token {
			return rank
		}
	}
	return none
}

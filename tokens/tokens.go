// Package tokens counts text as OpenAI's models do. It knows text only; package
// tree has the rule for whole messages.
package tokens

import (
	"context"
	"strings"
	"sync"
)

// A Counter counts the tokens of a text for a model. Several goroutines may use
// it at once.
type Counter interface {
	Count(text string) int
}

// O200k counts in o200k_base, the encoding of GPT-4o, GPT-4.1, GPT-5 and the
// o-series. The vocabulary is part of the program. The first count unpacks it,
// which takes some 40 ms and 4 MB. Prose is counted at some 50 MB a second,
// because most of its words were counted before; text of new words at 5 MB a
// second. The counts of other vendors' models differ by 10 to 20 percent.
func O200k() Counter { return o200k }

var o200k = &counter{merge: func(ctx context.Context, piece string) (int, error) { return o200kBase().count(ctx, piece) }}

var o200kBase = sync.OnceValue(func() *vocabulary {
	v, err := unpack(packed)
	if err != nil {
		panic(err) // the vocabulary is part of the program
	}
	return v
})

// A Bound is a Counter that counts for one caller, until its context ends. Text that
// it counts after that has 0 tokens, so the caller looks at Err after the last text.
type Bound struct {
	ctx context.Context
	of  Counter
	err error
}

// Bind returns a Bound that counts as c does. With O200k it looks at the context
// after each block of at most 64 KiB, with another Counter before each text.
func Bind(ctx context.Context, c Counter) *Bound { return &Bound{ctx: ctx, of: c} }

// Count counts the tokens of a text; 0 if the context has ended.
func (b *Bound) Count(text string) (n int) {
	if b.err == nil {
		b.err = b.ctx.Err()
	}
	if b.err != nil {
		return 0
	}
	own, ok := b.of.(*counter)
	if !ok {
		return b.of.Count(text)
	}
	n, b.err = own.count(b.ctx, text)
	return n
}

// Err returns the context's error if that ended before all text was counted:
// context.Canceled or context.DeadlineExceeded.
func (b *Bound) Err() error { return b.err }

// A counter remembers how many tokens pieces are, because most are words that
// come again.
type counter struct {
	merge    func(ctx context.Context, piece string) (tokens int, err error)
	mu       sync.RWMutex
	now, old map[string]uint8
}

const (
	// maxPieces bounds each of the two maps, and so what they hold to some 6 MB.
	maxPieces = 1 << 15
	// maxRemembered is how long a piece may be that is remembered, in bytes.
	maxRemembered = 32
	// maxMissed is how many unknown pieces a count collects before it learns them.
	maxMissed = 1 << 10
	// maxUnwatched is how much text is counted between two looks at the context, in
	// bytes. A longer piece is counted in blocks of its own (maxBlock).
	maxUnwatched = 64 << 10
)

func (c *counter) Count(text string) int {
	n, _ := c.count(context.Background(), text) // which never ends
	return n
}

// count counts until the context ends, whose error it then returns.
func (c *counter) count(ctx context.Context, text string) (sum int, err error) {
	text = strings.ToValidUTF8(text, "\uFFFD")
	var missed, aged []string
	for i := 0; i < len(text); {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		missed, aged = missed[:0], aged[:0]
		c.mu.RLock()
		for most := min(i+maxUnwatched, len(text)); i < most && len(missed) < maxMissed && len(aged) < maxMissed; {
			end := pieceEnd(text, i)
			piece := text[i:end]
			i = end
			n, ok := c.now[piece]
			if !ok {
				if n, ok = c.old[piece]; ok {
					aged = append(aged, piece)
				} else {
					missed = append(missed, piece)
				}
			}
			sum += int(n)
		}
		c.mu.RUnlock()
		for _, piece := range missed {
			n, err := c.learn(ctx, piece)
			if err != nil {
				return 0, err
			}
			sum += n
		}
		if len(aged) > 0 {
			c.renew(aged)
		}
	}
	return sum, nil
}

// learn counts a piece and remembers it.
func (c *counter) learn(ctx context.Context, piece string) (int, error) {
	n, err := c.merge(ctx, piece)
	if err != nil || len(piece) > maxRemembered {
		return n, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remember(piece, uint8(n))
	return n, nil
}

// renew moves pieces from the older map, so that what comes again and again is
// found at the first look, and isn't forgotten with what came once.
func (c *counter) renew(pieces []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, piece := range pieces {
		if n, ok := c.old[piece]; ok {
			delete(c.old, piece)
			c.remember(piece, n)
		}
	}
}

// remember adds a piece to the newer map. When that is full the older one is
// forgotten.
func (c *counter) remember(piece string, n uint8) {
	if c.now == nil || len(c.now) >= maxPieces {
		c.now, c.old = make(map[string]uint8, maxPieces), c.now
	}
	c.now[strings.Clone(piece)] = n // not the whole text along with it
}

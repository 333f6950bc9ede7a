package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/tree"
)

// Texts are made of words by Zipf's law: the n-th word has a share of about 1/n.
const (
	vocabulary     = 200_000
	userWords      = 40
	assistantWords = 160
)

// A planter stores made-up conversations. The same number plants the same texts.
type planter struct {
	store *tree.Store
	rand  *rand.Rand
	zipf  *rand.Zipf
	rare  []string // a rare word of some messages
}

func (r *run) planter() *planter {
	random := rand.New(rand.NewPCG(1, 2))
	return &planter{
		store: tree.New(r.pool, tree.WithTokenCounter(rough{})), rand: random,
		zipf: rand.NewZipf(random, 1.05, 2, vocabulary-1), // an exponent of 1 has no limit
	}
}

// rough counts tokens at no cost, for texts that are made up.
type rough struct{}

// Count returns a token for four bytes.
func (rough) Count(text string) int { return len(text) / 4 }

// A line is a conversation without branches.
type line struct{ id, head uuid.UUID }

// line plants a conversation that ends with an assistant's message. n is even.
func (p *planter) line(ctx context.Context, n int) (line, error) {
	c, _, err := p.store.CreateConversation(ctx, tree.NewConversation{Title: fmt.Sprint(n, " messages")})
	if err != nil {
		return line{}, err
	}
	return p.more(ctx, line{id: c.ID}, n)
}

// more plants n more messages at the end of a line.
func (p *planter) more(ctx context.Context, at line, n int) (_ line, err error) {
	for stored := 0; stored < n && err == nil; {
		chain := make([]tree.NewMessage, min(tree.MaxChain, n-stored))
		for i := range chain {
			role, words := tree.RoleUser, userWords
			if i%2 == 1 {
				role, words = tree.RoleAssistant, assistantWords
			}
			chain[i] = tree.Text(role, p.text(words/2+p.rand.IntN(words)))
		}
		var out tree.Chain
		if out, err = p.store.AppendChain(ctx, at.id, at.head, chain); err == nil {
			stored, at.head = stored+len(out.Messages), out.Messages[len(out.Messages)-1].ID
		}
	}
	return at, err
}

// text makes a text of n words.
func (p *planter) text(n int) string {
	words, rarest := make([]string, n), uint64(0)
	for i := range words {
		rank := p.zipf.Uint64()
		words[i], rarest = word(int(rank)), max(rarest, rank)
	}
	if len(p.rare) < 20 {
		p.rare = append(p.rare, word(int(rarest)))
	}
	return strings.Join(words, " ")
}

// word makes the word of a rank: pairs of letters, longer for rarer words.
func word(rank int) string {
	const first, second = "bcdfghjklmnprstvwz", "aeiou"
	var b strings.Builder
	for n := rank + 1; n > 0; n /= len(first) * len(second) {
		pair := (n * 37) % (len(first) * len(second)) // 37 has no divisor in common with 90
		b.WriteByte(first[pair/len(second)])
		b.WriteByte(second[pair%len(second)])
	}
	b.WriteByte(byte('a' + rank%26))
	return b.String()
}

// settle indexes what was planted, and has Postgres look at its tables, as autovacuum
// does a while later.
func (r *run) settle(ctx context.Context) error {
	if err := search.New(0).CatchUp(ctx, tree.New(r.pool)); err != nil {
		return err
	}
	for _, s := range []string{"vacuum analyze", "checkpoint"} {
		if _, err := r.pool.Exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

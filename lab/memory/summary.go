package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/audit"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// usualRatio is how many tokens of messages become one token of a summary.
const usualRatio = 10

// defaultFold is how many tokens a server's default settings fold at a time.
const defaultFold = 60_000

// A Held says how much of the evidence a summary still holds.
type Held struct {
	Name    string `json:"name"`
	Facts   Share  `json:"facts"`   // numbers, dates, names, addresses, quoted strings
	Words   Share  `json:"words"`   // rare words
	Units   Share  `json:"units"`   // sentences, of which one line has most
	Answers Share  `json:"answers"` // whose words all stand in one line
	Tokens  int    `json:"tokens"`
}

// A Share counts what is there of what should be.
type Share struct {
	Held int `json:"held"`
	Of   int `json:"of"`
}

// String is the share as a number; "-" of nothing.
func (s Share) String() string {
	if s.Of == 0 {
		return "-"
	}
	return fmt.Sprintf("%.3f", float64(s.Held)/float64(s.Of))
}

func (s *Share) add(other Share) {
	s.Held += other.Held
	s.Of += other.Of
}

func (h *Held) add(other Held) {
	h.Facts.add(other.Facts)
	h.Words.add(other.Words)
	h.Units.add(other.Units)
	h.Answers.add(other.Answers)
	h.Tokens += other.Tokens
}

// A Summarizer is what is measured.
type Summarizer interface {
	Summarize(ctx context.Context, in prompt.Input) (prompt.Result, error)
}

// Summaries folds each chat to one of ratio tokens, and says how much of the
// evidence of its questions is still there: by the summarizer of that name at
// once, and in three folds of which each merges the one before; by the picker; and by
// the newest messages alone. A ratio of 0 folds as
// a server does by default: 60,000 tokens at a time, to the size that its settings ask for.
func Summaries(ctx context.Context, name string, s Summarizer, chats []Chat, ratio int) ([]Held, error) {
	counter := tokens.O200k()
	var all []Held
	for _, c := range chats {
		messages, total := c.fold(counter)
		names, counts := []string{name, name + " in three folds"}, []int{1, 3}
		if ratio == 0 {
			names, counts = []string{name}, []int{(total + defaultFold - 1) / defaultFold}
		}
		evidence, room := newEvidence(c), 0
		var texts []string
		for _, folds := range counts {
			text, target, err := folded(ctx, s, messages, counter, folds, ratio)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.Name, err)
			}
			texts, room = append(texts, text), target
		}
		units := c.sentences()
		names = append(names, "picker", "newest messages")
		texts = append(texts, pick(units, room, counter), firstOf(units, newestFirst(units), room, counter))
		for i, text := range texts {
			if len(all) == i {
				all = append(all, Held{Name: names[i]})
			}
			held := evidence.heldBy(text)
			held.Tokens = counter.Count(text)
			all[i].add(held)
		}
	}
	return all, nil
}

// sentences gives all sentences of a chat, with the speaker's name.
func (c Chat) sentences() (all []string) {
	for _, m := range c.Messages {
		for _, s := range sentencesOf(m.Text) {
			s = strings.Join(strings.Fields(s), " ")
			if m.Name != "" {
				s = m.Name + ": " + s
			}
			all = append(all, s)
		}
	}
	return all
}

// firstOf takes sentences in an order until the room is used, and gives them in
// the conversation's order.
func firstOf(sentences []string, order []int, room int, counter tokens.Counter) string {
	var chosen []int
	for _, i := range order {
		if room -= counter.Count(sentences[i]) + 1; room < 0 {
			break
		}
		chosen = append(chosen, i)
	}
	slices.Sort(chosen)
	lines := make([]string, len(chosen))
	for n, i := range chosen {
		lines[n] = sentences[i]
	}
	return strings.Join(lines, "\n")
}

// newestFirst is the order of sentences from the last one on.
func newestFirst(units []string) []int {
	order := make([]int, len(units))
	for i := range order {
		order[i] = len(units) - 1 - i
	}
	return order
}

// folded summarizes in so many folds, each of an equal share of the messages
// and to one of ratio tokens of all that were folded so far; see Summaries. A fold that
// is larger than the summarizer's window takes several steps. It returns the size that
// was asked for last.
func folded(ctx context.Context, s Summarizer, messages []tree.Message, counter tokens.Counter, folds, ratio int) (string, int, error) {
	in := prompt.Input{}
	sum := 0
	for n := range folds {
		in.Fold = messages[n*len(messages)/folds : (n+1)*len(messages)/folds]
		fold := 0
		for _, m := range in.Fold {
			fold += m.Tokens
		}
		sum += fold
		if in.TargetTokens = summarize.Defaults().Budget().TargetFor(fold, in.PriorTokens); ratio > 0 {
			in.TargetTokens = sum / ratio
		}
		for len(in.Fold) > 0 {
			in.Nonce = prompt.Nonce(uuid.New())
			got, err := s.Summarize(ctx, in)
			if err != nil {
				return "", 0, fmt.Errorf("fold %d of %d messages: %w", n+1, len(in.Fold), err)
			}
			in.Prior, in.PriorTokens = got.Text, counter.Count(got.Text)
			in.Fold = in.Fold[got.Taken:]
		}
	}
	return in.Prior, in.TargetTokens, nil
}

// fold gives the chat's messages as the tree has them.
func (c Chat) fold(counter tokens.Counter) (messages []tree.Message, total int) {
	for _, m := range c.Messages {
		n := counter.Count(m.Text) + counter.Count(m.Name)
		total += n
		messages = append(messages, tree.Message{Role: tree.Role(m.Role), Body: m.body(), Tokens: n, CreatedAt: m.At})
	}
	return messages, total
}

// chainFolds is how many folds a chain has.
const chainFolds = 4

// Chains folds each chat in four folds to a tenth, by a stand-in for a model that
// uses half of the room and forgets a third of each summary before, and says how much
// of the evidence is still there: without the audit's fill, and with it.
func Chains(ctx context.Context, chats []Chat) ([]Held, error) {
	counter := tokens.O200k()
	all := []Held{{Name: "forgets a third, four folds"}, {Name: "the same, filled"}}
	for _, c := range chats {
		messages, _ := c.fold(counter)
		evidence := newEvidence(c)
		for i := range all {
			text, _, err := folded(ctx, forgetful{fill: i == 1}, messages, counter, chainFolds, usualRatio)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.Name, err)
			}
			held := evidence.heldBy(text)
			held.Tokens = counter.Count(text)
			all[i].add(held)
		}
	}
	return all, nil
}

// forgetful is a Summarizer that drops every third line of the prior summary, and
// adds a digest of the messages up to half of the target: an able model used 43 to 81 % of it.
type forgetful struct{ fill bool }

func (f forgetful) Summarize(ctx context.Context, in prompt.Input) (prompt.Result, error) {
	counter := tokens.O200k()
	var kept []string
	for i, line := range strings.Split(in.Prior, "\n") {
		if i%3 != 0 && line != "" {
			kept = append(kept, line)
		}
	}
	prior := strings.Join(kept, "\n")
	alone := in
	alone.Prior, alone.PriorTokens, alone.TargetTokens = "", 0, in.TargetTokens/2-counter.Count(prior)
	r, err := digest.Summarizer{}.Summarize(ctx, alone)
	if err != nil {
		return r, err
	}
	_, added, _ := strings.Cut(r.Text, "\n") // without the line that says what a digest is
	if r.Text = strings.TrimSpace(prior + "\n" + added); f.fill {
		r.Text = audit.Fill(in, r.Text, counter)
	}
	return r, nil
}

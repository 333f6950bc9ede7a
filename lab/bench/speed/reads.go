package speed

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"
)

// context measures the contexts of branches of which a summary of the offline
// digest folds all but a tail, as the default settings make it.
func (s *session) context(ctx context.Context, r *rig) error {
	folded := s.size(1000, 20)
	tails := []int{50, 200, 1000}
	if s.cfg.Quick {
		tails = []int{5, 10}
	}
	type branch struct {
		planted
		name string
		tail int
		wide bool // in a window of a million tokens
	}
	p, err := newPlanter(ctx, r.pool, s.corpus)
	if err != nil {
		return err
	}
	var branches []branch
	for _, tail := range tails {
		made, err := p.line(folded + tail)
		if err != nil {
			return err
		}
		branches = append(branches, branch{made.planted, tailName(tail), tail, tail > 200})
	}
	// As large as a context gets by default before it is compacted.
	window, err := p.line(folded + 1000)
	if err != nil {
		return err
	}
	tail := window.newest(80_000)
	branches = append(branches, branch{window.planted, fmt.Sprintf("window-sized: %s messages", thousands(tail)), tail, false})
	if err := p.close(); err != nil {
		return err
	}
	for _, b := range branches {
		if err := r.compact(b.planted, b.tail); err != nil {
			return err
		}
		if err := copyToDesigns(ctx, r.pool, b.id); err != nil {
			return err
		}
	}
	if err := r.serveBare(ctx, s.cfg.Host); err != nil {
		return err
	}
	for _, b := range branches {
		c, err := r.compare(ctx, s.pace, b.name, []task{r.contextTask(b.planted, b.tail, b.wide, true)})
		if err != nil {
			return err
		}
		s.add(c)
	}
	return nil
}

// compact has the server fold all of a branch but its newest messages.
func (r *rig) compact(at planted, tail int) error {
	c, err := r.client(0)
	if err != nil {
		return err
	}
	answer, err := c.do("POST", fmt.Sprintf("/v1/conversations/%s/branches/%s/compactions", at.id, at.head), fmt.Appendf(nil, `{"keep_recent_messages":%d}`, tail), 201)
	if err != nil {
		return err
	}
	var made struct{ Outcome, Reason string }
	if err := json.Unmarshal(answer, &made); err != nil {
		return err
	}
	if made.Outcome != "saved" {
		return fmt.Errorf("compaction %s: %s", made.Outcome, made.Reason)
	}
	return nil
}

// A plantedLine is a line with what is known of its messages.
type plantedLine struct {
	planted
	spots []*spot
}

// line plants a conversation of one line.
func (p *planter) line(n int) (plantedLine, error) {
	c := p.chat()
	spots, err := c.grow(nil, n)
	c.end()
	return plantedLine{planted{c.id, c.head}, spots}, err
}

// newest is how many of the newest messages have at most so many tokens.
func (l plantedLine) newest(tokens int64) int {
	last := l.spots[len(l.spots)-1].pathTokens
	for i, s := range l.spots {
		if last-s.pathTokens <= tokens {
			return len(l.spots) - 1 - i
		}
	}
	return 0
}

// transcript measures the last pages of a branch.
func (s *session) transcript(ctx context.Context, r *rig) error {
	p, err := newPlanter(ctx, r.pool, s.corpus)
	if err != nil {
		return err
	}
	line, err := p.line(s.size(2000, 30))
	if err != nil {
		return err
	}
	if err := p.close(); err != nil {
		return err
	}
	if err := copyToDesigns(ctx, r.pool, line.id); err != nil {
		return err
	}
	if err := r.serveBare(ctx, s.cfg.Host); err != nil {
		return err
	}
	for _, limit := range []int{50, 200} {
		c, err := r.compare(ctx, s.pace, fmt.Sprintf("page of %d messages, of %s", limit, thousands(len(line.spots))),
			[]task{r.transcriptTask(line.planted, limit, true)})
		if err != nil {
			return err
		}
		s.add(c)
	}
	return nil
}

// tree measures whole trees, without bodies.
func (s *session) tree(ctx context.Context, r *rig) error {
	p, err := newPlanter(ctx, r.pool, s.corpus)
	if err != nil {
		return err
	}
	sizes := []int{1000, 10_000}
	if s.cfg.Quick {
		sizes = []int{30}
	}
	var ids []uuid.UUID
	for _, n := range sizes {
		line, err := p.line(n)
		if err != nil {
			return err
		}
		ids = append(ids, line.id)
	}
	if err := p.close(); err != nil {
		return err
	}
	for i, id := range ids {
		if err := copyToDesigns(ctx, r.pool, id); err != nil {
			return err
		}
		c, err := r.compare(ctx, s.pace, fmt.Sprintf("tree of %s messages", thousands(sizes[i])), []task{r.treeTask(id)})
		if err != nil {
			return err
		}
		s.add(c)
	}
	return nil
}

// thousands sets the thousands apart.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

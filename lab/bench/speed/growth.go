package speed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/coppice-chat/coppice/tree"
)

// An Axis is something that grows, and what that does to a request.
type Axis struct {
	Name       string      `json:"name"` // what grows, its first word telling it from the others
	Unit       string      `json:"unit"`
	Sizes      []int       `json:"sizes"`
	Context    Comparison  `json:"context"`    // a result for each size, compared with the smallest
	Append     Comparison  `json:"append"`     // the same
	Transcript Comparison  `json:"transcript"` // the same
	LoadAll    *Comparison `json:"load_all,omitempty"`
	OneRow     *Comparison `json:"one_row,omitempty"`
	Storage    []Storage   `json:"storage,omitempty"` // for each size
}

// Axes are what may grow, in the order in which they are measured.
func Axes() []string { return slices.Clone(axisNames) }

var axisNames = []string{"length", "siblings", "branches", "size"}

// growth measures the axes. What an axis compares is asked by turns, so that
// all sizes are there at once.
func (s *session) growth(ctx context.Context) error {
	axes := map[string]func(context.Context, *rig) (Axis, error){"length": s.lengths, "siblings": s.siblings, "branches": s.branches}
	for _, name := range s.cfg.Axes {
		if name == "size" { // has a rig for each size
			a, err := s.databases(ctx)
			if s.addAxis(a); err != nil {
				return err
			}
			continue
		}
		if axes[name] == nil {
			return fmt.Errorf("there is no axis %q", name)
		}
		err := s.onRig(ctx, func(ctx context.Context, r *rig) error {
			a, err := axes[name](ctx, r)
			s.addAxis(a)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *session) addAxis(a Axis) {
	if len(a.Append.Results) == 0 {
		return // it failed
	}
	s.report.Growth = append(s.report.Growth, a)
	last := len(a.Sizes) - 1
	smallest := sizeName(a.Sizes[0])
	s.cfg.Remark("  %s, %s against %s: context %.2f, append %.2f, transcript %.2f times", a.Name, sizeName(a.Sizes[last]), smallest,
		a.Context.Results[last].Ratios[smallest].P50.Median, a.Append.Results[last].Ratios[smallest].P50.Median,
		a.Transcript.Results[last].Ratios[smallest].P50.Median)
}

func sizeName(n int) string { return thousands(n) }

// powers are the sizes from one to the other, by tens.
func powers(from, to int) (out []int) {
	for n := from; n <= to; n *= 10 {
		out = append(out, n)
	}
	return out
}

// A stage is where one size of an axis is measured.
type stage struct {
	*rig
	branches []planted     // to ask for: drawn at random where there are several
	append   func() *place // where to append next
	grow     bool          // whether appends are below each other
}

// pageSize is of the transcripts.
const pageSize = 50

// growthAppends is how many appends a turn has: few, so that they don't become
// what is measured.
const growthAppends = 10

// measure compares the sizes of an axis.
func (s *session) measureAxis(ctx context.Context, a *Axis, stages []stage) (err error) {
	variants := func(most int, do func(stage) func(*client) job) (out []variant, err error) {
		for i, st := range stages {
			c, err := st.client(0)
			if err != nil {
				return nil, err
			}
			out = append(out, variant{name: sizeName(a.Sizes[i]), jobs: []job{do(st)(c)}, cost: st.meter, most: most})
		}
		return out, nil
	}
	r := rand.New(rand.NewPCG(s.cfg.Seed, 4))
	drawn := func(st stage, do func(planted) task) func(*client) job {
		return func(c *client) job {
			return func(ctx context.Context) (int, error) {
				return do(st.branches[r.IntN(len(st.branches))]).coppice(c)(ctx)
			}
		}
	}
	own := s.corpus.fork(1)
	for _, part := range []struct {
		name string
		into *Comparison
		most int
		do   func(stage) func(*client) job
	}{
		{"context", &a.Context, 0, func(st stage) func(*client) job {
			return drawn(st, func(b planted) task { return st.contextTask(b, 0, false, false) })
		}},
		{"page of a transcript", &a.Transcript, 0, func(st stage) func(*client) job {
			return drawn(st, func(b planted) task { return st.transcriptTask(b, pageSize, false) })
		}},
		{"append", &a.Append, growthAppends, func(st stage) func(*client) job {
			return st.appendTask(func(string) *place { return st.append() },
				func() (text, tree.Role) { return own.draw(tree.RoleAssistant), tree.RoleAssistant }, st.grow, false).coppice
		}},
	} {
		v, err := variants(part.most, part.do)
		if err != nil {
			return err
		}
		if *part.into, err = compare(ctx, s.pace, part.name, v, sizeName(a.Sizes[0])); err != nil {
			return err
		}
	}
	return nil
}

// lengths: conversations of one line, with a summary before the last 50
// messages.
func (s *session) lengths(ctx context.Context, r *rig) (a Axis, err error) {
	const tail = 50
	a = Axis{Name: "length of the conversation", Unit: "messages", Sizes: powers(100, s.size(1_000_000, 1000))}
	p, err := newPlanter(ctx, r.pool, s.corpus)
	if err != nil {
		return a, err
	}
	var stages []stage
	var ids []planted
	for _, n := range a.Sizes {
		c := p.chat()
		line, err := c.grow(nil, n)
		if err != nil {
			return a, err
		}
		if err := c.fold(line, n-1-tail); err != nil {
			return a, err
		}
		c.end()
		at := &place{c.id, line[n-2].id} // below the last user message
		ids = append(ids, planted{c.id, line[n-1].id})
		stages = append(stages, stage{rig: r, branches: ids[len(ids)-1:], append: func() *place { return at }})
	}
	if err := p.close(); err != nil {
		return a, err
	}
	if err := s.measureAxis(ctx, &a, stages); err != nil {
		return a, err
	}
	// The common designs, as far as they can be waited for.
	limits := map[string]int{nameLoadAll: 100_000, nameOneRow: 10_000}
	designs := map[string][]variant{}
	for i, n := range a.Sizes {
		if n > limits[nameLoadAll] {
			break
		}
		copy := copyToDesigns
		if n > limits[nameOneRow] {
			copy = copyToMessages
		}
		if err := copy(ctx, r.pool, ids[i].id); err != nil {
			return a, err
		}
		all, one := r.lastTasks(ids[i].id, ids[i].head, tail)
		designs[nameLoadAll] = append(designs[nameLoadAll], variant{name: sizeName(n), jobs: []job{all}, cost: ownMeter{}})
		if n <= limits[nameOneRow] {
			designs[nameOneRow] = append(designs[nameOneRow], variant{name: sizeName(n), jobs: []job{one}, cost: ownMeter{}})
		}
	}
	few := pace{min(s.pace.rounds, 5), s.pace.slice}
	for name, into := range map[string]**Comparison{nameLoadAll: &a.LoadAll, nameOneRow: &a.OneRow} {
		c, err := compare(ctx, few, "context, "+name, designs[name], sizeName(a.Sizes[0]))
		if err != nil {
			return a, err
		}
		*into = &c
	}
	return a, nil
}

// siblings: messages under one parent, of which one more is appended.
func (s *session) siblings(ctx context.Context, r *rig) (a Axis, err error) {
	const above = 100
	a = Axis{Name: "siblings of a message", Unit: "siblings", Sizes: powers(1, s.size(10_000, 100))}
	p, err := newPlanter(ctx, r.pool, s.corpus)
	if err != nil {
		return a, err
	}
	var stages []stage
	for _, n := range a.Sizes {
		// As many parents as there are appends, as long as siblings are few: the
		// count must stay what it is said to be.
		parents := max(4, min((s.pace.rounds+1)*growthAppends, 40_000/n))
		c := p.chat()
		line, err := c.grow(nil, above)
		if err != nil {
			return a, err
		}
		var places []place
		var branches []planted
		for range parents {
			parent, err := c.say(line[above-1], tree.RoleUser)
			if err != nil {
				return a, err
			}
			places = append(places, place{c.id, parent.id})
			var last *spot
			for range n {
				if last, err = c.say(parent, tree.RoleAssistant); err != nil {
					return a, err
				}
			}
			branches = append(branches, planted{c.id, last.id})
		}
		c.end()
		next := 0
		stages = append(stages, stage{rig: r, branches: branches, append: func() *place {
			next++
			return &places[next%len(places)]
		}})
	}
	if err := p.close(); err != nil {
		return a, err
	}
	return a, s.measureAxis(ctx, &a, stages)
}

// branches: of one conversation, each of two messages of its own. They leave
// from any message there is, as people go back to any, so that a message has a
// few siblings: how many it may have is an axis of its own.
func (s *session) branches(ctx context.Context, r *rig) (a Axis, err error) {
	const trunk = 100
	a = Axis{Name: "branches of a conversation", Unit: "branches", Sizes: powers(1, s.size(100_000, 100))}
	p, err := newPlanter(ctx, r.pool, s.corpus)
	if err != nil {
		return a, err
	}
	var stages []stage
	for _, n := range a.Sizes {
		c := p.chat()
		line, err := c.grow(nil, trunk)
		if err != nil {
			return a, err
		}
		// The one that is asked for leaves the trunk at its end, in all sizes.
		asked, err := c.grow(line[trunk-1], 2)
		if err != nil {
			return a, err
		}
		all := slices.Concat(line[1:], asked)
		for range n - 1 {
			branch, err := c.grow(all[s.corpus.rand.IntN(len(all))], 2)
			if err != nil {
				return a, err
			}
			all = append(all, branch...)
		}
		c.head = asked[1].id
		c.end()
		at := &place{c.id, asked[0].id}
		stages = append(stages, stage{rig: r, branches: []planted{{c.id, asked[1].id}}, append: func() *place { return at }})
	}
	if err := p.close(); err != nil {
		return a, err
	}
	return a, s.measureAxis(ctx, &a, stages)
}

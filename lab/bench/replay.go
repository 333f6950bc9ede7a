package bench

import (
	"encoding/binary"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// A replay tells one history to one rule. Whenever the model or a tool has
// spoken and no call is open, the planner is asked, and where it has a plan a
// stand-in writes the summary at once.
type replay struct {
	history  History
	rule     rule
	settings summarize.Settings
	result   *RuleResult

	depths    []int     // of the messages said so far
	newest    []int     // said below each, or itself
	open      []int     // calls without an answer after each
	summaries []summary // oldest first
	hanging   [][]int   // summaries at each message, oldest first
	path      []bool    // scratch: on the branch that is looked at
}

// A summary as the stand-in writes it: it remembers whose text it saw.
type summary struct {
	hangs, cutoff int // messages
	text, tokens  int // of the text alone, and with the kept messages
	kept          []int
	saw           []int // messages, through earlier summaries too
}

func newReplay(h History, r rule, s summarize.Settings, result *RuleResult) *replay {
	s.LookAhead = r.lookAhead
	return &replay{history: h, rule: r, settings: s, result: result, path: make([]bool, len(h))}
}

func (r *replay) run() {
	for i, m := range r.history {
		if m.Parent >= 0 && m.Role == tree.RoleAssistant {
			r.context(m.Parent)
		}
		if i > 0 {
			r.fork(i)
		}
		r.say(i)
		if m.Role != tree.RoleUser && r.open[i] == 0 {
			r.compact(i)
		}
	}
}

func (r *replay) say(i int) {
	m := r.history[i]
	depth, open := 0, m.Calls
	if m.Parent >= 0 {
		depth = r.depths[m.Parent] + 1
		if m.Role == tree.RoleTool {
			open = max(0, r.open[m.Parent]-1)
		}
	}
	r.depths, r.open, r.newest, r.hanging = append(r.depths, depth), append(r.open, open), append(r.newest, i), append(r.hanging, nil)
	for up := m.Parent; up >= 0; up = r.history[up].Parent {
		r.newest[up] = i
	}
}

// applicable is the index of the summary that applies to a head, -1 for none.
func (r *replay) applicable(head int) int {
	for at := head; at >= 0; at = r.history[at].Parent {
		if n := len(r.hanging[at]); n > 0 {
			return r.hanging[at][n-1]
		}
	}
	return -1
}

// context looks at what a model gets to read before it answers: only through
// the summary can it hold another branch's text.
func (r *replay) context(head int) {
	r.result.Contexts++
	found := r.applicable(head)
	if found < 0 {
		return
	}
	r.result.Summarized++
	clear(r.path)
	for at := head; at >= 0; at = r.history[at].Parent {
		r.path[at] = true
	}
	for _, message := range r.summaries[found].saw {
		if !r.path[message] {
			r.result.Leaks++
			return
		}
	}
}

// fork counts what became of the summary where message i is said below a
// message that has been answered otherwise. The branch that its user was on
// before is the one that was left off last below there.
func (r *replay) fork(i int) {
	m := r.history[i]
	from, depth := len(r.newest)-1, -1
	if m.Parent >= 0 {
		from, depth = r.newest[m.Parent], r.depths[m.Parent]
		if from == m.Parent {
			return // nothing was said below it yet
		}
	}
	before := r.applicable(from)
	if before < 0 {
		return
	}
	turns := 0 // of the user's that the fork leaves behind
	for at := from; at != m.Parent; at = r.history[at].Parent {
		if r.history[at].Role == tree.RoleUser {
			turns++
		}
	}
	counted := &r.result.Earlier
	switch {
	case r.depths[r.summaries[before].cutoff] > depth:
		counted = &r.result.Folded
	case m.Role != tree.RoleUser && turns == 0:
		counted = &r.result.Regenerations
	case m.Role == tree.RoleUser && turns <= 1:
		counted = &r.result.Edits
	}
	counted.Applied++
	switch after := r.applicable(m.Parent); {
	case after == before:
		counted.Kept++
	case after >= 0:
		counted.Older++
	}
}

// view is the branch as the store would give it to the planner.
func (r *replay) view(head int) tree.View {
	v := tree.View{HeadID: nodeID(head)}
	end := -1
	if found := r.applicable(head); found >= 0 {
		s := r.summaries[found]
		end = s.cutoff
		v.Summary = &tree.Summary{ID: summaryID(found), AnchorID: nodeID(s.hangs), Tokens: s.tokens}
		for _, k := range s.kept {
			v.Kept = append(v.Kept, r.message(k))
		}
	}
	size := r.depths[head] + 1
	if end >= 0 {
		size -= r.depths[end] + 1
	}
	v.Tail = make([]tree.PathMessage, size)
	for at := head; at != end; at = r.history[at].Parent {
		size--
		v.Tail[size] = r.message(at)
	}
	return v
}

func (r *replay) message(i int) tree.PathMessage {
	m := r.history[i]
	return tree.PathMessage{Calls: make([]string, m.Calls), Message: tree.Message{ID: nodeID(i), Role: m.Role, Tokens: m.Tokens, Pinned: m.Pinned, Depth: r.depths[i]}}
}

// compact asks the planner and writes the summary. A summarizer reads the
// summary before, what is folded and what the rule lets it see; it writes as
// many tokens as it is asked for, or a quarter of what it read to fold where
// that is less.
func (r *replay) compact(head int) {
	v := r.view(head)
	p, _ := summarize.MakePlan(v, r.settings, nil)
	if p == nil {
		return
	}
	hangs, sees := r.rule.place(v, p)
	s := summary{hangs: nodeIndex(v.Tail[hangs].ID), cutoff: nodeIndex(p.CutoffID)}
	prompt := p.FoldTokens
	if v.Summary != nil {
		prior := r.summaries[summaryIndex(v.Summary.ID)]
		prompt += prior.text
		s.saw = append(s.saw, prior.saw...)
	}
	s.text = min(p.Target, max(1, prompt/4))
	s.tokens = s.text
	for _, m := range v.Tail[:sees+1] {
		s.saw = append(s.saw, nodeIndex(m.ID))
	}
	prompt += tree.Tokens(v.Tail[len(p.Fold) : sees+1])
	for _, k := range p.Kept {
		i := nodeIndex(k.ID)
		s.kept = append(s.kept, i)
		if k.Limit > 0 {
			s.tokens += k.Limit
		} else {
			s.tokens += r.history[i].Tokens
		}
	}
	r.result.Compactions++
	r.result.PromptTokens += prompt
	r.result.CompletionTokens += s.text
	if s.tokens >= p.Replaced {
		return // no gain: paid for, and thrown away
	}
	r.hanging[s.hangs] = append(r.hanging[s.hangs], len(r.summaries))
	r.summaries = append(r.summaries, s)
}

// The planner knows messages by id. These are made of their indexes, counted
// from 1, because a nil id means none.

func nodeID(i int) (id uuid.UUID) {
	binary.BigEndian.PutUint64(id[8:], uint64(i)+1)
	return id
}

func nodeIndex(id uuid.UUID) int { return int(binary.BigEndian.Uint64(id[8:])) - 1 }

func summaryID(i int) uuid.UUID { return nodeID(i) }

func summaryIndex(id uuid.UUID) int { return nodeIndex(id) }

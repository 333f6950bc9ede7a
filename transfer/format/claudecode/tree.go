package claudecode

import (
	"slices"

	"github.com/coppice-chat/coppice/transfer/format"
)

// A claudeCodeSession is the lines that make one conversation.
type session struct {
	file  *file
	lines []*line // in the order of the file
	turns []*turn
	of    map[*line]*turn
	above map[*line]nearest // what bridged lines hang under, as far as it was looked up
	conv  format.Conversation
}

// sessions puts the lines together that hang together or have a session in
// common. A subagent's lines are joined by its id, and never to the others.
func (f *file) sessions() []*session {
	sets := make(disjoint, len(f.lines))
	index := make(map[*line]int, len(f.lines))
	byName := map[string]int{}
	for i, l := range f.lines {
		sets[i], index[l] = i, i
	}
	for i, l := range f.lines {
		if p := f.parent(l); p != nil {
			sets.join(i, index[p])
		}
		name := l.commonName()
		if name == "" {
			continue
		}
		if first, ok := byName[name]; ok {
			sets.join(first, i)
		} else {
			byName[name] = i
		}
	}
	var all []*session
	bySet := map[int]*session{}
	for i, l := range f.lines {
		set := sets.find(i)
		if bySet[set] == nil {
			bySet[set] = &session{file: f, of: map[*line]*turn{}, above: map[*line]nearest{}}
			all = append(all, bySet[set])
		}
		bySet[set].lines = append(bySet[set].lines, l)
	}
	return slices.DeleteFunc(all, func(s *session) bool { return !s.hasMessage() })
}

// commonName is what joins lines besides their parents; "" for nothing.
func (l *line) commonName() string {
	if !l.sidechain {
		return l.sessionID
	}
	if l.agentID == "" {
		return ""
	}
	return l.sessionID + "/" + l.agentID
}

func (s *session) hasMessage() bool {
	return slices.ContainsFunc(s.lines, func(l *line) bool { return l.isMessage })
}

// parent is the line that l hangs under, nil where it is a root, stands in
// another file, or belongs to the main conversation and l to a subagent's.
func (f *file) parent(l *line) *line {
	p := f.byUUID[l.parent]
	if p == nil || p.sidechain != l.sidechain {
		return nil
	}
	return p
}

// disjoint sets of numbers: each holds another of its set, and one of each set
// itself.
type disjoint []int

func (d disjoint) find(i int) int {
	for d[i] != i {
		d[i] = d[d[i]]
		i = d[i]
	}
	return i
}

// join keeps the smaller of both sets' numbers on top.
func (d disjoint) join(i, j int) {
	i, j = d.find(i), d.find(j)
	d[max(i, j)] = min(i, j)
}

// A claudeCodeTurn is one message of the API, of all its lines, or one user
// line.
type turn struct {
	lines   []*line
	parent  *turn  // nil: a root
	missing string // uuid of a parent that isn't there
	said    body

	results   []*result // of a user line
	runs      []*run    // results of an assistant message's calls; several where calls ran again
	text      bool      // the turn is a message of its own, and not results only
	messageID string
}

// A claudeCodeRun is the results of one message's calls, one after the other.
type run struct {
	caller   *turn
	answered map[string]bool
	last     string // source id of the last result; of the caller while there is none
}

// A claudeCodeResult is one result of a tool.
type result struct {
	id, callID string
	message    format.Message
	run        *run // nil where no message of the session makes the call
}

// findTurns joins lines to turns, and places each turn under another.
func (s *session) findTurns() {
	byAPI := map[[2]string]*turn{}
	for _, l := range s.lines {
		if !l.isMessage {
			continue
		}
		if !s.conv.Node() {
			return
		}
		l.node = s.conv.At()
		api := [2]string{l.sessionID, l.message().Key("id")}
		t := byAPI[api]
		if t != nil && l.kind == "assistant" && api[1] != "" {
			s.conv.Merge()
		} else {
			t = &turn{messageID: l.uuid}
			s.turns = append(s.turns, t)
			if l.kind == "assistant" {
				byAPI[api] = t
			}
		}
		t.lines = append(t.lines, l)
		s.of[l] = t
	}
	for _, t := range s.turns {
		t.parent, t.missing = s.turnAbove(t)
	}
}

// turnAbove finds the turn that t hangs under, past lines of t itself and
// lines that are no message.
func (s *session) turnAbove(t *turn) (_ *turn, missing string) {
	l := t.lines[0]
	for range len(t.lines) + 1 {
		n := s.nearest(l)
		if n.line == nil || s.of[n.line] != t {
			return s.of[n.line], n.missing
		}
		l = n.line
	}
	return nil, "" // the lines of t are each other's parents
}

// A nearest is the closest message line above a line, or the uuid of a parent
// that isn't there; neither for a root.
type nearest struct {
	line    *line
	missing string
}

func (s *session) nearest(l *line) (found nearest) {
	var bridged []*line
	defer func() {
		for _, b := range bridged {
			s.above[b] = found
		}
	}()
	for {
		if l.parent == "" {
			return nearest{}
		}
		p := s.file.parent(l)
		if p == nil {
			return nearest{missing: l.parent}
		}
		if p.isMessage {
			return nearest{line: p}
		}
		if known, ok := s.above[p]; ok {
			return known
		}
		s.above[p] = nearest{} // where lines are each other's parents, the walk ends here
		bridged = append(bridged, p)
		l = p
	}
}

// placeResults puts each result into a run behind the message that called.
func (s *session) placeResults() {
	callers := map[string][]*turn{}
	for _, t := range s.turns {
		for _, id := range t.said.callIDs {
			callers[id] = append(callers[id], t)
		}
	}
	for _, t := range s.turns {
		for _, r := range t.results {
			if !s.conv.More() {
				return
			}
			caller := s.caller(t, callers[r.callID])
			if caller == nil {
				continue // normalizing sees to results without a call
			}
			if !s.conv.Steps(len(caller.runs)) {
				return
			}
			r.run = caller.runFor(r.callID, t.parent)
			r.message.ParentID = r.run.last
			r.run.last, r.run.answered[r.callID] = r.id, true
			if t.parent != caller && (t.parent == nil || t.parent.run() == nil || t.parent.run().caller != caller) {
				s.conv.Repaired(format.KindTool, r.id, "a tool result stood apart from its call and was moved behind it")
			}
		}
	}
}

// caller picks, of the turns that make a call of the id, the nearest above t.
func (s *session) caller(t *turn, candidates []*turn) *turn {
	if len(candidates) == 0 {
		return nil
	}
	above := t.parent
	for range len(s.turns) {
		if above == nil || len(candidates) == 1 || !s.conv.Steps(len(candidates)) {
			break
		}
		if slices.Contains(candidates, above) {
			return above
		}
		above = above.parent
	}
	return candidates[0]
}

// runFor picks the run that a result goes to: the one its line hangs in, else
// the first that lacks the result, else a new one, which branches.
func (t *turn) runFor(callID string, above *turn) *run {
	if above != nil {
		if run := above.run(); run != nil && run.caller == t && !run.answered[callID] {
			return run
		}
	}
	for _, run := range t.runs {
		if !run.answered[callID] {
			return run
		}
	}
	run := &run{caller: t, answered: map[string]bool{}, last: t.messageID}
	t.runs = append(t.runs, run)
	return run
}

// run is the run that a turn's last result stands in.
func (t *turn) run() *run {
	if len(t.results) == 0 {
		return nil
	}
	return t.results[len(t.results)-1].run
}

// end is the source id of the message under which a child of the turn goes:
// behind the results, which must follow their call.
func (t *turn) end() string {
	switch {
	case len(t.runs) > 0:
		return t.runs[0].last
	case t.text || len(t.results) == 0:
		return t.messageID
	case t.run() != nil:
		return t.run().last
	}
	return t.results[len(t.results)-1].id
}

package summarize

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// A witness sums up by listing the marks of the messages that it saw. It takes roles by turns only.
type witness struct {
	says func(summary string) string // nil: the summary as it is
}

func (w witness) Name() string { return "witness" }

func (w witness) Complete(_ context.Context, req llm.Request) (llm.Response, error) {
	if err := llmtest.CheckTurns(req.Messages); err != nil {
		panic(fmt.Sprintf("a strict server refuses the summarizer's prompt: %v", err))
	}
	var all []byte
	for _, m := range req.Messages {
		all = append(all, m...)
	}
	text := "Of this conversation it has seen " + strings.Join(marksIn(all), " ")
	if w.says != nil {
		text = w.says(text)
	}
	return llm.Response{Text: text, PromptTokens: 1, CompletionTokens: 1, FinishReason: "stop"}, nil
}

func (w witness) Stream(ctx context.Context, req llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
	return w.Complete(ctx, req)
}

var marks = regexp.MustCompile(`\bm\d+m\b`)

func marksIn(text []byte) (found []string) {
	for _, m := range marks.FindAll(text, -1) {
		if !slices.Contains(found, string(m)) {
			found = append(found, string(m))
		}
	}
	return found
}

// The naive reference: lists in memory, walked from end to end.
type reference struct {
	id    uuid.UUID
	nodes []refNode
}

type refNode struct {
	id, parent uuid.UUID
	mark       string
	role       tree.Role
	tokens     int
	body       string
	open       []string // calls that a child may answer
	cutoff     uuid.UUID
	saw        []string // marks in the text of a summary, or of what was brought from another branch
	none       bool     // a summary that is none, or that was made from one
}

func (r *reference) find(id uuid.UUID) *refNode {
	for i := range r.nodes {
		if r.nodes[i].id == id {
			return &r.nodes[i]
		}
	}
	return nil
}

func (r *reference) path(id uuid.UUID) (path []refNode) {
	for n := r.find(id); n != nil; n = r.find(n.parent) {
		path = append(path, *n)
	}
	slices.Reverse(path)
	return path
}

func (r *reference) messages() (out []refNode) {
	for _, n := range r.nodes {
		if n.cutoff == uuid.Nil {
			out = append(out, n)
		}
	}
	return out
}

// applicable is the summary with the deepest anchor on the path, of several the newest.
func (r *reference) applicable(head uuid.UUID) (found *refNode) {
	for _, m := range r.path(head) {
		for i := range r.nodes {
			if r.nodes[i].cutoff != uuid.Nil && r.nodes[i].parent == m.id {
				found = &r.nodes[i] // nodes stand in the order of their making
			}
		}
	}
	return found
}

type branchMachine struct {
	ctx     context.Context
	store   *tree.Store
	service *Service
	refs    []*reference
	serial  int

	form    string // in which the model gives its next summaries: one of awkward or none, or "" as it is
	summary string // its last one, as it is
}

// Forms of summaries, and of answers that are none.
var (
	awkward = slices.Sorted(maps.Keys(llmtest.AwkwardSummaries("")))
	none    = slices.Sorted(maps.Keys(llmtest.NoSummaries))
	prose   = []string{"a long refusal", "a question", "a reply", "another matter"} // of none, what only long folds tell from a summary
)

// says is what the model says instead of a summary.
func (s *branchMachine) says(summary string) string {
	if text, ok := llmtest.NoSummaries[s.form]; ok {
		return text
	}
	if s.summary = summary; s.form == "" {
		return summary
	}
	return llmtest.AwkwardSummaries(summary)[s.form]
}

func (s *branchMachine) must(t *rapid.T, err error) {
	t.Helper()
	check.NoError(t, err)
}

func (s *branchMachine) ref(t *rapid.T) *reference {
	return rapid.SampledFrom(s.refs).Draw(t, "conversation")
}

// tip draws a message, late ones more often, so that branches grow long.
func (s *branchMachine) tip(t *rapid.T, r *reference) *refNode {
	messages := r.messages()
	if len(messages) == 0 {
		t.Skip("no message yet")
	}
	from := 0
	if rapid.IntRange(0, 3).Draw(t, "late") > 0 {
		from = len(messages) - 1 - min(2, len(messages)-1)
	}
	n := rapid.SampledFrom(messages[from:]).Draw(t, "message")
	return r.find(n.id)
}

// grow appends a turn or a piece of one below a message.
func (s *branchMachine) grow(t *rapid.T, r *reference, parent *refNode) {
	for range rapid.IntRange(1, 6).Draw(t, "messages") {
		parent = s.say(t, r, parent)
	}
}

func (s *branchMachine) say(t *rapid.T, r *reference, parent *refNode) *refNode {
	s.serial++
	n := refNode{mark: fmt.Sprintf("m%dm", s.serial)}
	parentID := uuid.Nil
	var kinds []string
	switch {
	case parent == nil:
		kinds = []string{"system", "user"}
	case len(parent.open) > 0:
		kinds = []string{"tool", "tool", "tool", "user"} // sometimes the branch goes on without an answer
	case parent.role == tree.RoleSystem:
		kinds = []string{"system", "developer", "user", "user"}
	case parent.role == tree.RoleUser:
		kinds = []string{"assistant", "assistant", "call", "user"}
	case parent.role == tree.RoleTool:
		kinds = []string{"assistant", "call", "assistant"}
	default:
		kinds = []string{"user", "user", "user", "assistant"}
	}
	if parent != nil {
		parentID = parent.id
	}
	body := map[string]any{"content": n.mark + " " + strings.Repeat("words that fill it ", rapid.IntRange(2, 14).Draw(t, "length"))}
	switch kind := rapid.SampledFrom(kinds).Draw(t, "kind"); kind {
	case "call":
		n.role = tree.RoleAssistant
		var calls []any
		for i := range rapid.IntRange(1, 3).Draw(t, "calls") {
			id := fmt.Sprintf("call-%d-%d", s.serial, i)
			n.open = append(n.open, id)
			calls = append(calls, map[string]any{"id": id, "type": "function", "function": map[string]string{"name": "look", "arguments": "{}"}})
		}
		body["tool_calls"] = calls
	case "tool":
		n.role = tree.RoleTool
		body["tool_call_id"] = parent.open[0]
		n.open = parent.open[1:]
	default:
		n.role = tree.Role(kind)
	}
	body["role"] = n.role
	raw, err := json.Marshal(body)
	s.must(t, err)
	m, err := s.store.Append(s.ctx, r.id, parentID, tree.NewMessage{Message: chat.Read(raw), Pinned: rapid.IntRange(0, 24).Draw(t, "pinned") == 0})
	s.must(t, err)
	n.id, n.parent, n.body, n.tokens = m.ID, parentID, string(raw), m.Tokens
	r.nodes = append(r.nodes, n)
	return r.find(n.id)
}

func (s *branchMachine) Grow(t *rapid.T) {
	r := s.ref(t)
	if len(r.messages()) == 0 {
		s.grow(t, r, nil)
		return
	}
	s.grow(t, r, s.tip(t, r))
}

// Sibling edits or regenerates a message.
func (s *branchMachine) Sibling(t *rapid.T) {
	r := s.ref(t)
	of := s.tip(t, r)
	s.grow(t, r, r.find(of.parent))
}

func (s *branchMachine) Compact(t *rapid.T) {
	r := s.ref(t)
	head := s.tip(t, r).id
	var d *Demand
	trigger := TriggerAppend
	if rapid.Bool().Draw(t, "asked") {
		trigger, d = TriggerRequest, &Demand{KeepRecentMessages: rapid.IntRange(0, 5).Draw(t, "keep")}
		if rapid.IntRange(0, 3).Draw(t, "no look-ahead") == 0 {
			d.LookAhead = LookAheadNone
		}
	}
	s.form = rapid.SampledFrom([]string{"", "", rapid.SampledFrom(awkward).Draw(t, "awkward"), rapid.SampledFrom(none).Draw(t, "none")}).Draw(t, "form")
	before := r.applicable(head)
	k, err := s.service.Compact(s.ctx, r.id, head, trigger, d)
	s.must(t, err)
	s.checkForm(t, k, before)
	if k.Outcome == tree.OutcomeSaved {
		s.compacted(t, r, k, before)
	}
	s.form = ""
}

// checkForm holds that awkward summaries are taken, and that what is none by its form is refused.
func (s *branchMachine) checkForm(t *rapid.T, k tree.Compaction, before *refNode) {
	var attempts []Attempt
	s.must(t, json.Unmarshal(k.Attempts, &attempts))
	refused := slices.ContainsFunc(attempts, func(a Attempt) bool { return a.Model == "witness" && a.Error != "" })
	if slices.Contains(none, s.form) {
		check.Need(t, k.Model != "witness" || slices.Contains(prose, s.form),
			"%s is the summary of %d messages", s.form, k.FoldedMessages)
		return
	}
	check.Need(t, !refused || before != nil && before.none, "a summary (%s) is refused: %s", s.form, k.Attempts)
	if k.Model == "witness" && k.Outcome == tree.OutcomeSaved {
		_, text, err := s.service.Summary(s.ctx, k.ConversationID, k.SummaryID)
		if s.must(t, err); !strings.HasPrefix(text, s.summary) {
			t.Fatalf("%s has become %q of %q", s.form, text, s.summary)
		}
	}
}

func (s *branchMachine) compacted(t *rapid.T, r *reference, k tree.Compaction, before *refNode) {
	_, text, err := s.service.Summary(s.ctx, r.id, k.SummaryID)
	s.must(t, err)
	r.nodes = append(r.nodes, refNode{id: k.SummaryID, parent: k.AnchorID, cutoff: k.CutoffID, saw: marksIn([]byte(text)),
		none: before != nil && before.none || slices.Contains(none, s.form)})
	path := r.path(k.HeadID)
	at := func(id uuid.UUID) int { return slices.IndexFunc(path, func(n refNode) bool { return n.id == id }) }
	if at(k.CutoffID) < 0 || at(k.AnchorID) < at(k.CutoffID) {
		t.Fatalf("cutoff at %d, anchor at %d of a path of %d", at(k.CutoffID), at(k.AnchorID), len(path))
	}
	if before != nil && at(k.CutoffID) <= at(before.cutoff) {
		t.Fatalf("the new cutoff at %d is not deeper than the old one at %d", at(k.CutoffID), at(before.cutoff))
	}
	check.Need(t, len(path[at(k.CutoffID)].open) == 0, "a fold ends where a call is open")
	check.Need(t, k.TokensAfter < k.TokensBefore, "%d tokens became %d", k.TokensBefore, k.TokensAfter)
	// Promise 7: regenerating the last answer, and editing the last user
	// message if it is in the tail.
	if found := r.applicable(k.HeadID); found == nil || found.id != k.SummaryID {
		t.Fatal("the new summary doesn't apply to the branch that was compacted")
	}
	if before != nil && before.parent == k.AnchorID {
		return // made for a longer branch; a shallower anchor would serve nobody below it
	}
	for i := len(path) - 1; i > at(k.CutoffID); i-- {
		if path[i].role != tree.RoleUser {
			continue
		}
		for _, fork := range []uuid.UUID{path[i].id, path[i].parent} {
			if found := r.applicable(fork); found == nil || found.id != k.SummaryID {
				t.Fatalf("a fork of the last turn loses the summary")
			}
		}
		break
	}
}

func (s *branchMachine) Prune(t *rapid.T) {
	if rapid.IntRange(0, 3).Draw(t, "prune") > 0 {
		t.Skip("prune less often than grow")
	}
	r := s.ref(t)
	if len(r.nodes) == 0 {
		t.Skip("nothing to prune")
	}
	id := rapid.SampledFrom(r.nodes).Draw(t, "node").id
	_, err := s.store.Prune(s.ctx, r.id, id)
	s.must(t, err)
	gone := []uuid.UUID{id}
	for i := 0; i < len(gone); i++ {
		for _, n := range r.nodes {
			if n.parent == gone[i] {
				gone = append(gone, n.id)
			}
		}
	}
	r.nodes = slices.DeleteFunc(r.nodes, func(n refNode) bool { return slices.Contains(gone, n.id) })
}

func (s *branchMachine) Fork(t *rapid.T) {
	r := s.ref(t)
	at := s.tip(t, r).id
	c, _, err := s.store.Fork(s.ctx, r.id, at, tree.NewConversation{})
	s.must(t, err)
	fork := &reference{id: c.ID}
	copied := func(id uuid.UUID) uuid.UUID {
		if id == uuid.Nil {
			return id
		}
		return uuid.NewSHA1(c.ID, id[:])
	}
	path := r.path(at)
	for _, n := range r.nodes {
		on := slices.ContainsFunc(path, func(p refNode) bool { return p.id == n.id || n.cutoff != uuid.Nil && p.id == n.parent })
		if on {
			n.id, n.parent, n.cutoff = copied(n.id), copied(n.parent), copied(n.cutoff)
			fork.nodes = append(fork.nodes, n)
		}
	}
	s.refs = append(s.refs, fork)
	if len(s.refs) > 3 {
		s.refs = s.refs[1:]
	}
}

// Graft brings what another branch said since the two parted, also when that one is pruned.
func (s *branchMachine) Graft(t *rapid.T) {
	r := s.ref(t)
	head, from := s.tip(t, r), s.tip(t, r)
	path := r.path(from.id)
	apart := 0
	for above := r.path(head.id); apart < min(len(path), len(above)) && path[apart].id == above[apart].id; apart++ {
	}
	d := GraftDemand{FromHeadID: from.id, Include: rapid.SampledFrom([]tree.Include{tree.IncludeSummary, tree.IncludeMessages}).Draw(t, "include")}
	a, err := s.service.Graft(s.ctx, r.id, head.id, uuid.Nil, d)
	if apart == len(path) || len(head.open) > 0 {
		check.Need(t, fault.Of(err).Kind == fault.Invalid, "a graft of nothing, or below an open call: %v", err)
		return
	}
	s.must(t, err)
	n := refNode{id: a.ID, parent: head.id, role: a.Role, tokens: a.Tokens, body: string(a.Body), saw: marksIn(a.Body)}
	for _, m := range path[apart:] {
		check.Need(t, m.mark == "" || d.Include != tree.IncludeMessages || slices.Contains(n.saw, m.mark),
			"%s was not brought: %s", m.mark, a.Body)
	}
	for _, mark := range n.saw {
		check.Need(t, slices.ContainsFunc(path[apart:], func(m refNode) bool { return m.has(mark) }),
			"%s was brought, and the other branch didn't say it since: %s", mark, a.Body)
	}
	if g := a.Graft; g.FromHeadID != from.id || g.Messages != len(path)-apart || apart > 0 && g.AncestorID != path[apart-1].id {
		t.Fatalf("%+v of %d messages, of which %d are common", g, len(path), apart)
	}
	r.nodes = append(r.nodes, n)
}

// has tells whether a message has a mark, its own or one that was brought.
func (n refNode) has(mark string) bool {
	return n.mark == mark || n.cutoff == uuid.Nil && slices.Contains(n.saw, mark)
}

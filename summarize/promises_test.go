package summarize

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// Check holds the promises after every step.
func (s *branchMachine) Check(t *rapid.T) {
	for _, r := range s.refs {
		messages := r.messages()
		// Promise 9: no summary remembers what was pruned.
		for _, n := range r.nodes {
			for _, mark := range n.saw {
				check.Need(t, n.cutoff == uuid.Nil || slices.ContainsFunc(messages, func(m refNode) bool { return m.has(mark) }),
					"summary %s saw %s, which was pruned", n.id, mark)
			}
		}
		if len(messages) == 0 {
			continue
		}
		head := rapid.SampledFrom(messages[max(0, len(messages)-8):]).Draw(t, "head")
		s.checkContext(t, r, head.id)
	}
}

func (s *branchMachine) context(t *rapid.T, r *reference, head uuid.UUID, w Window) Context {
	c, err := s.service.Context(s.ctx, r.id, head, w)
	s.must(t, err)
	return c
}

func (s *branchMachine) checkContext(t *rapid.T, r *reference, head uuid.UUID) {
	zero := 0
	w := Window{MaxContextTokens: rapid.SampledFrom([]int{40, 200, s.service.settings.MaxContextTokens, 100_000}).Draw(t, "window"), ReservedTokens: &zero}
	c := s.context(t, r, head, w)
	path := r.path(head)
	want := r.applicable(head)
	check.Need(t, c.Summary == nil || want != nil && c.Summary.ID == want.id, "summary %v applies, want %v", c.Summary, want)
	if c.Summary == nil && want != nil && (c.Complete || tokensBelow(path, want.parent) <= 4*w.MaxContextTokens) {
		t.Fatalf("summary %s applies, %d tokens above the head, and is not in the context", want.id, tokensBelow(path, want.parent))
	}
	if w.MaxContextTokens == s.service.settings.MaxContextTokens {
		e, err := s.service.Explain(s.ctx, r.id, head)
		s.must(t, err)
		check.Need(t, !c.Complete || e.Usage == c.Usage, "the context has %+v, its explanation %+v", c.Usage, e.Usage)
	}
	// Promise 1: nothing of another branch.
	for i, m := range c.Messages {
		for _, mark := range marksIn(m) {
			check.Need(t, slices.ContainsFunc(path, func(n refNode) bool { return n.has(mark) }),
				"message %d of the context holds %s, which is not on the branch", i, mark)
		}
	}
	s.checkCover(t, c, path, want)
	checkValid(t, c)
	checkTurns(t, c)
	// Promise 4.
	check.Need(t, !c.Complete || c.Usage.ContextTokens <= w.MaxContextTokens,
		"%d tokens are over %d, and the context calls itself complete", c.Usage.ContextTokens, w.MaxContextTokens)
	if c.Usage.ContextTokens > w.MaxContextTokens && c.Counts.Tail > 1 && !slices.ContainsFunc(path[len(path)-c.Counts.Tail:], func(n refNode) bool { return n.role == tree.RoleTool }) {
		t.Fatalf("%d tokens are over %d with %d messages of tail", c.Usage.ContextTokens, w.MaxContextTokens, c.Counts.Tail)
	}
	// Promise 6.
	if parent := r.find(head).parent; parent != uuid.Nil && c.Complete {
		before := s.context(t, r, parent, w)
		if !before.Complete || !sameSummary(before, c) {
			return
		}
		if len(before.Messages) > len(c.Messages) || !slices.EqualFunc(before.Messages, c.Messages[:len(before.Messages)], func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }) {
			t.Fatalf("the context of a child doesn't begin with its parent's:\n%s\n%s", before.Messages, c.Messages)
		}
	}
}

// tokensBelow are those of the messages below one on a path.
func tokensBelow(path []refNode, id uuid.UUID) (sum int) {
	for i := len(path) - 1; i >= 0 && path[i].id != id; i-- {
		sum += path[i].tokens
	}
	return sum
}

func sameSummary(a, b Context) bool {
	if a.Summary == nil || b.Summary == nil {
		return a.Summary == b.Summary
	}
	return a.Summary.ID == b.Summary.ID
}

// checkCover holds promise 2: every message is in prefix, folded, tail or omitted, in order, byte for byte.
func (s *branchMachine) checkCover(t *rapid.T, c Context, path []refNode, summary *refNode) {
	prefix := 0
	for prefix < len(path) && (path[prefix].role == tree.RoleSystem || path[prefix].role == tree.RoleDeveloper) {
		prefix++
	}
	check.Need(t, c.Counts.Prefix == prefix, "a prefix of %d, want %d", c.Counts.Prefix, prefix)
	if c.Summary != nil {
		cutoff := slices.IndexFunc(path, func(n refNode) bool { return n.id == summary.cutoff })
		want := max(0, cutoff+1-prefix)
		check.Need(t, c.Counts.Folded == want, "%d folded, want %d", c.Counts.Folded, want)
	}
	if sum := c.Counts.Prefix + c.Counts.Folded + c.Counts.Tail + c.Omitted; sum != len(path) {
		t.Fatalf("prefix, folded, tail and omitted are %d messages of %d: %+v, %d omitted", sum, len(path), c.Counts, c.Omitted)
	}
	shown := slices.Concat(path[:prefix], path[len(path)-c.Counts.Tail:])
	i := 0
	for j, p := range c.parts {
		if p.Kind != "prefix" && p.Kind != "tail" {
			continue
		}
		check.Need(t, shown[i].body == string(c.Messages[j]), "message %d is %s, want %s", j, c.Messages[j], shown[i].body)
		i++
	}
	check.Need(t, i == len(shown), "%d messages shown, want %d", i, len(shown))
}

// checkValid is a strict chat-completions validator: promise 3.
func checkValid(t interface{ Fatalf(string, ...any) }, c Context) {
	open := map[string]bool{}
	for i, raw := range c.Messages {
		var m struct {
			Role       string
			Content    any
			ToolCalls  []struct{ ID string } `json:"tool_calls"`
			ToolCallID string                `json:"tool_call_id"`
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatalf("message %d is no object: %v", i, err)
		}
		if m.Role == "tool" {
			if !open[m.ToolCallID] {
				t.Fatalf("message %d answers %q, which is not open", i, m.ToolCallID)
			}
			delete(open, m.ToolCallID)
			continue
		}
		if len(open) > 0 {
			t.Fatalf("message %d comes before the results of %v", i, open)
		}
		for _, call := range m.ToolCalls {
			open[call.ID] = true
		}
	}
}

// checkTurns holds a context to its roles, and its joined form to what a strict server takes.
func checkTurns(t *rapid.T, c Context) {
	refused := func(messages []json.RawMessage) error {
		last := chat.Read(messages[len(messages)-1])
		if next := `{"role":"user","content":"On."}`; last.Role != tree.RoleUser && last.Role != tree.RoleTool {
			if len(last.Calls) > 0 {
				next = `{"role":"tool","content":"done"}`
			}
			messages = append(slices.Clip(messages), json.RawMessage(next))
		}
		return llmtest.CheckTurns(messages)
	}
	if err := refused(c.Messages); (c.Roles == RolesAlternating) != (err == nil) {
		t.Fatalf("the roles are %s, and a strict server says %v", c.Roles, err)
	}
	joined := c.ByTurns()
	if err := refused(joined.Messages); err != nil || joined.Roles != RolesAlternating || len(joined.Parts()) != len(joined.Messages) {
		t.Fatalf("the joined context of %d parts: %v: %s", len(joined.Parts()), err, joined.Messages)
	}
}

func smallSettings() Settings {
	s := Defaults()
	s.MaxContextTokens, s.ReservedTokens, s.MinFoldTokens, s.MinFoldMessages, s.MinRecentMessages = 1200, 0, 20, 2, 2
	return s
}

func TestPromises(t *testing.T) {
	t.Parallel()
	pool := database()
	rapid.Check(t, func(rt *rapid.T) {
		settings := smallSettings()
		settings.MaxContextTokens = rapid.SampledFrom([]int{600, 1200, 3000}).Draw(rt, "max_context_tokens")
		settings.AnchorSlackTurns = rapid.IntRange(1, 3).Draw(rt, "slack")
		settings.LookAhead = rapid.SampledFrom([]LookAhead{LookAheadRecent, LookAheadNone}).Draw(rt, "look_ahead")
		settings.KeepUserRatio = rapid.SampledFrom([]float64{0, 0.05, 0.15}).Draw(rt, "keep_user_ratio")
		store := tree.New(pool)
		s := &branchMachine{ctx: t.Context(), store: store}
		var err error
		s.service, err = New(store, Config{Settings: settings, Summarizer: Cascade{Counter: sparse{}, Models: []Model{{Model: witness{s.says}, Window: 100_000}}}})
		check.NoError(rt, err)
		c, _, err := store.CreateConversation(s.ctx, tree.NewConversation{})
		s.must(rt, err)
		s.refs = []*reference{{id: c.ID}}
		rt.Repeat(map[string]func(*rapid.T){
			"grow": s.Grow, "grow more": s.Grow, "grow on": s.Grow, "sibling": s.Sibling, "compact": s.Compact, "compact again": s.Compact,
			"prune": s.Prune, "fork": s.Fork, "graft": s.Graft, "": s.Check,
		})
	})
}

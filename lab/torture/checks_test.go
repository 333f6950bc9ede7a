package torture

import (
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/summarize"
)

// A scene is a small conversation in the ledger, and the tree and the context of
// a2 that a faultless server shows of it:
//
//	s ─ u1 ┬ a1 ─ u2 ─ a2
//	       └ a1'            two answers
//
// with a summary that folds u1 and a1, keeps u1, and saw u2.
type scene struct {
	c      *conversation
	report *recorder
	marks  *marks
	tree   treeAnswer
	id     map[string]uuid.UUID
	ctx    summarize.Context
}

func newScene() *scene {
	report := newRecorder(slog.New(slog.DiscardHandler))
	s := &scene{c: newConversation(nil, report), report: report, marks: &marks{}, id: map[string]uuid.UUID{"": uuid.Nil}}
	for _, m := range [][3]string{{"s", "", "system"}, {"u1", "s", "user"}, {"a1", "u1", "assistant"}, {"a1'", "u1", "assistant"}, {"u2", "a1", "user"}, {"a2", "u2", "assistant"}} {
		s.send(m[0], m[1], m[2])
		s.c.acknowledge(s.message(m[0]))
		s.show(m[0])
	}
	s.id["sum"], s.tree.HeadID, s.ctx.HeadID = uuid.New(), s.id["a2"], s.id["a2"]
	kept := []uuid.UUID{s.id["u1"]}
	s.tree.Data = append(s.tree.Data, node{ID: s.id["sum"], ParentID: s.id["u2"], Kind: "summary", Role: "user", Depth: 4, Cutoff: s.id["a1"], Kept: kept})
	s.ctx.Complete, s.ctx.Usage.ContextTokens, s.ctx.Usage.AvailableTokens = true, 100, 1000
	s.ctx.Counts.Prefix, s.ctx.Counts.Folded, s.ctx.Counts.Tail = 1, 2, 2
	s.ctx.Summary = &summarize.ContextSummary{ID: s.id["sum"], ParentID: s.id["u2"], LastSummarizedID: s.id["a1"], KeptIDs: kept, Model: summaryModel}
	s.ctx.Messages = []json.RawMessage{s.chat("s"), nil, s.chat("u2"), s.chat("a2")}
	s.summarize(s.summary("u1", "a1", "u2") + "<coppice-kept>" + s.message("u1").content)
	return s
}

func (s *scene) message(name string) *message { return s.c.messages[s.id[name]] }

// send notes a message in the ledger.
func (s *scene) send(name, parent, role string) {
	m := &message{id: uuid.New(), parent: s.id[parent], role: role}
	above := noMark
	if p := s.c.messages[m.parent]; p != nil {
		above = p.mark
	}
	m.mark, m.content = s.marks.add(above, "text of "+name, false)
	s.c.add(m)
	s.id[name] = m.id
}

// show puts a message into the tree.
func (s *scene) show(name string) {
	m := s.message(name)
	s.tree.Data = append(s.tree.Data, node{ID: m.id, ParentID: m.parent, Kind: "message", Role: m.role, Depth: m.depth, Preview: m.content})
}

func (s *scene) node(name string) *node {
	return &s.tree.Data[slices.IndexFunc(s.tree.Data, func(n node) bool { return n.ID == s.id[name] })]
}

// hide takes nodes out of the tree, and sets the head.
func (s *scene) hide(head string, names ...string) {
	s.tree.HeadID = s.id[head]
	s.tree.Data = slices.DeleteFunc(s.tree.Data, func(n node) bool {
		return slices.ContainsFunc(names, func(name string) bool { return n.ID == s.id[name] })
	})
}

// prune notes a prune in the ledger.
func (s *scene) prune(name string, o outcome) {
	m := s.message(name)
	if m.pruneSentAt = time.Now(); o == acknowledged {
		m.prunedAt = time.Now()
	}
}

// chat is a message as a context shows it.
func (s *scene) chat(name string) json.RawMessage { return encoded(s.message(name).body()) }

// refresh has the context show what the ledger has of its tail.
func (s *scene) refresh() { s.ctx.Messages[2], s.ctx.Messages[3] = s.chat("u2"), s.chat("a2") }

func (s *scene) summary(names ...string) string {
	var shown []mark
	for _, name := range names {
		shown = append(shown, s.message(name).mark)
	}
	return summaryOf(shown)
}

// summarize has the context's summary say something.
func (s *scene) summarize(text string) {
	s.ctx.Messages[1] = encoded(map[string]any{"role": "user", "content": text})
}

func encoded(message map[string]any) json.RawMessage {
	b, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	return b
}

// kinds are those of the violations that were found.
func (s *scene) kinds() string {
	var out []string
	for _, v := range s.report.report.Violations {
		out = append(out, v.Kind)
	}
	return strings.Join(out, ", ")
}

// Each case breaks the tree, or the ledger, in one way.
func TestCheckTree(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(s *scene)
		want   string // kinds of the findings; "" for none
	}{
		{"nothing is wrong", func(*scene) {}, ""},
		{"an acknowledged message is lost", func(s *scene) { s.hide("u2", "a2") }, "lost"},
		{"an acknowledged message is lost, with a prune elsewhere", func(s *scene) { s.prune("a1'", acknowledged); s.hide("u2", "a1'", "a2") }, "lost"},
		{"a message is there twice", func(s *scene) { s.tree.Data = append(s.tree.Data, *s.node("a2")) }, "doubled"},
		{"a text is there under two ids", func(s *scene) {
			s.send("again", "u2", "assistant")
			s.c.acknowledge(s.message("again"))
			s.message("again").mark, s.message("again").content = s.message("a2").mark, s.message("a2").content
			s.show("again")
		}, "doubled"},
		{"a message stands under a wrong parent", func(s *scene) { s.node("a2").ParentID, s.node("a2").Depth = s.id["a1'"], 3 }, "changed"},
		{"a message that nobody sent", func(s *scene) {
			s.tree.Data = append(s.tree.Data, node{ID: uuid.New(), ParentID: s.id["a2"], Kind: "message", Role: "user", Depth: 5})
		}, "invented"},
		{"a message that was refused", func(s *scene) { s.send("no", "a2", "user"); s.message("no").state = refused; s.show("no") }, "invented"},
		{"another text", func(s *scene) { s.node("a2").Preview = "[m1999999] other" }, "changed"},
		{"another role", func(s *scene) { s.node("a2").Role = "user" }, "changed"},
		{"a wrong depth", func(s *scene) { s.node("a2").Depth = 7 }, "shape"},
		{"a summary stays whose anchor was pruned", func(s *scene) { s.prune("u2", acknowledged); s.hide("a1'", "u2", "a2") }, "shape, summary"},
		{"a pruned message is there", func(s *scene) { s.prune("a2", acknowledged) }, "came back"},
		{"a message below a pruned one is there", func(s *scene) { s.prune("u2", acknowledged) }, "came back, came back"},
		{"a prune that happened", func(s *scene) { s.prune("u2", acknowledged); s.hide("a1'", "u2", "a2", "sum") }, ""},
		{"a prune without an answer that happened", func(s *scene) { s.prune("u2", unknown); s.hide("a1'", "u2", "a2", "sum") }, ""},
		{"a prune without an answer that didn't", func(s *scene) { s.prune("u2", unknown) }, ""},
		{"a prune without an answer that took half", func(s *scene) { s.prune("u2", unknown); s.hide("u2", "a2") }, "lost"},
		{"an append without an answer that happened", func(s *scene) { s.maybe(); s.show("maybe") }, ""},
		{"an append without an answer that didn't", (*scene).maybe, ""},
		{"an append that a check didn't find, and the next one does", func(s *scene) {
			s.maybe()
			s.c.checkTree(s.tree, s.marks)
			s.show("maybe")
		}, "invented"},
		{"the cutoff isn't on the anchor's path", func(s *scene) { s.node("sum").Cutoff = s.id["a1'"] }, "summary"},
		{"a kept message isn't on the anchor's path", func(s *scene) { s.node("sum").Kept = []uuid.UUID{s.id["a1'"]} }, "summary"},
		{"the active head isn't there", func(s *scene) { s.tree.HeadID = uuid.New() }, "head"},
		{"there is no active head", func(s *scene) { s.tree.HeadID = uuid.Nil }, "head"},
		{"the active head is a summary", func(s *scene) { s.tree.HeadID = s.id["sum"] }, "head"},
		{"the active head is one of several answers", func(s *scene) { s.message("a2").aside = true }, "head"},
		{"the active head is one of several answers, as a prune left it", func(s *scene) {
			s.message("a2").aside = true
			s.prune("a1'", acknowledged)
			s.hide("a2", "a1'")
		}, ""},
		{"an answer that no client has seen", func(s *scene) { s.unseen("u2") }, ""},
		{"an answer to another message", func(s *scene) { s.unseen("a1'") }, "changed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			test.change(s)
			s.c.checkTree(s.tree, s.marks)
			if got := s.kinds(); got != test.want {
				t.Errorf("found %q, want %q: %v", got, test.want, s.report.report.Violations)
			}
		})
	}
}

// maybe sends a message whose append has no answer.
func (s *scene) maybe() {
	s.send("maybe", "a2", "user")
	s.message("maybe").state = unknown
}

// unseen stores an answer below u2 that no client has seen, and that the model
// gave to a message.
func (s *scene) unseen(to string) {
	m := &message{id: uuid.New(), parent: s.id["u2"], role: "assistant"}
	s.c.add(m)
	m.state, s.id["unseen"] = unknown, m.id
	_, m.content = s.marks.add(s.message(to).mark, "an answer", true)
	s.show("unseen")
	m.content = ""
}

// Each case breaks the context of a2, or the ledger, in one way.
func TestCheckContext(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(s *scene)
		want   string
	}{
		{"nothing is wrong", func(*scene) {}, ""},
		{"no summary", func(s *scene) {
			s.ctx.Summary, s.ctx.Counts.Folded, s.ctx.Counts.Tail = nil, 0, 4
			s.ctx.Messages = []json.RawMessage{s.chat("s"), s.chat("u1"), s.chat("a1"), s.chat("u2"), s.chat("a2")}
		}, ""},
		{"the oldest are left out, and it says so", func(s *scene) { s.leaveOut(); s.ctx.Complete = false }, ""},
		{"the oldest are left out, and it says that all is there", (*scene).leaveOut, "cover"},
		{"over the window, and it says that all is well", func(s *scene) { s.ctx.Usage.ContextTokens = 1001 }, "cover"},
		{"a sibling's text in the tail", func(s *scene) { s.ctx.Messages[3] = s.chat("a1'") }, "leak, cover"},
		{"the summary's writer saw a sibling", func(s *scene) { s.summarize(s.summary("u1", "a1", "a1'") + "<coppice-kept>" + s.message("u1").content) }, "leak, leak"},
		{"the summary's writer saw what stands below its anchor", func(s *scene) {
			s.summarize(s.summary("u1", "a1", "u2", "a2") + "<coppice-kept>" + s.message("u1").content)
		}, "leak"},
		{"the summary's writer wasn't shown what it folds", func(s *scene) { s.summarize(s.summary("u1") + "<coppice-kept>" + s.message("u1").content) }, "cover"},
		{"the summary hangs at a sibling", func(s *scene) { s.ctx.Summary.ParentID = s.id["a1'"] }, "leak"},
		{"the cutoff is below the anchor", func(s *scene) { s.ctx.Summary.ParentID, s.ctx.Summary.LastSummarizedID = s.id["a1"], s.id["u2"] }, "leak"},
		{"the count of folded messages is wrong", func(s *scene) { s.ctx.Counts.Folded = 1 }, "cover"},
		{"a message of the tail is missing", func(s *scene) { s.ctx.Messages = s.ctx.Messages[:3] }, "cover"},
		{"the tail is out of order", func(s *scene) { slices.Reverse(s.ctx.Messages[2:]) }, "cover"},
		{"a message of the tail says something else", func(s *scene) {
			s.ctx.Messages[3] = encoded(map[string]any{"role": "assistant", "content": s.message("a2").content + " and more"})
		}, "cover"},
		{"a kept message isn't shown", func(s *scene) { s.summarize(s.summary("u1", "a1")) }, "cover"},
		{"a kept message isn't folded", func(s *scene) { s.ctx.Summary.KeptIDs = []uuid.UUID{s.id["u2"]} }, "cover"},
		{"a folded message that is pinned isn't kept", func(s *scene) { s.message("a1").pinned = true }, "pin"},
		{"a result in the tail whose call is folded", func(s *scene) {
			s.message("u2").role, s.message("u2").answers = "tool", "x"
			s.refresh()
		}, "invalid"},
		{"a call without its result", (*scene).call, "invalid"},
		{"a call without its result, for which the context makes one up", func(s *scene) { s.call(); s.repair("x", 3) }, ""},
		{"a result made up for a call that has one", func(s *scene) {
			s.call()
			s.repair("x", 3)
			s.message("a1'").answers = "y"
			s.message("a2").answers = "x"
		}, "invalid"},
		{"a call of the tail is lost", func(s *scene) { s.message("a2").calls = []chat.Call{{ID: "x"}} }, "cover"},
		{"the context of another head", func(s *scene) { s.ctx.HeadID = s.id["u2"] }, "cover"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			test.change(s)
			contextCheck{s.c.known(s.message("a2")), s.ctx, s.report}.check()
			if got := s.kinds(); got != test.want {
				t.Errorf("found %q, want %q: %v", got, test.want, s.report.report.Violations)
			}
		})
	}
}

// leaveOut has the context show its prefix and its head only.
func (s *scene) leaveOut() {
	s.ctx.Summary, s.ctx.Omitted = nil, 3
	s.ctx.Counts.Folded, s.ctx.Counts.Tail = 0, 1
	s.ctx.Messages = []json.RawMessage{s.chat("s"), s.chat("a2")}
}

// call makes u2 an assistant's call.
func (s *scene) call() {
	s.message("u2").role, s.message("u2").calls = "assistant", []chat.Call{{ID: "x"}}
	s.refresh()
}

// repair puts in a result that the branch doesn't have.
func (s *scene) repair(id string, index int) {
	s.ctx.Repairs = append(s.ctx.Repairs, summarize.Repair{ToolCallID: id, Index: index})
	s.ctx.Messages = slices.Insert(s.ctx.Messages, index, encoded(map[string]any{"role": "tool", "content": "no result", "tool_call_id": id}))
}

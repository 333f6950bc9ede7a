package torture

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// A scene is a small conversation in the ledger, and the tree that a faultless
// server shows of it:
//
//	s ─ u1 ┬ a1 ─ u2 ─ a2
//	       └ a1'            two answers
//
// with a summary that folds u1 and a1, and saw u2.
type scene struct {
	c     *conversation
	marks *marks
	tree  treeAnswer
	id    map[string]uuid.UUID
	text  map[string]string
}

func newScene() *scene {
	s := &scene{c: newConversation(uuid.New()), marks: &marks{}, id: map[string]uuid.UUID{"": uuid.Nil}, text: map[string]string{}}
	s.c.state = acknowledged
	for _, m := range [][3]string{{"s", "", "system"}, {"u1", "s", "user"}, {"a1", "u1", "assistant"}, {"a1'", "u1", "assistant"}, {"u2", "a1", "user"}, {"a2", "u2", "assistant"}} {
		s.send(m[0], m[1], m[2])
		s.c.acknowledge(s.message(m[0]))
		s.message(m[0]).tokens = 9
		s.show(m[0])
	}
	s.id["sum"] = uuid.New()
	s.tree.Data = append(s.tree.Data, node{ID: s.id["sum"], ParentID: s.id["u2"], Kind: "summary", Role: "user", Depth: 4, Cutoff: s.id["a1"], Kept: []uuid.UUID{s.id["u1"]}})
	s.tree.HeadID = s.id["a2"]
	return s
}

// send notes a message in the ledger.
func (s *scene) send(name, parent, role string) {
	m := &message{id: uuid.New(), parent: s.id[parent], role: role}
	above := noMark
	if p := s.c.messages[m.parent]; p != nil {
		above = p.mark
	}
	m.mark, m.content = s.marks.add(above, "text of "+name, false)
	s.c.add(m)
	s.id[name], s.text[name] = m.id, m.content
}

// show puts a message into the tree.
func (s *scene) show(name string) {
	m := s.message(name)
	n := node{ID: m.id, ParentID: m.parent, Kind: "message", Role: m.role, Depth: m.depth, SiblingIndex: 1, Preview: m.content, Tokens: 9, CreatedAt: m.sentAt}
	for _, other := range s.tree.Data {
		if other.Kind == "message" && other.ParentID == n.ParentID {
			n.SiblingIndex++
		}
	}
	s.tree.Data = append(s.tree.Data, n)
}

func (s *scene) message(name string) *message { return s.c.messages[s.id[name]] }

func (s *scene) node(name string) *node {
	for i := range s.tree.Data {
		if s.tree.Data[i].ID == s.id[name] {
			return &s.tree.Data[i]
		}
	}
	return nil
}

// hide takes nodes out of the tree.
func (s *scene) hide(names ...string) {
	var left []node
	for _, n := range s.tree.Data {
		keep := true
		for _, name := range names {
			keep = keep && n.ID != s.id[name]
		}
		if keep {
			left = append(left, n)
		}
	}
	s.tree.Data = left
}

// prune notes a prune in the ledger.
func (s *scene) prune(name string, o outcome) {
	m := s.message(name)
	m.pruneSentAt = time.Now()
	if o == acknowledged {
		m.prunedAt = time.Now()
	}
}

func kinds(found []finding) string {
	var out []string
	for _, f := range found {
		out = append(out, f.kind)
	}
	return strings.Join(out, ", ")
}

// Each case breaks the tree, or the ledger, in one way.
func TestCheckTree(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(s *scene)
		want   string // kinds of what is found; "" for nothing
	}{
		{"nothing is wrong", func(*scene) {}, ""},
		{"an acknowledged message is lost", func(s *scene) { s.hide("a2"); s.tree.HeadID = s.id["u2"] }, "lost"},
		{"an acknowledged message is lost, with a prune elsewhere", func(s *scene) {
			s.prune("a1'", acknowledged)
			s.hide("a1'", "a2")
			s.tree.HeadID = s.id["u2"]
		}, "lost"},
		{"a message is there twice", func(s *scene) { s.tree.Data = append(s.tree.Data, *s.node("a2")) }, "doubled"},
		{"a text is there under two ids", func(s *scene) {
			s.send("again", "u2", "assistant")
			s.c.acknowledge(s.message("again"))
			s.message("again").mark, s.message("again").content = s.message("a2").mark, s.message("a2").content
			s.show("again")
		}, "doubled"},
		{"a message stands under a wrong parent", func(s *scene) {
			n := s.node("a2")
			n.ParentID, n.Depth, n.SiblingIndex = s.id["a1'"], 3, 1
		}, "wrong parent"},
		{"a message that nobody sent", func(s *scene) {
			s.tree.Data = append(s.tree.Data, node{ID: uuid.New(), ParentID: s.id["a2"], Kind: "message", Role: "user", Depth: 5, SiblingIndex: 1})
		}, "invented"},
		{"a message that was refused", func(s *scene) {
			s.send("no", "a2", "user")
			s.c.refuse(s.message("no"))
			s.show("no")
		}, "invented"},
		{"another text", func(s *scene) { s.node("a2").Preview = "[m1999999] other" }, "changed"},
		{"another role", func(s *scene) { s.node("a2").Role = "user" }, "changed"},
		{"a wrong depth", func(s *scene) { s.node("a2").Depth = 7 }, "shape"},
		{"a parent that isn't there", func(s *scene) { s.hide("a1") }, "shape, lost, siblings, summary, summary"},
		{"a gap between siblings", func(s *scene) { s.node("a1'").SiblingIndex = 3 }, "siblings"},
		{"two siblings of one index", func(s *scene) { s.node("a1'").SiblingIndex = 1 }, "siblings"},
		{"siblings in the wrong order", func(s *scene) {
			s.message("a1'").sentAt = s.message("a1").ackedAt.Add(time.Millisecond)
			s.node("a1").SiblingIndex, s.node("a1'").SiblingIndex = 2, 1
		}, "siblings"},
		{"a pruned message is there", func(s *scene) { s.prune("a2", acknowledged) }, "came back"},
		{"a message below a pruned one is there", func(s *scene) { s.prune("u2", acknowledged) }, "came back, came back"},
		{"a prune that happened", func(s *scene) {
			s.prune("u2", acknowledged)
			s.hide("u2", "a2", "sum")
			s.tree.HeadID = s.id["a1'"]
		}, ""},
		{"a prune without an answer that happened", func(s *scene) {
			s.prune("u2", unknown)
			s.hide("u2", "a2", "sum")
			s.tree.HeadID = s.id["a1'"]
		}, ""},
		{"a prune without an answer that didn't", func(s *scene) { s.prune("u2", unknown) }, ""},
		{"a prune without an answer that took half", func(s *scene) { s.prune("u2", unknown); s.hide("a2"); s.tree.HeadID = s.id["u2"] }, "lost"},
		{"an append without an answer that happened", func(s *scene) {
			s.send("maybe", "a2", "user")
			s.message("maybe").state = unknown
			s.show("maybe")
		}, ""},
		{"an append without an answer that didn't", func(s *scene) {
			s.send("maybe", "a2", "user")
			s.message("maybe").state = unknown
		}, ""},
		{"half of a chain", func(s *scene) {
			s.send("c1", "a2", "user")
			s.send("c2", "c1", "assistant")
			for _, name := range []string{"c1", "c2"} {
				s.message(name).chain, s.message(name).state = 1, unknown
			}
			s.show("c1")
		}, "torn"},
		{"the cutoff isn't on the anchor's path", func(s *scene) { s.node("sum").Cutoff = s.id["a1'"] }, "summary"},
		{"a kept message isn't on the anchor's path", func(s *scene) { s.node("sum").Kept = []uuid.UUID{s.id["a1'"]} }, "summary"},
		{"the active head isn't there", func(s *scene) { s.tree.HeadID = uuid.New() }, "head"},
		{"there is no active head", func(s *scene) { s.tree.HeadID = uuid.Nil }, "head"},
		{"the active head is a summary", func(s *scene) { s.tree.HeadID = s.id["sum"] }, "head"},
		{"an answer that nobody has seen", func(s *scene) { s.unseen("u2") }, ""},
		{"an answer to another message", func(s *scene) { s.unseen("a1'") }, "changed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			test.change(s)
			found := checkTree(s.c, s.tree, s.marks)
			if got := kinds(found); got != test.want {
				t.Errorf("found %q, want %q: %v", got, test.want, found)
			}
		})
	}
}

// unseen stores an answer below u2 of whose events no client had any, and that
// the model gave to a message.
func (s *scene) unseen(to string) {
	m := &message{id: uuid.New(), parent: s.id["u2"], role: "assistant", answer: true}
	s.c.add(m)
	m.state = unknown
	s.id["unseen"] = m.id
	_, m.content = s.marks.add(s.message(to).mark, "an answer", true)
	s.show("unseen")
	m.content = ""
}

// What was refused by one check must not appear by the next.
func TestChecksRemember(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.send("late", "a2", "user")
	s.message("late").state = unknown
	if found := checkTree(s.c, s.tree, s.marks); len(found) > 0 {
		t.Fatal(found)
	}
	s.show("late")
	if got := kinds(checkTree(s.c, s.tree, s.marks)); got != "invented" {
		t.Errorf("found %q", got)
	}
}

func TestLedgerOnTheWay(t *testing.T) {
	t.Parallel()
	t.Run("taken under a pruned message", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.prune("a1", acknowledged)
		time.Sleep(time.Millisecond)
		s.send("u3", "a2", "user")
		if wrong := s.c.acknowledge(s.message("u3")); wrong == "" {
			t.Error("nothing found")
		}
	})
	t.Run("taken while a message is being pruned", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.send("u3", "a2", "user")
		s.prune("a1", acknowledged)
		if wrong := s.c.acknowledge(s.message("u3")); wrong != "" {
			t.Error(wrong)
		}
	})
	t.Run("refused for want of a parent that nobody pruned", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.send("u3", "a2", "user")
		if wrong := s.c.refuse(s.message("u3")); wrong == "" {
			t.Error("nothing found")
		}
	})
	t.Run("refused for want of a parent that was pruned", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.prune("a1", unknown)
		s.send("u3", "a2", "user")
		if wrong := s.c.refuse(s.message("u3")); wrong != "" {
			t.Error(wrong)
		}
	})
	t.Run("sent twice and then refused", func(t *testing.T) {
		t.Parallel()
		s := newScene()
		s.prune("a1", unknown)
		s.send("u3", "a2", "user")
		s.message("u3").retried = true
		if s.c.refuse(s.message("u3")); s.message("u3").state != unknown {
			t.Error("the first attempt may have been stored")
		}
	})
}

func TestMarks(t *testing.T) {
	t.Parallel()
	ms := &marks{}
	a, text := ms.add(noMark, "one", false)
	b, _ := ms.add(a, "two", false)
	c, _ := ms.add(a, "three", false)
	if markOf(text) != a || markOf("one "+text) != noMark || markOf("[m12345678] x") != noMark || markOf("[m123") != noMark {
		t.Errorf("marks of %q and others", text)
	}
	if got := marksIn(fmt.Sprintf("x %v, [%v] m12345678 xm1000000 m100000 %v", b, a, b)); fmt.Sprint(got) != fmt.Sprint([]mark{b, a}) {
		t.Errorf("found %v", got)
	}
	if got := ms.onOnePath([]mark{a, b}); len(got) > 0 {
		t.Errorf("strangers %v", got)
	}
	if got := ms.onOnePath([]mark{a, b, c}); len(got) != 1 {
		t.Errorf("strangers %v, want one of two siblings", got)
	}
	n := naming{folded: []mark{a, b}, seen: []mark{c}, gaps: true}
	if got := readNaming("around " + n.String() + " it"); fmt.Sprint(got.folded, got.seen, got.gaps, got.ours) != fmt.Sprint(n.folded, n.seen, true, true) {
		t.Errorf("read %+v of %q", got, n)
	}
	whole := naming{folded: []mark{a}}.String()
	if got := readPrior("The summary so far.\n\n<coppice-prior-x>\n| " + whole + "\n</coppice-prior-x>"); !got.ours || got.gaps {
		t.Errorf("read %+v of a prior summary", got)
	}
	if got := readPrior("The summary so far.\n\n<coppice-prior-x>\n| Extract of an earlier summary.\n| - " + whole + "\n| - more\n</coppice-prior-x>"); !got.gaps {
		t.Errorf("read %+v of an extract that quotes a summary", got)
	}
	if got := readNaming("an extract with " + c.String()); got.ours || !got.gaps || len(got.seen) != 1 {
		t.Errorf("read %+v", got)
	}
}

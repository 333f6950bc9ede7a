package torture

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"
)

func TestCheckPruned(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(s *scene, got *prunedAnswer)
		want   string
	}{
		{"nothing is wrong", func(*scene, *prunedAnswer) {}, ""},
		{"a message too few", func(_ *scene, got *prunedAnswer) { got.Messages-- }, "prune"},
		{"a message too many", func(_ *scene, got *prunedAnswer) { got.Messages++ }, "prune"},
		{"a message less, which another prune may have taken", func(s *scene, got *prunedAnswer) {
			s.prune("a2", unknown)
			got.Messages--
		}, ""},
		{"the head is in what was pruned", func(s *scene, got *prunedAnswer) { got.HeadID = s.id["a2"] }, "prune"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			got := prunedAnswer{Messages: 2, Summaries: 1, HeadID: s.id["a1'"]}
			test.change(s, &got)
			time.Sleep(time.Millisecond)
			least, most := s.c.pruneBounds(s.message("u2"), time.Now())
			if found := kinds(checkPruned(s.c, s.message("u2"), got, least, most)); found != test.want {
				t.Errorf("found %q, want %q", found, test.want)
			}
		})
	}
}

func TestCheckExactPrune(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		prune  string
		gone   []string
		head   string // as the answer and the tree say
		change func(got *prunedAnswer)
		want   int
	}{
		{"a leaf that is the head", "a2", []string{"a2"}, "u2", func(*prunedAnswer) {}, 0},
		{"a leaf that isn't the head", "a1'", []string{"a1'"}, "a2", func(*prunedAnswer) {}, 0},
		{"a subtree with a summary", "a1", []string{"a1", "u2", "a2", "sum"}, "a1'", func(got *prunedAnswer) { got.Summaries = 1 }, 0},
		{"a root", "s", []string{"s", "u1", "a1", "a1'", "u2", "a2", "sum"}, "", func(got *prunedAnswer) { got.Summaries = 1 }, 0},
		{"a message too few", "a1", []string{"a1", "u2", "a2", "sum"}, "a1'", func(got *prunedAnswer) { got.Summaries, got.Messages = 1, 2 }, 1},
		{"a summary too few", "a1", []string{"a1", "u2", "a2", "sum"}, "a1'", func(*prunedAnswer) {}, 1},
		{"the head lands elsewhere", "a2", []string{"a2"}, "a1'", func(*prunedAnswer) {}, 1},
		{"the head moves without need", "a1'", []string{"a1'"}, "u2", func(*prunedAnswer) {}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			before := s.tree
			s.hide(test.gone...)
			after := s.tree
			after.HeadID = s.id[test.head]
			got := prunedAnswer{HeadID: after.HeadID}
			for _, name := range test.gone {
				if name != "sum" {
					got.Messages++
				}
			}
			test.change(&got)
			if wrong := checkExactPrune(before, s.id[test.prune], got, after); len(wrong) != test.want {
				t.Errorf("found %q", wrong)
			}
		})
	}
}

func TestCheckBranches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(s *scene, leaves []shown) []shown
		want   string
	}{
		{"nothing is wrong", func(_ *scene, leaves []shown) []shown { return leaves }, ""},
		{"a leaf is missing", func(_ *scene, leaves []shown) []shown { return leaves[:1] }, "branches"},
		{"a message that is no leaf", func(s *scene, leaves []shown) []shown { return append(leaves, s.shown("s")) }, "branches, branches"}, // and it stands after an older one
		{"a leaf that isn't there", func(s *scene, leaves []shown) []shown { s.hide("a1'"); return leaves }, "branches"},
		{"the wrong order", func(_ *scene, leaves []shown) []shown { return []shown{leaves[1], leaves[0]} }, "branches"},
		{"another text", func(_ *scene, leaves []shown) []shown { leaves[0].Content = nil; return leaves }, "changed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			a1, a2 := s.shown("a1'"), s.shown("a2")
			a1.CreatedAt = a2.CreatedAt.Add(-time.Millisecond)
			if found := kinds(checkBranches(s.c, s.tree, test.change(s, []shown{a2, a1}))); found != test.want {
				t.Errorf("found %q, want %q", found, test.want)
			}
		})
	}
}

func TestCheckChildren(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(children []shown) []shown
		want   string
	}{
		{"nothing is wrong", func(children []shown) []shown { return children }, ""},
		{"one is missing", func(children []shown) []shown { return children[:1] }, "siblings, siblings"},
		{"the wrong order", func(children []shown) []shown { return []shown{children[1], children[0]} }, "siblings, siblings, siblings, siblings"},
		{"a wrong count", func(children []shown) []shown { children[0].Siblings.Count = 3; return children }, "siblings"},
		{"another pin", func(children []shown) []shown { children[1].Pinned = true; return children }, "changed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			if found := kinds(checkChildren(s.c, s.tree, s.message("u1"), test.change([]shown{s.shown("a1"), s.shown("a1'")}))); found != test.want {
				t.Errorf("found %q, want %q", found, test.want)
			}
		})
	}
}

// A summary applies below its anchor and nowhere else; the deepest anchor wins,
// and of two at one anchor the newest.
func TestApplicable(t *testing.T) {
	t.Parallel()
	s := newScene()
	add := func(name, anchor string, age time.Duration) {
		s.id[name] = uuid.New()
		s.tree.Data = append(s.tree.Data, node{ID: s.id[name], ParentID: s.id[anchor], Kind: "summary", Cutoff: s.id["u1"], CreatedAt: time.Now().Add(-age)})
	}
	s.node("sum").CreatedAt = time.Now()
	add("older", "u2", time.Minute)
	add("above", "a1", 0)
	for head, want := range map[string]string{"s": "", "u1": "", "a1'": "", "a1": "above", "u2": "sum", "a2": "sum"} {
		if got := applicable(s.tree, s.id[head]); got != s.id[want] {
			t.Errorf("at %s applies %s, want %q", head, got, want)
		}
	}
}

// exported is the export of a faultless server.
func (s *scene) exported() (lines []line) {
	lines = append(lines, line{
		Type: "conversation", ID: s.c.id, Title: s.c.title, Metadata: encoded(metadataOf(s.c.origin, s.c.title)), Settings: json.RawMessage(s.c.settings),
		HeadID: s.tree.HeadID, CreatedAt: time.Now(),
	})
	for _, n := range s.tree.Data {
		l := line{Type: n.Kind, ID: n.ID, ParentID: n.ParentID, CreatedAt: n.CreatedAt, Pinned: n.Pinned, Cutoff: n.Cutoff, Prior: n.Prior, Kept: n.Kept, Model: n.Model}
		if m := s.c.messages[n.ID]; m != nil {
			l.Body = encoded(map[string]any{"role": m.role, "content": m.content})
		}
		lines = append(lines, l)
	}
	return lines
}

func TestCheckExport(t *testing.T) {
	t.Parallel()
	const last, summary = 6, 7
	for _, test := range []struct {
		name   string
		change func(s *scene, lines []line) []line
		want   string
	}{
		{"nothing is wrong", func(_ *scene, lines []line) []line { return lines }, ""},
		{"nothing", func(*scene, []line) []line { return nil }, "export"},
		{"another title", func(_ *scene, lines []line) []line { lines[0].Title = "other"; return lines }, "changed"},
		{"another head", func(s *scene, lines []line) []line { lines[0].HeadID = s.id["u1"]; return lines }, "export"},
		{"a message is missing", func(_ *scene, lines []line) []line { return append(lines[:last:last], lines[summary]) }, "export"},
		{"the summary is missing", func(_ *scene, lines []line) []line { return lines[:summary] }, "export"},
		{"a summary that was saved since", func(s *scene, lines []line) []line { s.hide("sum"); return lines }, ""},
		{"a message twice", func(_ *scene, lines []line) []line { return append(lines, lines[last]) }, "export"},
		{"a message that was pruned", func(s *scene, lines []line) []line { s.hide("a2"); return lines }, "export"},
		{"another parent", func(s *scene, lines []line) []line { lines[last].ParentID = s.id["s"]; return lines }, "export"},
		{"another time", func(_ *scene, lines []line) []line { lines[last].CreatedAt = time.Now().Add(time.Second); return lines }, "export"},
		{"a pin is lost", func(s *scene, lines []line) []line { s.node("a2").Pinned = true; return lines }, "export"},
		{"another text", func(_ *scene, lines []line) []line {
			lines[last].Body = json.RawMessage(`{"role": "assistant", "content": "other"}`)
			return lines
		}, "export"},
		{"the metadata are lost", func(s *scene, lines []line) []line { s.message("a2").metadata = `{"n":1}`; return lines }, "export"},
		{"the metadata", func(s *scene, lines []line) []line {
			s.message("a2").metadata, lines[last].Metadata = `{"n":1}`, json.RawMessage(`{"n": 1}`)
			return lines
		}, ""},
		{"calls are lost", func(s *scene, lines []line) []line { s.message("a2").calls = []call{{ID: "x"}}; return lines }, "export"},
		{"a summary keeps less", func(_ *scene, lines []line) []line { lines[summary].Kept = nil; return lines }, "export"},
		{"a summary of another model", func(_ *scene, lines []line) []line { lines[summary].Model = "other"; return lines }, "export"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			s.c.has("torture 1")
			s.c.settings = `{}`
			found := checkExport(s.c, s.tree, test.change(s, s.exported()))
			if got := kinds(found); got != test.want {
				t.Errorf("found %q, want %q: %v", got, test.want, found)
			}
		})
	}
}

// fork is the tree of a faultless fork of a branch, with the branch's ids.
func (s *scene) fork(names ...string) (path []uuid.UUID, tree treeAnswer) {
	copies := map[uuid.UUID]uuid.UUID{}
	for i, name := range names {
		path = append(path, s.id[name])
		n := *s.node(name)
		copies[n.ID] = uuid.New()
		n.ID, n.ParentID, n.Depth = copies[n.ID], copies[n.ParentID], i
		tree.Data = append(tree.Data, n)
	}
	for _, n := range s.tree.Data {
		if n.Kind == "summary" && copies[n.ParentID] != uuid.Nil {
			n.ID, n.ParentID, n.Cutoff = uuid.New(), copies[n.ParentID], copies[n.Cutoff]
			kept := make([]uuid.UUID, len(n.Kept))
			for i, id := range n.Kept {
				kept[i] = copies[id]
			}
			n.Kept = kept
			tree.Data = append(tree.Data, n)
		}
	}
	return path, tree
}

func TestCheckFork(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		change func(summary *node, tree *treeAnswer)
		want   int
	}{
		{"nothing is wrong", func(*node, *treeAnswer) {}, 0},
		{"the summary is missing", func(_ *node, tree *treeAnswer) { tree.Data = tree.Data[:5] }, 1},
		{"it hangs elsewhere", func(n *node, tree *treeAnswer) { n.ParentID = tree.Data[4].ID }, 1},
		{"it folds less", func(n *node, tree *treeAnswer) { n.Cutoff = tree.Data[1].ID }, 1},
		{"it keeps nothing", func(n *node, _ *treeAnswer) { n.Kept = nil }, 1},
		{"it keeps a message of the source", func(n *node, _ *treeAnswer) { n.Kept = []uuid.UUID{uuid.New()} }, 1},
		{"it is of another time", func(n *node, _ *treeAnswer) { n.CreatedAt = time.Now() }, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScene()
			path, tree := s.fork("s", "u1", "a1", "u2", "a2")
			test.change(&tree.Data[5], &tree)
			if compared, found := checkFork(s.tree, path, tree); compared != 1 || len(found) != test.want {
				t.Errorf("compared %d, found %v", compared, found)
			}
		})
	}
	s := newScene()
	path, tree := s.fork("s", "u1", "a1'")
	if compared, found := checkFork(s.tree, path, tree); compared != 0 || len(found) != 0 {
		t.Errorf("of another branch, compared %d, found %v", compared, found)
	}
}

// A fork's messages are those of the path, under the ids that its tree has.
func TestFill(t *testing.T) {
	t.Parallel()
	s := newScene()
	s.message("u1").pinned = true
	s.node("u1").Pinned = true
	_, tree := s.fork("s", "u1", "a1", "u2", "a2")
	for _, test := range []struct {
		name   string
		change func(tree *treeAnswer)
		want   string
	}{
		{"whole", func(*treeAnswer) {}, ""},
		{"a message is missing", func(tree *treeAnswer) {
			tree.Data = append(tree.Data[:4:4], tree.Data[5])
			tree.HeadID = tree.Data[3].ID
		}, "lost"},
		{"a message besides", func(tree *treeAnswer) {
			tree.Data = append(tree.Data, node{ID: uuid.New(), ParentID: tree.Data[4].ID, Depth: 5, Kind: "message", SiblingIndex: 1})
		}, "invented"},
		{"a pin is lost", func(tree *treeAnswer) { tree.Data[1].Pinned = false }, "changed"},
	} {
		fork := newConversation(uuid.New())
		fork.state = acknowledged
		copied := tree
		copied.Data = append([]node(nil), tree.Data...)
		copied.HeadID = copied.Data[4].ID
		test.change(&copied)
		fork.fill(&forkOrder{path: known(s.c.path(s.id["a2"]))}, copied)
		if found := kinds(checkTree(fork, copied, s.marks)); found != test.want {
			t.Errorf("%s: found %q, want %q", test.name, found, test.want)
		}
	}
}

package torture

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
)

func changeOf(sequence int, kind string, message, parent byte, messages int) event {
	return event{sequence, kind, fmt.Sprintf(`{"sequence":%d,"message_id":%q,"parent_id":%q,"head_id":%q,"messages":%d}`,
		sequence, uuid.UUID{15: message}, uuid.UUID{15: parent}, uuid.UUID{15: message}, messages)}
}

// A page takes events one after the other, and says what is wrong with their order.
func TestViewTakes(t *testing.T) {
	t.Parallel()
	started := func(id int, resumed bool) event {
		return event{id, "stream.started", fmt.Sprintf(`{"resumed":%t}`, resumed)}
	}
	for _, test := range []struct {
		name           string
		events         []event
		wrong, unclear int
		shows          int // messages
	}{
		{"one after the other", []event{started(7, false), changeOf(8, "messages.appended", 1, 0, 1), changeOf(9, "messages.appended", 2, 1, 1)}, 0, 1, 2},
		{"a gap", []event{started(7, false), changeOf(8, "messages.appended", 1, 0, 1), changeOf(10, "messages.appended", 2, 1, 1)}, 1, 1, 2},
		{"twice", []event{started(7, false), changeOf(8, "messages.appended", 1, 0, 1), changeOf(8, "messages.appended", 1, 0, 1)}, 1, 1, 1},
		{"read on", []event{started(7, false), changeOf(8, "messages.appended", 1, 0, 1), started(8, true), changeOf(9, "messages.appended", 2, 1, 1)}, 0, 1, 2},
		{"not read on", []event{started(7, false), started(9, false)}, 1, 2, 0},
		{"a path", []event{started(7, false), changeOf(8, "messages.appended", 3, 0, 3)}, 0, 2, 0},
		{"under what is gone", []event{started(7, false), changeOf(8, "messages.appended", 2, 1, 1)}, 0, 2, 0},
		{"a prune", []event{started(7, false), changeOf(8, "messages.appended", 1, 0, 1), changeOf(9, "messages.appended", 2, 1, 1), changeOf(10, "messages.pruned", 1, 0, 2)}, 0, 1, 0},
		{"another's change", []event{started(7, false), {8, "messages.pruned", `{"sequence":9}`}}, 1, 1, 0},
		{"what can't be read", []event{{7, "stream.started", `{`}}, 1, 1, 0},
	} {
		v := view{parents: map[uuid.UUID]uuid.UUID{}}
		wrong, unclear := 0, 0
		for _, e := range test.events {
			u, w := v.take(e)
			if w != "" {
				wrong++
			}
			if u {
				unclear++
			}
		}
		if wrong != test.wrong || unclear != test.unclear || len(v.parents) != test.shows {
			t.Errorf("%s: %d wrong, %d unclear, %d messages shown", test.name, wrong, unclear, len(v.parents))
		}
	}
}

// What a page shows is compared with the tree.
func TestViewCompares(t *testing.T) {
	t.Parallel()
	id := func(n byte) uuid.UUID { return uuid.UUID{15: n} }
	tree := treeAnswer{HeadID: id(2), Data: []node{{ID: id(1), Kind: "message"}, {ID: id(2), ParentID: id(1), Kind: "message"}, {ID: id(9), ParentID: id(2), Kind: "summary"}}}
	for name, test := range map[string]struct {
		v     view
		wrong bool
	}{
		"the same":      {view{0, map[uuid.UUID]uuid.UUID{id(1): {}, id(2): id(1)}, id(2)}, false},
		"one less":      {view{0, map[uuid.UUID]uuid.UUID{id(1): {}}, id(2)}, true},
		"one more":      {view{0, map[uuid.UUID]uuid.UUID{id(1): {}, id(2): id(1), id(3): id(1)}, id(2)}, true},
		"elsewhere":     {view{0, map[uuid.UUID]uuid.UUID{id(1): {}, id(2): {}}, id(2)}, true},
		"another head":  {view{0, map[uuid.UUID]uuid.UUID{id(1): {}, id(2): id(1)}, id(1)}, true},
		"before it was": {view{}, true},
	} {
		if wrong := test.v.compare(tree); (wrong != "") != test.wrong {
			t.Errorf("%s: %q", name, wrong)
		}
	}
}

// A link shows the whole of its branch, and nothing else.
func TestCheckShared(t *testing.T) {
	t.Parallel()
	c := newConversation(uuid.New())
	for name, test := range map[string]struct {
		path  []mark // what was said after a system message
		whole bool
		shown []mark
		found int
	}{
		"the branch":           {[]mark{1, 2}, true, []mark{1, 2}, 0},
		"without a message":    {[]mark{1, 2}, true, []mark{2}, 1},
		"with a stranger":      {[]mark{1, 2}, true, []mark{1, 2, 3}, 1},
		"with an unseen reply": {[]mark{1, 2}, false, []mark{1, 2, 3}, 0},
	} {
		if found := checkShared(c, append([]mark{9}, test.path...), test.path, test.whole, test.shown); len(found) != test.found {
			t.Errorf("%s: %v", name, found)
		}
	}
}

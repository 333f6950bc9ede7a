package torture

import (
	"slices"
	"testing"

	"github.com/google/uuid"
)

// TestCheckOpenAIChat holds that a chat which is stored as it was heard passes, and that
// each way in which it may differ is found.
func TestCheckOpenAIChat(t *testing.T) {
	t.Parallel()
	ids := make([]uuid.UUID, 6)
	for i := range ids {
		ids[i] = uuid.New()
	}
	one := &openaiTurn{mark: 1000001, answer: ids[1], state: acknowledged}
	two := &openaiTurn{before: one, mark: 1000003, answer: ids[3], state: acknowledged}
	lost := &openaiTurn{before: one, mark: 1000005, state: unknown}
	tree := []node{
		{ID: ids[0], Kind: "message", Role: "user", Preview: "[m1000001] Hazel"}, {ID: ids[1], ParentID: ids[0], Kind: "message", Role: "assistant", Preview: "[m1000002] Ash"},
		{ID: ids[2], ParentID: ids[1], Kind: "message", Role: "user", Preview: "[m1000003] Oak"}, {ID: ids[3], ParentID: ids[2], Kind: "message", Role: "assistant", Preview: "[m1000004] Elm"},
		{ID: ids[4], ParentID: ids[1], Kind: "message", Role: "user", Preview: "[m1000005] Yew"}, {ID: ids[5], ParentID: ids[1], Kind: "summary", Preview: "m1000001"},
	}
	chat := &openaiChat{conversation: uuid.New(), turns: []*openaiTurn{one, two, lost}}
	if found := chat.check(treeAnswer{Data: tree}); len(found) > 0 {
		t.Errorf("a chat as it was heard: %v", found)
	}
	for kind, change := range map[string]func(nodes []node) []node{
		"lost":     func(nodes []node) []node { return slices.Delete(nodes, 3, 4) },
		"parent":   func(nodes []node) []node { nodes[2].ParentID = ids[5]; return nodes },
		"doubled":  func(nodes []node) []node { twice := nodes[2]; twice.ID = uuid.New(); return append(nodes, twice) },
		"invented": func(nodes []node) []node { nodes[4].Preview = "[m1000009] Yew"; return nodes },
	} {
		found := chat.check(treeAnswer{Data: change(slices.Clone(tree))})
		if len(found) != 1 || found[0].kind != kind {
			t.Errorf("%s: %v", kind, found)
		}
	}
	two.often = true
	twice := tree[2]
	twice.ID = uuid.New()
	if found := chat.check(treeAnswer{Data: append(slices.Clone(tree), twice)}); len(found) > 0 {
		t.Errorf("a turn whose client gave an attempt up: %v", found)
	}
}

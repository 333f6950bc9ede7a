package transfer

import "fmt"

// A flat places messages that stand in a list: by the parent that each names,
// or below the one before it.
type flat struct {
	c    *Conversation
	last string          // id of the message before
	seen map[string]bool // ids so far
}

// place gives the turn of message m, the i-th of the list, its parent, and an
// id where it has none of its own.
func (f *flat) place(t *turn, i int, m object, parentMember string) {
	switch {
	case t.id == "":
		t.id = fmt.Sprintf("#%d", i+1)
		t.source["id"] = t.id
	case f.seen[t.id] && !m.has(parentMember):
		// Without parents to name it by, the id is only a name.
		was := t.id
		t.id = fmt.Sprintf("%s#%d", was, i+1)
		f.c.repaired(KindDuplicate, was, "another message has this id; this one's became %s", clip(t.id))
	}
	f.seen[t.id] = true
	if parent, there := m[parentMember]; there {
		id, _ := stringOf(parent)
		t.parent = keyOf(id)
		if isNoParent(t.parent) {
			t.parent = ""
		}
	} else {
		t.parent = f.last
	}
	f.last = t.id
}

// isNoParent tells whether the id is one by which programs say that a message
// is a root.
func isNoParent(id string) bool {
	return id == "00000000-0000-0000-0000-000000000000" || id == "00000000-0000-4000-8000-000000000000"
}

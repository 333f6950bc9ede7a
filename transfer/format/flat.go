package format

import (
	"fmt"
)

// A Flat places the messages of a list: below the parent that each names, or
// below the message before it.
type Flat struct {
	c    *Conversation
	last string          // id of the message before
	seen map[string]bool // ids so far
}

// Flat begins a list of messages.
func (c *Conversation) Flat() *Flat { return &Flat{c: c, seen: map[string]bool{}} }

// Place gives the turn of message m, the i-th of the list, its parent. A turn
// without an id gets one.
func (f *Flat) Place(t *Turn, i int, m Object, parentMember string) {
	switch {
	case t.ID == "":
		t.ID = fmt.Sprintf("#%d", i+1)
		t.Source["id"] = t.ID
	case f.seen[t.ID] && !m.Has(parentMember):
		// Without parents to name it by, the id is only a name.
		was := t.ID
		t.ID = fmt.Sprintf("%s#%d", was, i+1)
		f.c.Repaired(KindDuplicate, was, "another message has this id; this one's became %s", Clip(t.ID))
	}
	f.seen[t.ID] = true
	if parent, there := m[parentMember]; there {
		id, _ := StringOf(parent)
		t.Parent = KeyOf(id)
		if IsNoParent(t.Parent) {
			t.Parent = ""
		}
	} else {
		t.Parent = f.last
	}
	f.last = t.ID
}

// IsNoParent tells whether the id is one by which programs say that a message
// is a root.
func IsNoParent(id string) bool {
	return id == "00000000-0000-0000-0000-000000000000" || id == "00000000-0000-4000-8000-000000000000"
}

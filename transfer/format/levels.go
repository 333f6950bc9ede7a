package format

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
)

// A placed is one message of a tree in which each holds its replies.
type placed struct {
	Object Object // without the replies; nil where it is none, which is noted
	ID     string // for whoever reads the message to give
	Above  string // id of the message that holds it; "" for none
	InList bool   // nothing holds it
}

// Levels returns the messages of a nested tree, which is an object or a list of
// them, level by level. A message without an id is named by its position in that
// order.
func (c *Conversation) Levels(raw json.RawMessage, replies string) iter.Seq[*placed] {
	return func(yield func(*placed) bool) {
		all := nestedIn(raw, replies, func() bool { return c.More() && c.Room() })
		if c.in != nil {
			c.in.made -= len(all) // which count once they are messages
		}
		order := make([]int32, len(all))
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(all[a].depth, all[b].depth) })
		ids := make([]string, len(all))
		for _, i := range order {
			if !c.Node() {
				return
			}
			n := placed{InList: all[i].parent < 0}
			if !n.InList {
				n.Above = ids[all[i].parent]
			}
			if all[i].value[0] == '{' {
				n.Object = objectFrom(members(all[i].value, all[i].gap, all[i].gapEnd), MaxMembers)
			}
			if n.Object != nil {
				c.Look(n.Object)
			} else {
				c.LeftOut(KindContent, fmt.Sprintf("message %d", i+1), "the message is no object")
			}
			if !yield(&n) {
				return
			}
			ids[i] = n.ID
		}
	}
}

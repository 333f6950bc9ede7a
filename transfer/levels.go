package transfer

import (
	"cmp"
	"encoding/json"
	"iter"
	"slices"

	"github.com/coppice-chat/coppice/internal/rawjson"
)

// A placed is one message of a tree in which each holds its replies.
type placed struct {
	object object // without the replies; nil where it is no object
	id     string // for whoever reads the message to give
	above  string // id of the message that holds it; "" for none
	inList bool   // nothing holds it
}

// levels gives the messages of such a tree, an object or a list of them, level
// by level: the place of a message in that order stays its name where it has no
// id.
func (c *Conversation) levels(raw json.RawMessage, replies string) iter.Seq[*placed] {
	return func(yield func(*placed) bool) {
		all := rawjson.Tree(raw, replies, func() bool { return c.more() && c.room() })
		if c.in != nil {
			c.in.made -= len(all) // which count once they are messages
		}
		order := make([]int32, len(all))
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(all[a].Depth, all[b].Depth) })
		ids := make([]string, len(all))
		for _, i := range order {
			if !c.more() {
				return
			}
			n := placed{inList: all[i].Parent < 0}
			if !n.inList {
				n.above = ids[all[i].Parent]
			}
			if all[i].Value[0] == '{' {
				n.object = objectFrom(all[i].Members(), maxMembers)
			}
			if !yield(&n) {
				return
			}
			ids[i] = n.id
		}
	}
}

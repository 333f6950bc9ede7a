package format

import (
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// A Chain is what a client's list of messages appends.
type Chain struct {
	Messages []tree.NewMessage
	given    []int // of each, the place of the client's message that it is made of
	read     int   // messages of the client
	Converter
}

// Add reads the client's next message, as Parse does, from members of a checked
// request. Of several that it stands for, the last
// has what n says, and the ids of the others derive from its id.
func (c *Chain) Add(n tree.NewMessage, members []chat.Member) error {
	size := len("{}")
	for _, m := range members {
		size += len(m.Name) + len(m.Value) + len(`"":,`)
	}
	raw := chat.AppendObject(make([]byte, 0, size), members)
	if err := chat.CheckString(raw, "message"); err != nil {
		return err
	}
	all, err := c.Parse(raw)
	for i, m := range all {
		one := n
		if i < len(all)-1 {
			if one = (tree.NewMessage{}); n.ID != uuid.Nil {
				one.ID = uuid.NewSHA1(n.ID, fmt.Appendf(nil, "message %d", i))
			}
		}
		switch one.Message = m; {
		case m.Role == tree.RoleAssistant && n.Reasoning != "": // what was thought before all that was said
			one.Reasoning, n.Reasoning = n.Reasoning, ""
		case m.Others == nil && m.Reasoning != "":
			one.Reasoning = m.Reasoning // which stood in the parts
		}
		c.Messages, c.given = append(c.Messages, one), append(c.given, c.read)
	}
	c.read++
	return err
}

// Given names a message in an error of package tree by its place in the client's list.
func (c *Chain) Given(err error) error {
	var i int
	if !fault.Refused(err) {
		return err
	}
	e := *fault.Of(err)
	if n, _ := fmt.Sscanf(e.Field, "messages[%d]", &i); n == 1 && i < len(c.given) {
		_, member, _ := strings.Cut(e.Field, "]")
		e.Field = fmt.Sprintf("messages[%d]%s", c.given[i], member)
	}
	return &e
}

package format

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
)

// A likeness is what the nodes of a conversation have in common.
type likeness struct {
	names map[string]bool // of their members
	nodes int
}

// idNames are the names under which programs keep the id of a message.
var idNames = []string{"id", "uuid", "messageId", "message_id", "requestId"}

// Look takes note of a node's members.
func (c *Conversation) Look(o Object) {
	l := &c.like
	if l.nodes++; l.nodes == 1 {
		l.names = make(map[string]bool, len(o))
		for name := range o {
			l.names[name] = true
		}
		return
	}
	maps.DeleteFunc(l.names, func(name string, _ bool) bool { _, there := o[name]; return !there })
}

// Strays notes what looks like the nodes and stands in valid values where the format reads
// none, as where a program calls a list by a new name. Each counts as a node, and one of
// several with the same id. whole says that the values hold the nodes that were read, too.
func (c *Conversation) Strays(whole bool, values ...json.RawMessage) {
	if len(c.like.names) < 2 {
		return
	}
	n, ids := 0, map[string]bool{}
	if whole {
		n = -c.like.nodes
	} else {
		for _, m := range c.Messages {
			ids[m.SourceID] = true
		}
	}
	for _, raw := range values {
		for id := range c.alike(raw) {
			if id == "" || !ids[id] {
				n++
			}
			ids[id] = true
		}
	}
	if n <= 0 {
		return
	}
	for range n {
		if !c.Node() {
			return
		}
		c.end(c.at, leftOut)
	}
	c.LeftOut(KindContent, "", "%s more that look like messages, and stand where none are read", Counted(n, "object"))
}

// alike gives the id of each object in a valid value that has most of the members that all
// nodes have, and two at least; "" of one without an id.
func (c *Conversation) alike(raw []byte) iter.Seq[string] {
	type open struct {
		isList  bool
		isValue bool   // what comes is a value, and no name
		has     int    // of the names
		id      string // that it has
		name    string // of the member that is being read
	}
	return func(yield func(string) bool) {
		stack := []open{{isList: true}}
		for i := 0; i < len(raw); {
			at := &stack[len(stack)-1]
			switch b := raw[i]; {
			case b == '{' || b == '[':
				stack = append(stack, open{isList: b == '['})
				i++
			case b == '}' || b == ']':
				if !at.isList && at.has >= max(2, len(c.like.names)/2+1) && !yield(at.id) {
					return
				}
				stack = stack[:len(stack)-1]
				i++
			case isBetween(b):
				if b == ':' || b == ',' {
					at.isValue = b == ':'
				}
				i++
			default:
				end := endOf(raw, i)
				switch {
				case at.isList:
				case !at.isValue:
					if at.name = nameOf(raw[i:end]); c.like.names[at.name] {
						at.has++
					}
				case at.id == "" && slices.Contains(idNames, at.name):
					at.id = KeyOf(Object{"id": raw[i:end]}.ID("id"))
				}
				i = end
			}
		}
	}
}

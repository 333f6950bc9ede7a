package transfer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/tree"
)

// ChatGPT data exports: an array of conversations, each with a mapping from
// node ids to nodes.

// Format reads ChatGPT's data exports.
type formatChatGPT struct{}

// Name implements format.Format.
func (formatChatGPT) Name() string { return "chatgpt" }

// Marks implements format.Format.
func (formatChatGPT) Marks() []string {
	return []string{"mapping", "current_node", "conversation_id", "create_time", "update_time"}
}

// Recognizes implements format.Format.
func (formatChatGPT) Recognizes(s shape) bool {
	return s.is("mapping", "{") || s.has("create_time", "conversation_id") || s.has("create_time", "current_node")
}

// Parse implements format.Format.
func (formatChatGPT) Parse(in *input, emit func(Conversation) error) error {
	return eachElement(in, func(place string, raw json.RawMessage) error {
		c := in.begin(len(raw))
		o := objectOf(raw)
		if o == nil {
			in.note(Note{LeftOut, KindConversation, "", place, "it is no object, so no conversation"})
			return nil
		}
		c.readTitle(o["title"])
		if c.SourceID = o.key("conversation_id"); c.SourceID == "" {
			c.SourceID = o.key("id")
		}
		if m := o["mapping"]; len(m) == 0 || m[0] != '{' {
			in.note(Note{LeftOut, KindConversation, c.name(), place, "the conversation has no mapping, so no messages"})
			return nil
		}
		if c.SourceID == "" {
			c.SourceID = contentID("chatgpt", c.Title, string(o["create_time"]))
			c.repaired(KindConversation, "", "it has no id; one was made from title and time")
		}
		c.readChatGPT(o)
		return emit(c)
	})
}

func (c *Conversation) readChatGPT(o object) {
	var sound bool
	if c.CreatedAt, sound = o.time("create_time"); !sound {
		c.repaired(KindTime, "", "create_time %s can't be read", clipRaw(o["create_time"]))
	}
	c.Metadata = source{"format": "chatgpt", "id": c.SourceID}.
		copy(o, "update_time", "default_model_slug", "gizmo_id", "conversation_template_id", "is_archived", "is_starred", "conversation_origin", "voice").
		metadata()
	if c.HeadID = o.key("current_node"); c.HeadID == "" {
		c.repaired(KindHead, "", "it has no current_node; the newest leaf became the active head")
	}
	g := chatgptGraph{c: c, byID: map[string]*chatgptNode{}}
	for m := range membersOf(o["mapping"]) {
		if !c.more() || !c.roomFor(2) {
			return
		}
		g.add(m)
	}
	for _, n := range g.nodes {
		if up := n.above(&g); up != nil {
			up.replies++
		}
	}
	for _, n := range g.inTreeOrder() {
		if !c.more() {
			return
		}
		g.read(n)
	}
	c.Messages = make([]Message, 0, len(g.nodes))
	for i, n := range g.nodes {
		c.Messages = append(c.Messages, n.message())
		g.nodes[i] = nil
		delete(g.byID, n.id)
		n.parts = nil // which an answer below would hold
		if n.call != nil {
			n.call = &toolCall{ID: n.call.ID}
		}
	}
}

// A chatgptGraph is the mapping of one conversation.
type chatgptGraph struct {
	c     *Conversation
	nodes []*chatgptNode
	byID  map[string]*chatgptNode
}

// maxSkipped is how many nodes above one are passed over.
const maxSkipped = 100

type chatgptNode struct {
	id, parent string
	raw        json.RawMessage // the node as it stands, with its message and children
	replies    int             // as they say themselves
	queued     bool            // as a child of its parent

	out      Message
	role     tree.Role
	said     object // the message, while it is read
	parts    []json.RawMessage
	source   source       // while the message is read
	call     *toolCall    // that the message makes
	answers  *chatgptNode // call that it answers
	skipped  bool         // left out: its children go to its parent
	thoughts []string     // of a skipped node, for the message after it
}

// add takes a node in, as the mapping has it.
func (g *chatgptGraph) add(m member) {
	n := &chatgptNode{id: keyOf(m.name)}
	sound, found := mendText(m.value)
	if found != "" {
		g.c.repaired(KindText, n.id, "%s replaced by U+FFFD", found)
	}
	if o := objectOf(sound); o == nil {
		g.c.leftOut(KindContent, n.id, "the node is no object")
		n.skipped = true
	} else {
		n.raw = sound
		if n.parent = o.key("parent"); g.byID[n.parent] != nil {
			n.parent = g.byID[n.parent].id // the same text, once in memory
		}
	}
	g.nodes = append(g.nodes, n)
	if g.byID[n.id] == nil {
		g.byID[n.id] = n
	}
}

// inTreeOrder gives the nodes parents first where the mapping allows, with
// siblings in the order of their parent's children, and leaves them so.
func (g *chatgptGraph) inTreeOrder() []*chatgptNode {
	ordered := make([]*chatgptNode, 0, len(g.nodes))
	seen := map[*chatgptNode]bool{}
	visit := func(start *chatgptNode) {
		waiting := []*chatgptNode{start}
		for len(waiting) > 0 {
			n := waiting[len(waiting)-1]
			waiting = waiting[:len(waiting)-1]
			if seen[n] {
				continue
			}
			seen[n] = true
			ordered = append(ordered, n)
			below := len(waiting)
			for _, raw := range objectOf(n.raw).elements("children") {
				id, _ := stringOf(raw)
				if child := g.byID[keyOf(id)]; child != nil && child.parent == n.id && !child.queued {
					child.queued = true
					waiting = append(waiting, child)
				}
			}
			slices.Reverse(waiting[below:])
		}
	}
	for _, n := range g.nodes {
		if g.byID[n.parent] == nil {
			visit(n)
		}
	}
	for _, n := range g.nodes { // on a cycle, or not among the children of its parent
		visit(n)
	}
	g.nodes = ordered
	return ordered
}

// read makes a message of a node whose parent has been read.
func (g *chatgptGraph) read(n *chatgptNode) {
	n.out = Message{SourceID: n.id, ParentID: n.parent}
	n.said, n.source = objectOf(n.raw).object("message"), source{"id": n.id}
	defer func() {
		n.out.Metadata = n.source.metadata()
		n.said, n.source, n.raw = nil, nil, nil
	}()
	if n.said == nil {
		if !n.skipped {
			g.c.leftOut(KindEmpty, n.id, "a node without a message")
			n.skipped = true
		}
		return
	}
	at, sound := n.said.time("create_time")
	if !sound {
		g.c.repaired(KindTime, n.id, "create_time %s can't be read", clipRaw(n.said["create_time"]))
	}
	n.out.CreatedAt = at
	author, meta := n.said.object("author"), n.said.object("metadata")
	n.role = tree.Role(author.str("role"))
	g.describe(n, author, meta)
	g.content(n, n.said.object("content"), meta)
	if n.skipped {
		return
	}
	switch n.role {
	case tree.RoleAssistant:
		if to := n.said.str("recipient"); to != "" && to != "all" {
			n.makeCall(to)
		}
	case tree.RoleTool:
		g.answer(n)
	}
	if len(n.parts) == 0 && n.call == nil && n.role != tree.RoleTool {
		g.c.leftOut(KindEmpty, n.id, "%s", emptyDetail(n))
		n.skipped = true
		return
	}
	n.source.put("thoughts", g.thoughtsAbove(n))
}

func emptyDetail(n *chatgptNode) string {
	if n.source["hidden"] == true {
		return fmt.Sprintf("a hidden %s message without text", n.role)
	}
	return fmt.Sprintf("a %s message without text", n.role)
}

// above is the node's parent; nil for none.
func (n *chatgptNode) above(g *chatgptGraph) *chatgptNode { return g.byID[n.parent] }

// thoughtsAbove gives what the model thought right before the message.
func (g *chatgptGraph) thoughtsAbove(n *chatgptNode) (thoughts []string) {
	up := n.above(g)
	for range maxSkipped {
		if up == nil || !up.skipped {
			break
		}
		thoughts = append(slices.Clone(up.thoughts), thoughts...)
		up = up.above(g)
	}
	return thoughts
}

// describe keeps what the export says of the message beside its content.
func (g *chatgptGraph) describe(n *chatgptNode, author, meta object) {
	n.source.put("model", meta.str("model_slug")).put("hidden", meta.flag("is_visually_hidden_from_conversation")).
		put("author", author.str("name")).copy(meta, "attachments", "citations", "gizmo_id").
		copy(n.said, "channel")
	if weight := n.said["weight"]; n.said.has("weight") && !slices.Contains([]string{"1", "1.0"}, string(weight)) {
		n.source.put("weight", weight)
	}
	if finish := meta.object("finish_details").str("type"); finish != "stop" && finish != "unknown" {
		n.source.put("finish", finish)
	}
	if status := n.said.str("status"); status != "finished_successfully" {
		n.source.put("status", status)
	}
}

// makeCall makes a call of what the assistant sent to a tool.
func (n *chatgptNode) makeCall(recipient string) {
	n.source.put("recipient", recipient)
	text := make([]string, 0, len(n.parts))
	for _, raw := range n.parts {
		var p part
		_ = json.Unmarshal(raw, &p) // a part as content made it
		text = append(text, p.Text)
	}
	call := newToolCall(callID(n.id), recipient, encode(strings.Join(text, "\n")))
	n.call, n.parts = &call, nil
}

// answer finds the call that a tool's message answers: the one right above it,
// with nothing but left out nodes between. A second answer to the same call is
// joined to the first, where that has no other branch below it.
func (g *chatgptGraph) answer(n *chatgptNode) {
	up, alone := n.above(g), true
	for range maxSkipped {
		if up == nil {
			return
		}
		alone = alone && up.replies == 1
		if !up.skipped {
			break
		}
		up = up.above(g)
	}
	switch {
	case up == nil || up.skipped:
	case up.call != nil:
		n.answers = up
	case up.answers != nil && alone:
		up.parts = append(up.parts, n.parts...)
		g.c.repaired(KindTool, n.id, "a second answer to the same tool call was joined to the first, %s", clip(up.id))
		n.skipped = true
	}
}

// message writes the node.
func (n *chatgptNode) message() Message {
	if n.skipped {
		n.out.Metadata = nil
		return n.out
	}
	b := piece{role: n.role, parts: n.parts}
	if n.call != nil {
		b.calls = []toolCall{*n.call}
	}
	if n.answers != nil {
		b.answers = n.answers.call.ID
	}
	n.out.Body = b.body()
	return n.out
}

// Package chatgpt reads ChatGPT's data exports.
//
// ChatGPT data exports: an array of conversations, each with a mapping from
// node ids to nodes.
package chatgpt

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// Format reads ChatGPT's data exports.
type Format struct{}

func (Format) Name() string { return "chatgpt" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	return in.EachConversation(emit, func(c *format.Conversation, o format.Object, place string) string {
		c.ReadTitle(o["title"])
		if m := o["mapping"]; len(m) == 0 || m[0] != '{' {
			return "the conversation has no mapping, so no messages"
		}
		c.Identify(cmp.Or(o.Key("conversation_id"), o.Key("id")), "chatgpt", c.Title, string(o["create_time"]))
		readConversation(c, o)
		return ""
	})
}

func readConversation(c *format.Conversation, o format.Object) {
	c.CreatedAt = c.Time(o, "create_time", "")
	c.Metadata = format.Source{"format": "chatgpt", "id": c.SourceID}.
		Copy(o, "update_time", "default_model_slug", "gizmo_id", "conversation_template_id", "is_archived", "is_starred", "conversation_origin", "voice").
		Metadata()
	c.Order = tree.Order{Archived: o.Flag("is_archived"), Pinned: o.Flag("is_starred")}
	if c.HeadID = o.Key("current_node"); c.HeadID == "" {
		c.Repaired(format.KindHead, "", "it has no current_node; the newest leaf became the active head")
	}
	g := graph{c: c, byID: map[string]*node{}}
	for m := range format.MembersOf(o["mapping"]) {
		if !c.Node() || !c.RoomFor(2) {
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
		if !c.More() {
			return
		}
		g.read(n)
	}
	c.Messages = make([]format.Message, 0, len(g.nodes))
	for i, n := range g.nodes {
		c.GoTo(n.node)
		c.Add(n.message())
		g.nodes[i] = nil
		delete(g.byID, n.id)
		n.parts = nil // which an answer below would hold
		if n.call != nil {
			n.call = &chat.Call{ID: n.call.ID}
		}
	}
}

// A chatgptGraph is the mapping of one conversation.
type graph struct {
	c     *format.Conversation
	nodes []*node
	byID  map[string]*node
}

// maxSkipped is how many nodes above one are passed over.
const maxSkipped = 100

type node struct {
	node       int // its number in the file
	id, parent string
	raw        json.RawMessage // the node as it stands, with its message and children
	replies    int             // as they say themselves
	queued     bool            // as a child of its parent

	out      format.Message
	role     tree.Role
	said     format.Object // the message, while it is read
	parts    []chat.Part
	attached []string      // ids of files among them
	source   format.Source // while the message is read
	call     *chat.Call    // that the message makes
	answers  *node         // call that it answers
	skipped  bool          // left out: its children go to its parent
	thoughts []string      // of a skipped node, for the message after it
}

// add takes a node in, as the mapping has it.
func (g *graph) add(m format.Member) {
	n := &node{node: g.c.At(), id: format.KeyOf(m.Name)}
	sound, found := format.RepairText(m.Value)
	if found != "" {
		g.c.Repaired(format.KindText, n.id, "%s replaced by U+FFFD", found)
	}
	if o := format.ObjectOf(sound); o == nil {
		g.c.LeftOut(format.KindContent, n.id, "the node is no object")
		n.skipped = true
	} else {
		g.c.Look(o)
		n.raw = sound
		if n.parent = o.Key("parent"); g.byID[n.parent] != nil {
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
func (g *graph) inTreeOrder() []*node {
	ordered := make([]*node, 0, len(g.nodes))
	seen := map[*node]bool{}
	visit := func(start *node) {
		waiting := []*node{start}
		for len(waiting) > 0 {
			n := waiting[len(waiting)-1]
			waiting = waiting[:len(waiting)-1]
			if seen[n] {
				continue
			}
			seen[n] = true
			ordered = append(ordered, n)
			below := len(waiting)
			for _, raw := range format.ObjectOf(n.raw).Elements("children") {
				id, _ := format.StringOf(raw)
				if child := g.byID[format.KeyOf(id)]; child != nil && child.parent == n.id && !child.queued {
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
func (g *graph) read(n *node) {
	g.c.GoTo(n.node)
	n.out = format.Message{SourceID: n.id, ParentID: n.parent}
	n.said, n.source = format.ObjectOf(n.raw).Object("message"), format.Source{"id": n.id}
	defer func() {
		n.out.Metadata = n.source.Metadata()
		n.said, n.source, n.raw = nil, nil, nil
	}()
	if n.said == nil {
		switch {
		case n.skipped:
		case n.above(g) == nil: // the root of every chat
			g.c.Bare()
		default:
			g.c.LeftOut(format.KindEmpty, n.id, "a node without a message")
		}
		n.skipped = true
		return
	}
	at := g.c.Time(n.said, "create_time", n.id)
	n.out.CreatedAt = at
	author, meta := n.said.Object("author"), n.said.Object("metadata")
	n.role = tree.Role(author.Str("role"))
	g.describe(n, author, meta)
	g.content(n, n.said.Object("content"), meta)
	if n.skipped {
		return
	}
	g.files(n, meta)
	switch n.role {
	case tree.RoleAssistant:
		if to := n.said.Str("recipient"); to != "" && to != "all" {
			n.makeCall(to)
		}
	case tree.RoleTool:
		g.answer(n)
	}
	if len(n.parts) == 0 && n.call == nil && n.role != tree.RoleTool {
		// Every chat has hidden system messages of one empty text.
		if parts := format.Compacted(n.said.Object("content")["parts"]); n.source["hidden"] != true || n.role != tree.RoleSystem || parts != `[""]` {
			g.c.LeftOut(format.KindEmpty, n.id, "%s", emptyDetail(n))
		} else {
			g.c.Bare()
		}
		n.skipped = true
		return
	}
	if thoughts := g.thoughtsAbove(n); n.role == tree.RoleAssistant {
		n.out.Reasoning = strings.Join(thoughts, "\n\n")
	} else {
		n.source.Put("thoughts", thoughts)
	}
}

func emptyDetail(n *node) string {
	if n.source["hidden"] == true {
		return fmt.Sprintf("a hidden %s message without text", n.role)
	}
	return fmt.Sprintf("a %s message without text", n.role)
}

// above is the node's parent; nil for none.
func (n *node) above(g *graph) *node { return g.byID[n.parent] }

// thoughtsAbove gives what the model thought right before the message.
func (g *graph) thoughtsAbove(n *node) (thoughts []string) {
	up := n.above(g)
	for range maxSkipped {
		if up == nil || !up.skipped {
			break
		}
		for _, text := range up.thoughts {
			if !g.c.Steps(1 + len(text)) { // each reply gets a copy
				return nil
			}
		}
		thoughts = append(slices.Clone(up.thoughts), thoughts...)
		up = up.above(g)
	}
	return thoughts
}

// describe keeps what the export says of the message beside its content.
func (g *graph) describe(n *node, author, meta format.Object) {
	n.source.Put("model", meta.Str("model_slug")).Put("hidden", meta.Flag("is_visually_hidden_from_conversation")).
		Put("author", author.Str("name")).Copy(meta, "attachments", "citations", "gizmo_id").
		Copy(n.said, "channel")
	if weight := n.said["weight"]; n.said.Has("weight") && !slices.Contains([]string{"1", "1.0"}, string(weight)) {
		n.source.Put("weight", weight)
	}
	if finish := meta.Object("finish_details").Str("type"); finish != "stop" && finish != "unknown" {
		n.source.Put("finish", finish)
	}
	if status := n.said.Str("status"); status != "finished_successfully" {
		n.source.Put("status", status)
	}
}

// makeCall makes a call of what the assistant sent to a tool.
func (n *node) makeCall(recipient string) {
	n.source.Put("recipient", recipient)
	text := make([]string, 0, len(n.parts))
	for _, p := range n.parts {
		text = append(text, p.Text)
	}
	call := format.NewCall(format.CallID(n.id), recipient, chat.MustMarshal(strings.Join(text, "\n")))
	n.call, n.parts = &call, nil
}

// answer finds the call that a tool's message answers: the one right above it,
// with nothing but left out nodes between. A second answer to the same call is
// joined to the first, where that has no other branch below it.
func (g *graph) answer(n *node) {
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
		g.c.Merge()
		g.c.Repaired(format.KindTool, n.id, "a second answer to the same tool call was joined to the first, %s", format.Clip(up.id))
		n.skipped = true
	}
}

// message writes the node.
func (n *node) message() format.Message {
	if n.skipped {
		n.out.Metadata = nil
		return n.out
	}
	b := format.Piece{Role: n.role, Parts: n.parts}
	if n.call != nil {
		b.Calls = []chat.Call{*n.call}
	}
	if n.answers != nil {
		b.Answers = n.answers.call.ID
	}
	n.out.Body = b.Body()
	return n.out
}

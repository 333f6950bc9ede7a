package transfer

import (
	"encoding/json"
	"fmt"

	"github.com/coppice-chat/coppice/tree"
)

// OASST trees: JSONL, a tree of replies on each line.

// Format reads OpenAssistant's message trees.
type formatOASST struct{}

// Name implements format.Format.
func (formatOASST) Name() string { return "oasst" }

// Marks implements format.Format.
func (formatOASST) Marks() []string {
	return []string{"prompt", "message_tree_id", "tree_state", "message_id", "replies"}
}

// Recognizes implements format.Format.
func (formatOASST) Recognizes(s shape) bool {
	return s.has("prompt.message_id")
}

// Parse implements format.Format.
func (formatOASST) Parse(in *input, emit func(Conversation) error) error {
	return eachLine(in, func(place string, line []byte) error {
		if !json.Valid(line) {
			in.note(Note{LeftOut, KindSyntax, "", place, "the line is no JSON: " + syntaxError(line)})
			return nil
		}
		t := objectOf(line)
		if t.object("prompt") == nil {
			in.note(Note{LeftOut, KindConversation, "", place, "the line is no tree of messages: it has no prompt"})
			return nil
		}
		c := in.begin(len(line))
		if c.SourceID = t.key("message_tree_id"); c.SourceID == "" {
			c.SourceID = t.object("prompt").key("message_id")
		}
		c.readOASST(t)
		return emit(c)
	})
}

// readOASST takes the tree's messages, level by level. A reply's place says
// what its parent is; parent_id says it once more.
func (c *Conversation) readOASST(t object) {
	c.Metadata = source{"format": "oasst", "id": c.SourceID}.put("tree_state", t.str("tree_state")).metadata()
	for n := range c.levels(t["prompt"], "replies") {
		if n.object == nil {
			c.leftOut(KindContent, n.above, "a reply to it is no object")
			continue
		}
		if n.id = n.object.key("message_id"); n.id == "" {
			n.id = fmt.Sprintf("#%d", len(c.Messages)+1)
		}
		c.wrongType(n.object, n.id, '"', "message_id", "role", "lang", "model_name")
		c.wrongType(n.object, n.id, 't', "deleted", "synthetic")
		if !c.room() {
			return
		}
		c.Messages = append(c.Messages, c.oasstMessage(n.object, n.id, n.above))
	}
	if len(c.Messages) > 0 {
		c.Title = titleFrom(c.Messages[0].Body)
	}
}

// wrongType notes where one of the members is of another kind than it has to
// be: '"' for a string, 't' for true or false.
func (c *Conversation) wrongType(o object, place string, kind byte, names ...string) {
	what := map[byte]string{'"': "no string", 't': "neither true nor false"}[kind]
	for _, name := range names {
		if first := o[name]; o.has(name) && first[0] != kind && (kind != 't' || first[0] != 'f') {
			c.repaired(KindContent, place, "%s is %s; it counts as absent", name, what)
		}
	}
}

func (c *Conversation) oasstMessage(o object, id, parent string) Message {
	text, ok := c.text(o["text"], id)
	if !ok {
		text = string(o["text"])
	}
	role := map[string]tree.Role{"prompter": tree.RoleUser, "assistant": tree.RoleAssistant}[o.str("role")]
	if role == "" {
		role = tree.Role(o.str("role"))
	}
	at, sound := o.time("created_date")
	if !sound {
		c.repaired(KindTime, id, "created_date %s can't be read", clipRaw(o["created_date"]))
	}
	from := source{"id": id}.put("model", o.str("model_name")).put("lang", o.str("lang")).put("rank", o["rank"]).
		put("deleted", o.flag("deleted")).put("synthetic", o.flag("synthetic")).copy(o, "labels", "emojis")
	return Message{SourceID: id, ParentID: parent, Body: textBody(role, text), Metadata: from.metadata(), CreatedAt: at}
}

// Package oasst reads Open Assistant's message trees.
//
// OASST trees: JSONL, a tree of replies on each line.
package oasst

import (
	"encoding/json"
	"fmt"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

// Format reads OpenAssistant's message trees.
type Format struct{}

func (Format) Name() string { return "oasst" }

func (Format) Parse(in *format.Input, emit func(format.Conversation) error) error {
	return in.EachLine(func(place string, line []byte) error {
		if !json.Valid(line) {
			in.NoJSON(place)
			return nil
		}
		t := format.ObjectOf(line)
		if t.Object("prompt") == nil {
			return in.Foreign(format.KindConversation, place, line, "the line is no tree of messages: it has no prompt")
		}
		c := in.Begin(len(line))
		if c.SourceID = t.Key("message_tree_id"); c.SourceID == "" {
			c.SourceID = t.Object("prompt").Key("message_id")
		}
		readTree(&c, t)
		c.Strays(true, line)
		return emit(c)
	})
}

// readOASST takes the tree's messages, level by level. A reply's place says
// what its parent is; parent_id says it once more.
func readTree(c *format.Conversation, t format.Object) {
	c.Metadata = format.Source{"format": "oasst", "id": c.SourceID}.Put("tree_state", t.Str("tree_state")).Metadata()
	for n := range c.Levels(t["prompt"], "replies") {
		if n.Object == nil {
			continue
		}
		if n.ID = n.Object.Key("message_id"); n.ID == "" {
			n.ID = fmt.Sprintf("#%d", len(c.Messages)+1)
		}
		noteWrongType(c, n.Object, n.ID, '"', "message_id", "role", "lang", "model_name")
		noteWrongType(c, n.Object, n.ID, 't', "deleted", "synthetic")
		if !c.Room() {
			return
		}
		c.Add(messageOf(c, n.Object, n.ID, n.Above))
	}
	if len(c.Messages) > 0 {
		c.Title = format.TitleOf(chat.Read(c.Messages[0].Body).Text())
	}
}

// wrongType notes where one of the members is of another kind than it has to
// be: '"' for a string, 't' for true or false.
func noteWrongType(c *format.Conversation, o format.Object, place string, kind byte, names ...string) {
	what := map[byte]string{'"': "no string", 't': "neither true nor false"}[kind]
	for _, name := range names {
		if first := o[name]; o.Has(name) && first[0] != kind && (kind != 't' || first[0] != 'f') {
			c.Repaired(format.KindContent, place, "%s is %s; it counts as absent", name, what)
		}
	}
}

func messageOf(c *format.Conversation, o format.Object, id, parent string) format.Message {
	text, ok := c.Text(o["text"], id)
	if !ok {
		text = string(o["text"])
	}
	role := map[string]tree.Role{"prompter": tree.RoleUser, "assistant": tree.RoleAssistant}[o.Str("role")]
	if role == "" {
		role = tree.Role(o.Str("role"))
	}
	at := c.Time(o, "created_date", id)
	from := format.Source{"id": id}.Put("model", o.Str("model_name")).Put("lang", o.Str("lang")).Put("rank", o["rank"]).
		Put("deleted", o.Flag("deleted")).Put("synthetic", o.Flag("synthetic")).Copy(o, "labels", "emojis")
	return format.Message{SourceID: id, ParentID: parent, Body: format.TextBody(role, text), Metadata: from.Metadata(), CreatedAt: at}
}

package transfer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/coppice-chat/coppice/tree"
)

// OASST trees: JSONL, a tree of replies on each line.

func detectOASST(s shape) bool {
	return s.has("prompt.message_id")
}

type oasstTree struct {
	ID     string        `json:"message_tree_id"`
	State  string        `json:"tree_state"`
	Prompt *oasstMessage `json:"prompt"`
}

// An oasstMessage is decoded with all its replies at once: as a value each it
// would be scanned once for every level above it.
type oasstMessage struct {
	ID        string          `json:"message_id"`
	CreatedAt json.RawMessage `json:"created_date"`
	Text      json.RawMessage `json:"text"`
	Role      string          `json:"role"`
	Lang      string          `json:"lang"`
	Model     string          `json:"model_name"`
	Deleted   bool            `json:"deleted"`
	Synthetic bool            `json:"synthetic"`
	Rank      json.RawMessage `json:"rank"`
	Labels    json.RawMessage `json:"labels"`
	Emojis    json.RawMessage `json:"emojis"`
	Replies   []*oasstMessage `json:"replies"`
}

func parseOASST(r io.Reader, emit func(Conversation) error, note func(Note)) error {
	return eachLine(r, func(place string, line []byte) error {
		var t oasstTree
		var wrongType *json.UnmarshalTypeError
		err := json.Unmarshal(line, &t)
		switch {
		case err != nil && !errors.As(err, &wrongType):
			note(Note{LeftOut, KindSyntax, "", place, "the line is no JSON: " + err.Error()})
			return nil
		case t.Prompt == nil:
			note(Note{LeftOut, KindConversation, "", place, "the line is no tree of messages: it has no prompt"})
			return nil
		}
		c := Conversation{SourceID: t.ID}
		if c.SourceID == "" {
			c.SourceID = t.Prompt.ID
		}
		if wrongType != nil { // everything else was decoded
			c.wrongType(place, wrongType)
		}
		t.fill(&c)
		return emit(c)
	})
}

// fill puts the tree's messages into c, level by level.
func (t *oasstTree) fill(c *Conversation) {
	c.Metadata = source{"format": "oasst", "id": c.SourceID}.put("tree_state", t.State).metadata()
	type below struct {
		message *oasstMessage
		parent  string
	}
	// A reply's place says what its parent is; parent_id says it once more.
	waiting := []below{{t.Prompt, ""}}
	for len(waiting) > 0 {
		m, parent := waiting[0].message, waiting[0].parent
		waiting = waiting[1:]
		if m == nil {
			c.leftOut(KindContent, parent, "a reply to it is null")
			continue
		}
		if m.ID == "" {
			m.ID = fmt.Sprintf("#%d", len(c.Messages)+1)
		}
		c.Messages = append(c.Messages, m.message(c, parent))
		for _, reply := range m.Replies {
			waiting = append(waiting, below{reply, m.ID})
		}
	}
	c.Title = titleFrom(c.Messages[0].Body)
}

func (m *oasstMessage) message(c *Conversation, parent string) Message {
	var text string
	if c.decode(m.Text, m.ID, &text) != nil {
		text = string(m.Text)
	}
	role := map[string]tree.Role{"prompter": tree.RoleUser, "assistant": tree.RoleAssistant}[m.Role]
	if role == "" {
		role = tree.Role(m.Role)
	}
	at, sound := timeOf(m.CreatedAt)
	if !sound {
		c.repaired(KindTime, m.ID, "created_date %s can't be read", clip(string(m.CreatedAt)))
	}
	from := source{"id": m.ID}.put("model", m.Model).put("lang", m.Lang).put("rank", m.Rank).
		put("deleted", m.Deleted).put("synthetic", m.Synthetic).put("labels", m.Labels).put("emojis", m.Emojis)
	return Message{SourceID: m.ID, ParentID: parent, Body: textBody(role, text), Metadata: from.metadata(), CreatedAt: at}
}

package llamacpp

import (
	"bufio"
	"io"
	"iter"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

type conversation struct {
	ID           uuid.UUID `json:"id"`
	Name         string    `json:"name"`
	LastModified int64     `json:"lastModified"`
	CurrNode     uuid.UUID `json:"currNode"`
}

type message struct {
	ID         uuid.UUID   `json:"id"`
	ConvID     uuid.UUID   `json:"convId"`
	Type       string      `json:"type"`
	Timestamp  int64       `json:"timestamp"`
	Role       chat.Role   `json:"role"`
	Content    string      `json:"content"`
	Parent     *uuid.UUID  `json:"parent"`
	Children   []uuid.UUID `json:"children"`
	Reasoning  string      `json:"reasoningContent,omitempty"`
	ToolCalls  string      `json:"toolCalls,omitempty"`
	ToolCallID string      `json:"toolCallId,omitempty"`
}

// Write writes a conversation with every branch as {"conv", "messages"}, which every
// version of llama.cpp's page reads. The page wants a message's children beside it, so
// outline, which has every node too, is read first, and the ids are held. One body is
// held at a time. Summaries have no place there.
func Write(w io.Writer, c tree.Conversation, outline iter.Seq2[tree.Node, error], nodes iter.Seq2[tree.BundleNode, error]) (err error) {
	defer fault.Wrap(&err, "llamacpp.Write(%s)", c.ID)
	children := map[uuid.UUID][]uuid.UUID{c.ID: {}} // the conversation's id is also its root's
	above := func(parent uuid.UUID) uuid.UUID {
		if parent == uuid.Nil {
			return c.ID
		}
		return parent
	}
	for n, err := range outline {
		if err != nil {
			return err
		}
		if n.Kind == tree.KindMessage {
			parent := above(n.ParentID)
			children[parent] = append(children[parent], n.ID)
			children[n.ID] = []uuid.UUID{}
		}
	}
	out := bufio.NewWriter(w)
	out.WriteString(`{"conv":`)
	out.Write(chat.MustMarshal(conversation{c.ID, c.Title, c.UpdatedAt.UnixMilli(), above(c.HeadID)}))
	out.WriteString(`,"messages":[`)
	out.Write(chat.MustMarshal(message{ID: c.ID, ConvID: c.ID, Type: "root", Timestamp: c.CreatedAt.UnixMilli(), Role: chat.System, Children: children[c.ID]}))
	for n, err := range nodes {
		if err != nil {
			return err
		}
		below, known := children[n.ID]
		if !known { // a summary, or a message since the outline
			continue
		}
		parent := above(n.ParentID)
		said := chat.Read(n.Body)
		m := message{
			ID: n.ID, ConvID: c.ID, Type: "text", Timestamp: n.CreatedAt.UnixMilli(), Role: said.Role, Content: format.Shown(said),
			Parent: &parent, Children: below, Reasoning: n.Reasoning, ToolCallID: said.Answers(),
		}
		if said.Role == chat.Developer {
			m.Role = chat.System // the page knows no developer
		}
		if m.Role == chat.System {
			m.Type = "system"
		}
		if len(said.Calls) > 0 {
			m.ToolCalls = string(format.ObjectOf((&chat.Message{Role: chat.Assistant, Calls: said.Calls}).Encode())["tool_calls"])
		}
		out.WriteByte(',')
		out.Write(chat.MustMarshal(m))
	}
	out.WriteString("]}\n")
	return out.Flush()
}

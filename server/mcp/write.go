package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/tree"
)

func addWrites(t tools) {
	add(t, tool{name: "create_conversation", title: "Create a conversation", writes: true,
		description: "Makes a conversation without messages. With an id of your own the same call again gives the same conversation.",
	}, createConversation)
	add(t, tool{name: "append_messages", title: "Append messages", writes: true,
		description: "Appends messages below a message, each below the one before, and makes the last one the active head. Below a message that has others below it, that begins another branch; nothing is overwritten. With ids of your own the same call again adds nothing.",
	}, appendMessages)
	add(t, tool{name: "fork_branch", title: "Fork a branch", writes: true,
		description: "Copies the messages up to one, and the summaries that hold for them, into a new conversation.",
	}, forkBranch)
	add(t, tool{name: "compact_branch", title: "Compact a branch", writes: true, waits: true,
		description: "Folds the older part of a branch into a summary, so that its context takes fewer tokens, and tells how many messages and tokens that saved. No message is lost: recall and read_branch still find them. It may take as long as the model that writes the summary.",
	}, compactBranch)
	add(t, tool{name: "graft_branch", title: "Graft a branch", writes: true, waits: true,
		description: "Brings to a branch what another branch came to: appends one message with a summary of what that one said since the two parted, or with its messages word for word. The other branch stays as it is. Use it to try something aside and keep the result. It may take as long as the model that writes the summary.",
	}, graftBranch)
}

type CreateConversationArguments struct {
	ID    string `json:"id,omitempty" jsonschema:"a UUID of your own"`
	Title string `json:"title,omitempty"`
}

func createConversation(ctx context.Context, c *call, in CreateConversationArguments) (out Conversation, err error) {
	id, err := parseOptional(in.ID, "id")
	if err != nil {
		return out, err
	}
	conversation, _, err := c.Store.CreateConversation(ctx, tree.NewConversation{ID: id, Title: in.Title})
	if err != nil {
		return out, err
	}
	return conversationOf(conversation), nil
}

type AppendArguments struct {
	ConversationID string       `json:"conversation_id" jsonschema:"id of the conversation"`
	ParentID       string       `json:"parent_id" jsonschema:"id of the message to append below; active for the head of the active branch; root to begin the conversation, or another beginning of it"`
	Messages       []NewMessage `json:"messages" jsonschema:"in their order, at most 1,000"`
}

// A NewMessage is a chat-completions message to append.
type NewMessage struct {
	ID         string  `json:"id,omitempty" jsonschema:"a UUID of your own"`
	Role       string  `json:"role" jsonschema:"system, developer, user, assistant or tool"`
	Content    Content `json:"content,omitzero" jsonschema:"text, or a list of parts as in chat completions"`
	Name       string  `json:"name,omitempty" jsonschema:"tells speakers of one role apart"`
	ToolCalls  Calls   `json:"tool_calls,omitzero" jsonschema:"of an assistant's message, as in chat completions"`
	ToolCallID string  `json:"tool_call_id,omitempty" jsonschema:"the call that a tool's message answers"`
}

// Content and Calls are JSON that package chat reads.
type (
	Content struct{ json.RawMessage }
	Calls   struct{ json.RawMessage }
)

// addTo adds the message to those to append.
func (m NewMessage) addTo(c *format.Chain) error {
	id, err := parseOptional(m.ID, "id")
	if err != nil {
		return err
	}
	return c.Add(tree.NewMessage{ID: id}, []chat.Member{
		{Name: "role", Value: quoted(m.Role)}, {Name: "content", Value: m.Content.RawMessage}, {Name: "tool_calls", Value: m.ToolCalls.RawMessage},
		{Name: "tool_call_id", Value: quoted(m.ToolCallID)}, {Name: "name", Value: quoted(m.Name)},
	})
}

// quoted gives text as JSON, and nothing for none.
func quoted(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	out, _ := json.Marshal(text) // a string has no error
	return out
}

type Appended struct {
	HeadID   string   `json:"head_id" jsonschema:"the last message, which names the branch"`
	Created  bool     `json:"created" jsonschema:"false where all of it was there already"`
	Messages []string `json:"messages" jsonschema:"ids of the messages, in their order"`
	Tokens   int64    `json:"tokens" jsonschema:"of the whole branch"`
}

func appendMessages(ctx context.Context, c *call, in AppendArguments) (out Appended, err error) {
	id, err := parseID(in.ConversationID, "conversation_id")
	if err != nil {
		return out, err
	}
	var chain format.Chain
	for i, m := range in.Messages {
		if err := m.addTo(&chain); err != nil {
			return out, fault.At(err, fmt.Sprintf("messages[%d]", i))
		}
	}
	parent, options, err := place(in.ParentID)
	if err != nil {
		return out, err
	}
	stored, err := c.Store.AppendChain(ctx, id, parent, chain.Messages, options...)
	if err != nil {
		return out, chain.Given(err)
	}
	last := stored.Messages[len(stored.Messages)-1]
	out = Appended{HeadID: last.ID.String(), Created: stored.Created, Messages: []string{}, Tokens: last.PathTokens}
	for _, m := range stored.Messages {
		out.Messages = append(out.Messages, m.ID.String())
	}
	return out, nil
}

// place reads where to append; uuid.Nil is below no message. The active head is the
// one at the moment of the append.
func place(name string) (parent uuid.UUID, options []tree.AppendOption, err error) {
	switch name {
	case "root":
		return uuid.Nil, nil, nil
	case "active":
		return uuid.Nil, []tree.AppendOption{tree.AtHead()}, nil
	}
	parent, err = parseID(name, "parent_id")
	return parent, nil, err
}

type ForkArguments struct {
	ConversationID string `json:"conversation_id" jsonschema:"id of the conversation"`
	MessageID      string `json:"message_id" jsonschema:"the last message to copy; active for the head of the active branch"`
	Title          string `json:"title,omitempty" jsonschema:"of the new conversation; that of the source where it is left out"`
	Siblings       bool   `json:"siblings,omitempty" jsonschema:"true copies the other versions of these messages, too, with all below them"`
}

func forkBranch(ctx context.Context, c *call, in ForkArguments) (out Conversation, err error) {
	id, err := parseID(in.ConversationID, "conversation_id")
	if err != nil {
		return out, err
	}
	var message uuid.UUID
	if in.MessageID == "active" {
		message, err = c.Store.Head(ctx, id)
	} else {
		message, err = parseID(in.MessageID, "message_id")
	}
	if err != nil {
		return out, err
	}
	var options []tree.ForkOption
	if in.Siblings {
		options = append(options, tree.WithAlternates())
	}
	fork, _, err := c.Store.Fork(ctx, id, message, tree.NewConversation{Title: in.Title}, options...)
	if err != nil {
		return out, err
	}
	return conversationOf(fork), nil
}

type CompactArguments struct {
	Branch
	Instructions string `json:"instructions,omitempty" jsonschema:"what the summary should take care of"`
	KeepMessages *int   `json:"keep_messages,omitempty" jsonschema:"newest messages that stay verbatim, at least"`
}

type Compacted struct {
	Outcome        string `json:"outcome" jsonschema:"saved, nothing_to_do, no_gain, superseded, stale or failed"`
	Reason         string `json:"reason"`
	SummaryID      string `json:"summary_id,omitempty"`
	Model          string `json:"model,omitempty" jsonschema:"what wrote the summary"`
	FoldedMessages int    `json:"folded_messages" jsonschema:"that the summary newly replaces"`
	SavedMessages  int    `json:"saved_messages" jsonschema:"by which the context became shorter"`
	SavedTokens    int    `json:"saved_tokens"`
	ContextTokens  int    `json:"context_tokens" jsonschema:"of the branch's context now"`
}

func compactBranch(ctx context.Context, c *call, in CompactArguments) (out Compacted, err error) {
	id, head, err := in.parse()
	if err != nil {
		return out, err
	}
	instructions := &in.Instructions
	if in.Instructions == "" {
		instructions = nil
	}
	demand, err := summarize.NewDemand(in.KeepMessages, instructions, nil)
	if err != nil {
		return out, err
	}
	k, err := c.Contexts.Compact(ctx, id, head, summarize.TriggerRequest, demand)
	if err != nil {
		return out, err
	}
	out = Compacted{Outcome: string(k.Outcome), Reason: k.Reason, ContextTokens: k.TokensBefore}
	if k.Outcome == tree.OutcomeSaved {
		out.SummaryID, out.Model, out.FoldedMessages, out.ContextTokens = k.SummaryID.String(), k.Model, k.FoldedMessages, k.TokensAfter
		out.SavedMessages, out.SavedTokens = k.MessagesBefore-k.MessagesAfter, k.TokensBefore-k.TokensAfter
	}
	return out, nil
}

type GraftArguments struct {
	Branch
	FromHeadID   string `json:"from_head_id" jsonschema:"id of the message in which the other branch ends"`
	Include      string `json:"include,omitempty" jsonschema:"summary, which is the default, or messages"`
	Instructions string `json:"instructions,omitempty" jsonschema:"what the summary should take care of"`
	Text         string `json:"text,omitempty" jsonschema:"brings this text, and has none written"`
	ID           string `json:"id,omitempty" jsonschema:"a UUID of your own for the message"`
}

type GraftResult struct {
	Message Message `json:"message" jsonschema:"which is the head of the branch now"`
	Created bool    `json:"created" jsonschema:"false where it was there already"`
}

func graftBranch(ctx context.Context, c *call, in GraftArguments) (out GraftResult, err error) {
	id, head, err := in.parse()
	if err != nil {
		return out, err
	}
	message, err := parseOptional(in.ID, "id")
	if err != nil {
		return out, err
	}
	d := summarize.GraftDemand{Include: tree.Include(in.Include), Instructions: in.Instructions, Text: in.Text}
	if d.FromHeadID, err = parseID(in.FromHeadID, "from_head_id"); err != nil {
		return out, err
	}
	m, err := c.Contexts.Graft(ctx, id, head, message, d)
	if err != nil {
		return out, err
	}
	return GraftResult{messageOf(m.Message), m.Created}, nil
}

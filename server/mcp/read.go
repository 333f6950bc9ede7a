package mcp

import (
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

type ListConversationsArguments struct {
	Query    string `json:"query,omitempty" jsonschema:"words of the title or of messages"`
	Tag      string `json:"tag,omitempty" jsonschema:"only those that have it"`
	Archived bool   `json:"archived,omitempty" jsonschema:"those that are archived, instead of those that are not"`
	Listing
}

type Conversations struct {
	Conversations []Conversation `json:"conversations"`
	NextCursor    string         `json:"next_cursor,omitempty" jsonschema:"of the next page; none on the last one"`
}

type Conversation struct {
	ConversationID string   `json:"conversation_id"`
	Title          string   `json:"title"`
	Tags           []string `json:"tags,omitempty"`
	Pinned         bool     `json:"pinned,omitempty"`
	HeadID         string   `json:"head_id,omitempty" jsonschema:"of the active branch; none while there is no message"`
	CreatedAt      string   `json:"created_at"`
	UpdatedAt      string   `json:"updated_at" jsonschema:"when something was last said or pruned"`
}

func conversationOf(c tree.Conversation) Conversation {
	out := Conversation{ConversationID: c.ID.String(), Title: c.Title, Tags: c.Tags, Pinned: c.Pinned, CreatedAt: timeOf(c.CreatedAt), UpdatedAt: timeOf(c.UpdatedAt)}
	if c.HeadID != uuid.Nil {
		out.HeadID = c.HeadID.String()
	}
	return out
}

func listConversations(ctx context.Context, c *call, in ListConversationsArguments) (out Conversations, err error) {
	p, err := in.paging()
	if err != nil {
		return out, err
	}
	if in.Query != "" {
		leave, err := c.turn(ctx)
		if err != nil {
			return out, err
		}
		defer leave()
	}
	page, _, err := c.Search.Conversations(ctx, c.Store, tree.ConversationFilter{Query: in.Query, Tag: in.Tag, Archived: in.Archived}, p)
	if err != nil {
		return out, err
	}
	out = Conversations{Conversations: []Conversation{}, NextCursor: page.Next}
	for _, conversation := range page.Data {
		out.Conversations = append(out.Conversations, conversationOf(conversation))
	}
	return out, nil
}

type ListBranchesArguments struct {
	ConversationID string `json:"conversation_id" jsonschema:"id of the conversation"`
	Listing
}

type Branches struct {
	Branches   []BranchEnd `json:"branches"`
	NextCursor string      `json:"next_cursor,omitempty" jsonschema:"of the next page; none on the last one"`
}

type BranchEnd struct {
	HeadID    string `json:"head_id" jsonschema:"names the branch"`
	Active    bool   `json:"active" jsonschema:"it is the branch that was used last"`
	Role      string `json:"role" jsonschema:"of the head"`
	Text      string `json:"text" jsonschema:"the beginning of what the head says"`
	Messages  int    `json:"messages" jsonschema:"on the branch"`
	Tokens    int64  `json:"tokens" jsonschema:"of all its messages"`
	CreatedAt string `json:"created_at" jsonschema:"of the head"`
}

// previewTokens is about how much of a head's text a list of branches shows.
const previewTokens = 50

func listBranches(ctx context.Context, c *call, in ListBranchesArguments) (out Branches, err error) {
	id, err := parseID(in.ConversationID, "conversation_id")
	if err != nil {
		return out, err
	}
	p, err := in.paging()
	if err != nil {
		return out, err
	}
	conversation, err := c.Store.Conversation(ctx, id)
	if err != nil {
		return out, err
	}
	page, err := c.Store.Branches(ctx, id, p)
	if err != nil {
		return out, err
	}
	out = Branches{Branches: []BranchEnd{}, NextCursor: page.Next}
	for _, head := range page.Data {
		m := messageOf(head).within(previewTokens)
		out.Branches = append(out.Branches, BranchEnd{
			HeadID: m.MessageID, Active: head.ID == conversation.HeadID, Role: m.Role, Text: m.Text,
			Messages: m.Depth + 1, Tokens: head.PathTokens, CreatedAt: m.CreatedAt,
		})
	}
	return out, nil
}

type ReadBranchArguments struct {
	Branch
	BudgetTokens int  `json:"budget_tokens,omitempty" jsonschema:"tokens of all messages that are given, 1 to 100,000; 8,000 where it is left out"`
	AsContext    bool `json:"as_context,omitempty" jsonschema:"give what a model is given for the branch, fit into the budget"`
}

type ReadBranch struct {
	ConversationID string    `json:"conversation_id"`
	HeadID         string    `json:"head_id"`
	Messages       []Message `json:"messages" jsonschema:"oldest first"`
	OlderHeadID    string    `json:"older_head_id,omitempty" jsonschema:"the message before the first one: pass it as head_id to read on; none at the beginning"`
	Imported       bool      `json:"summary_imported,omitempty" jsonschema:"with as_context: text of the summary came with an imported file, and nobody checked it against the messages"`
	Status         string    `json:"status,omitempty" jsonschema:"with as_context: how full the window is"`
	Complete       bool      `json:"complete" jsonschema:"the whole branch is in it, verbatim or as its summary"`
}

const (
	defaultBudget = 8_000
	maxBudget     = 100_000
	maxRead       = 200 // messages of a branch in one answer
)

func readBranch(ctx context.Context, c *call, in ReadBranchArguments) (out ReadBranch, err error) {
	id, head, err := in.parse()
	if err != nil {
		return out, err
	}
	if in.BudgetTokens == 0 {
		in.BudgetTokens = defaultBudget
	}
	if in.BudgetTokens < 0 || in.BudgetTokens > maxBudget {
		return out, fault.New(fault.Invalid, "invalid_parameter", "budget_tokens", "Ask for 1 to %d tokens.", maxBudget)
	}
	if in.AsContext {
		return readContext(ctx, c, id, head, in.BudgetTokens)
	}
	page, err := c.Store.Transcript(ctx, id, head, tree.Paging{Limit: maxRead})
	if err != nil {
		return out, err
	}
	shown := newest(page.Data, in.BudgetTokens, true)
	return ReadBranch{
		ConversationID: id.String(), HeadID: page.Data[len(page.Data)-1].ID.String(), Messages: shown,
		OlderHeadID: shown[0].ParentID, Complete: shown[0].ParentID == "" && !shown[0].CutOff,
	}, nil
}

// readContext gives a branch's context. A message that stands for no message of
// the tree has no id.
func readContext(ctx context.Context, c *call, id, head uuid.UUID, budget int) (out ReadBranch, err error) {
	none := 0
	context, err := c.Contexts.Context(ctx, id, head, summarize.Window{MaxContextTokens: budget, ReservedTokens: &none})
	if err != nil {
		return out, err
	}
	out = ReadBranch{ConversationID: id.String(), HeadID: context.HeadID.String(), Messages: []Message{}, Status: context.Status, Complete: context.Complete}
	out.Imported = context.Summary != nil && context.Summary.Origin != nil
	for i, p := range context.Parts() {
		out.Messages = append(out.Messages, contextMessage(id, p, context.Messages[i]))
	}
	return out, nil
}

func contextMessage(conversationID uuid.UUID, p summarize.Part, body json.RawMessage) Message {
	said := chat.Read(body)
	m := Message{Role: string(said.Role), Tokens: p.Tokens}
	if p.Kind == summarize.PartPrefix || p.Kind == summarize.PartTail {
		m.MessageID = p.ID.String()
		m.ID = conversationID.String() + "/" + m.MessageID
	}
	m.say(said)
	return m
}

type ExplainArguments struct{ Branch }

type Explained struct {
	ConversationID  string             `json:"conversation_id"`
	HeadID          string             `json:"head_id"`
	ContextTokens   int                `json:"context_tokens"`
	AvailableTokens int                `json:"available_tokens" jsonschema:"what a context may take"`
	Percent         int                `json:"percent"`
	TokensToTrigger int                `json:"tokens_to_trigger" jsonschema:"that may be added before the branch is compacted by itself; negative past it"`
	Reason          string             `json:"reason" jsonschema:"why it isn't compacted now, or why there is nothing to fold"`
	FoldMessages    int                `json:"fold_messages" jsonschema:"that compact_branch would fold now"`
	FoldTokens      int                `json:"fold_tokens"`
	Summaries       []ExplainedSummary `json:"summaries" jsonschema:"of the whole conversation, newest first"`
}

type ExplainedSummary struct {
	SummaryID string `json:"summary_id"`
	Applies   bool   `json:"applies"`
	Reason    string `json:"reason"`
	Model     string `json:"model"`
	Tokens    int    `json:"tokens"`
	Imported  bool   `json:"imported,omitempty" jsonschema:"some of its text came with an imported file, and nobody checked it against the messages"`
	Waits     bool   `json:"waits,omitempty" jsonschema:"it was made without a model, and is made again once a model answers"`
}

func explainContext(ctx context.Context, c *call, in ExplainArguments) (out Explained, err error) {
	id, head, err := in.parse()
	if err != nil {
		return out, err
	}
	e, err := c.Contexts.Explain(ctx, id, head)
	if err != nil {
		return out, err
	}
	out = Explained{
		ConversationID: e.ConversationID.String(), HeadID: e.HeadID.String(),
		ContextTokens: e.Usage.ContextTokens, AvailableTokens: e.Usage.AvailableTokens, Percent: e.Usage.Percent,
		TokensToTrigger: e.TokensToTrigger, Reason: e.Reason, Summaries: []ExplainedSummary{},
	}
	if e.Plan != nil {
		out.FoldMessages, out.FoldTokens = e.Plan.FoldMessages, e.Plan.FoldTokens
	}
	for _, s := range e.Summaries {
		out.Summaries = append(out.Summaries, ExplainedSummary{s.ID.String(), s.Applies, s.Reason, s.Model, s.Tokens, s.Origin != nil, s.Waits})
	}
	return out, nil
}

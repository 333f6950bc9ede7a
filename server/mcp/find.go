package mcp

import (
	"context"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/tree"
)

func addReads(t tools) {
	add(t, tool{name: "search", title: "Search messages",
		description: "Finds messages by words, in all conversations. Words must all occur, as they stand; \"quoted words\" stand together. Where no message has them all, the messages that answer the query best are given, as recall ranks them. Give a result's id to fetch.",
	}, searchMessages)
	add(t, tool{name: "fetch", title: "Fetch a message",
		description: "Reads one message whole, with some of those before it on its branch. Takes an id that search or recall gave: CONVERSATION/MESSAGE.",
	}, fetch)
	add(t, tool{name: "recall", title: "Recall what was said",
		description: "Finds the messages that answer a question in plain words, best first, with those around them, also those that a summary folded. Without a conversation all of them are asked. With one, scope says where to look: branch (the default), folded, conversation. In branch and folded nothing of another branch is found.",
	}, recallMessages)
	add(t, tool{name: "list_conversations", title: "List conversations",
		description: "Lists conversations, pinned ones first, then the one in which something was said last; archived ones only where they are asked for. With a query, those whose title or messages have its words.",
	}, listConversations)
	add(t, tool{name: "list_branches", title: "List branches",
		description: "Lists the branches of a conversation by their heads, newest first, with the beginning of what the head says.",
	}, listBranches)
	add(t, tool{name: "read_branch", title: "Read a branch",
		description: "Reads the newest messages of a branch, oldest first, as many as budget_tokens hold. To read on, towards its beginning, pass older_head_id as head_id. With as_context it gives what a model is given for the branch: the summary of its older part, and the messages after that.",
	}, readBranch)
	add(t, tool{name: "explain_context", title: "Explain a branch's context",
		description: "Tells how much of a model's window a branch takes, which summary stands for its older part and why others don't, and what compact_branch would do now.",
	}, explainContext)
}

type SearchArguments struct {
	Query string `json:"query" jsonschema:"words to look for"`
	Limit int    `json:"limit,omitempty" jsonschema:"results at most, 1 to 50; 10 where it is left out"`
}

type SearchResults struct {
	Results []SearchResult `json:"results"`
}

// A SearchResult has the members that connectors of chat products require.
type SearchResult struct {
	ID    string `json:"id" jsonschema:"as fetch takes it"`
	Title string `json:"title" jsonschema:"of the conversation"`
	URL   string `json:"url" jsonschema:"of the branch that the message ends, as a resource"`
	Text  string `json:"text" jsonschema:"the part that has the words"`
}

func searchMessages(ctx context.Context, c *call, in SearchArguments) (out SearchResults, err error) {
	if in.Limit == 0 {
		in.Limit = search.DefaultLimit
	}
	if in.Limit < 0 || in.Limit > search.MaxLimit {
		return out, fault.New(fault.Invalid, "invalid_limit", "limit", "Ask for 1 to %d results.", search.MaxLimit)
	}
	leave, err := c.turn(ctx)
	if err != nil {
		return out, err
	}
	defer leave()
	out.Results = []SearchResult{}
	hits, err := c.Search.Messages(ctx, c.Store, in.Query, search.Within{}, tree.Paging{Limit: in.Limit})
	if code := fault.Of(err); err != nil && code.Code != "too_many_terms" && code.Code != "query_too_large" { // a question is longer than a search
		return out, err
	}
	for _, h := range hits.Data {
		out.Results = append(out.Results, SearchResult{idOf(h.Message), titleOf(h.Title), branchURI(h.Message.ConversationID, h.Message.ID), h.Snippet})
	}
	if len(out.Results) > 0 {
		return out, nil
	}
	answer, err := c.Search.RecallTenant(ctx, c.Store, search.Question{Query: in.Query, Limit: in.Limit, MaxTokens: search.MaxMaxTokens})
	if err != nil {
		return out, err
	}
	titles := map[uuid.UUID]string{}
	for _, h := range answer.Hits {
		id := h.Message.ConversationID
		if _, known := titles[id]; !known {
			conversation, err := c.Store.Conversation(ctx, id)
			if err != nil {
				return out, err
			}
			titles[id] = titleOf(conversation.Title)
		}
		out.Results = append(out.Results, SearchResult{idOf(h.Message), titles[id], branchURI(id, h.Message.ID), h.Excerpt})
	}
	return out, nil
}

func titleOf(title string) string {
	if title == "" {
		return "Untitled"
	}
	return title
}

type FetchArguments struct {
	ID string `json:"id" jsonschema:"CONVERSATION/MESSAGE, as search and recall give it"`
}

// Fetched has the members that connectors of chat products require.
type Fetched struct {
	ID       string            `json:"id"`
	Title    string            `json:"title" jsonschema:"of the conversation"`
	Text     string            `json:"text"`
	URL      string            `json:"url"`
	Metadata map[string]string `json:"metadata"`
	Before   []Message         `json:"before" jsonschema:"messages before it on its branch, oldest first"`
}

// What fetch gives of the messages before one.
const (
	fetchBefore       = 6
	fetchBeforeTokens = 2000
)

func fetch(ctx context.Context, c *call, in FetchArguments) (out Fetched, err error) {
	first, second, both := strings.Cut(in.ID, "/")
	if !both {
		return out, fault.New(fault.Invalid, "invalid_id", "id", "Ids here have the form CONVERSATION/MESSAGE, as search and recall give them. This one has no slash.")
	}
	conversationID, err := parseID(first, "id")
	if err != nil {
		return out, err
	}
	id, err := parseID(second, "id")
	if err != nil {
		return out, err
	}
	conversation, err := c.Store.Conversation(ctx, conversationID)
	if err != nil {
		return out, err
	}
	page, err := c.Store.Transcript(ctx, conversationID, id, tree.Paging{Limit: fetchBefore + 1})
	if err != nil {
		return out, err
	}
	last := len(page.Data) - 1
	m := messageOf(page.Data[last])
	out = Fetched{
		ID: m.ID, Title: titleOf(conversation.Title), Text: m.Text, URL: branchURI(conversationID, id), Before: newest(page.Data[:last], fetchBeforeTokens, false),
		Metadata: map[string]string{"role": m.Role, "created_at": m.CreatedAt, "conversation_id": conversationID.String(), "message_id": m.MessageID, "depth": strconv.Itoa(m.Depth)},
	}
	for _, call := range m.ToolCalls {
		out.Text = strings.TrimSpace(out.Text + "\n" + call.Name + "(" + call.Arguments + ")")
	}
	return out, nil
}

// newest gives as many of the last messages as the tokens hold; with one at
// least, the last one is cut off where they don't hold it.
func newest(messages []tree.Message, tokens int, one bool) []Message {
	from := len(messages)
	for from > 0 && messages[from-1].Tokens <= tokens {
		from--
		tokens -= messages[from].Tokens
	}
	if one && from == len(messages) && from > 0 {
		m := messageOf(messages[from-1])
		return []Message{m.within(tokens)}
	}
	return messagesOf(messages[from:])
}

// within cuts a message's text off where it is longer than the tokens hold, at
// about four bytes each.
func (m Message) within(tokens int) Message {
	if most := 4 * tokens; len(m.Text) > most {
		m.Text, m.CutOff = strings.ToValidUTF8(m.Text[:most], "")+" …", true
	}
	for i, call := range m.ToolCalls {
		if most := 4 * tokens; len(call.Arguments) > most {
			m.ToolCalls[i].Arguments, m.CutOff = strings.ToValidUTF8(call.Arguments[:most], "")+" …", true
		}
	}
	return m
}

type RecallArguments struct {
	Question       string `json:"question" jsonschema:"what to find out, in plain words"`
	ConversationID string `json:"conversation_id,omitempty" jsonschema:"ask this conversation only"`
	HeadID         string `json:"head_id,omitempty" jsonschema:"with a conversation: id of the message that the branch ends in; active is the default"`
	Scope          string `json:"scope,omitempty" jsonschema:"with a conversation: branch, folded (what the branch's summary replaces), conversation (all branches) or tenant; branch where it is left out"`
	Limit          int    `json:"limit,omitempty" jsonschema:"messages that answer, 1 to 50; 10 where it is left out"`
	MaxTokens      int    `json:"max_tokens,omitempty" jsonschema:"tokens of all messages that are given, 1 to 100,000; 4,000 where it is left out"`
}

type Recalled struct {
	Scope      string        `json:"scope"`
	Searched   int           `json:"searched" jsonschema:"messages in the scope"`
	Omitted    int           `json:"omitted" jsonschema:"messages among the best for which max_tokens has no room"`
	Incomplete bool          `json:"incomplete,omitempty" jsonschema:"older messages were not read yet; the next question reads on"`
	Hits       []RecalledHit `json:"hits"`
}

// A RecalledHit is a message that recall found.
type RecalledHit struct {
	Message  Message   `json:"message"`
	Excerpt  string    `json:"excerpt" jsonschema:"the part of the message that has most of the question's words"`
	Score    float64   `json:"score" jsonschema:"comparable within this answer only"`
	OnBranch bool      `json:"on_branch" jsonschema:"it lies on the branch that was asked about"`
	Folded   bool      `json:"folded" jsonschema:"the branch's summary replaces it"`
	Before   []Message `json:"before"`
	After    []Message `json:"after"`
}

func recallMessages(ctx context.Context, c *call, in RecallArguments) (out Recalled, err error) {
	q := search.Question{Query: in.Question, Scope: search.Scope(in.Scope), Limit: in.Limit, MaxTokens: in.MaxTokens}
	if in.ConversationID == "" && (in.HeadID != "" || q.Scope != "" && q.Scope != search.ScopeTenant) {
		return out, fault.New(fault.Invalid, "invalid_parameter", "conversation_id", "head_id and scope are of a conversation. Name it by conversation_id, or leave them out.")
	}
	if q.Scope == "" {
		q.Scope = search.ScopeBranch
	}
	leave, err := c.turn(ctx)
	if err != nil {
		return out, err
	}
	defer leave()
	var answer search.Answer
	if in.ConversationID == "" {
		answer, err = c.Search.RecallTenant(ctx, c.Store, q)
	} else {
		var conversationID, headID uuid.UUID
		if conversationID, headID, err = (Branch{in.ConversationID, in.HeadID}).parse(); err != nil {
			return out, err
		}
		answer, err = c.Search.Recall(ctx, c.Store, conversationID, headID, q)
	}
	if err != nil {
		return out, err
	}
	out = Recalled{Scope: string(answer.Scope), Searched: answer.Searched, Omitted: answer.Omitted, Incomplete: answer.Incomplete, Hits: []RecalledHit{}}
	for _, h := range answer.Hits {
		out.Hits = append(out.Hits, RecalledHit{messageOf(h.Message), h.Excerpt, h.Score, h.OnBranch, h.Folded, messagesOf(h.Before), messagesOf(h.After)})
	}
	return out, nil
}

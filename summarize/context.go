package summarize

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// A Context is the input of a model for a head: the branch's prefix, the
// applicable summary with the kept text, and the tail. Where the tail begins with
// the user, a word of the assistant's stands before it, as the summary is a user's
// message and some models take user and assistant by turns only.
type Context struct {
	ConversationID uuid.UUID         `json:"conversation_id"`
	HeadID         uuid.UUID         `json:"head_id"`
	Messages       []json.RawMessage `json:"messages"` // chat-completions messages, bodies byte for byte as they were given
	Roles          Roles             `json:"roles"`
	Summary        *ContextSummary   `json:"summary"`
	Usage          Usage             `json:"usage"`
	Counts         Counts            `json:"counts"`
	Complete       bool              `json:"complete"`         // every message of the branch is in it, verbatim or folded, and it fits
	Omitted        int               `json:"omitted_messages"` // messages that are neither in it nor folded, because it is full
	Repairs        []Repair          `json:"repairs"`
	Status         string            `json:"status"` // a line that an agent can be shown

	parts []Part // of Messages
	whole int    // tokens of the branch with nothing left out
	folds bool   // a compaction on demand would fold something
}

// Roles says in which order the messages of a context have their roles.
type Roles string

const (
	RolesAlternating Roles = "alternating" // as every chat template takes them: see chat.ByTurns
	RolesMixed       Roles = "mixed"       // as the branch has them: two of one role in a row, say
)

// ContextSummary is the applicable summary, without its text.
type ContextSummary struct {
	ID               uuid.UUID    `json:"id"`
	ParentID         uuid.UUID    `json:"parent_id"` // its anchor
	LastSummarizedID uuid.UUID    `json:"last_summarized_id"`
	PriorSummaryID   *uuid.UUID   `json:"prior_summary_id"`
	KeptIDs          []uuid.UUID  `json:"kept_ids"`
	Model            string       `json:"model"`
	Origin           *tree.Origin `json:"origin"` // null where all of its text was written here
	Tokens           int          `json:"tokens"`
	CreatedAt        string       `json:"created_at"`
}

// Usage counts tokens.
type Usage struct {
	ContextTokens    int `json:"context_tokens"`
	AvailableTokens  int `json:"available_tokens"` // max less reserved
	MaxContextTokens int `json:"max_context_tokens"`
	ReservedTokens   int `json:"reserved_tokens"`
	TriggerTokens    int `json:"trigger_tokens"`
	Percent          int `json:"percent"` // of the available tokens
}

// Counts are numbers of messages of the branch.
type Counts struct {
	Prefix int `json:"prefix"`
	Kept   int `json:"kept"` // of the folded ones, verbatim in the summary's message
	Folded int `json:"folded"`
	Tail   int `json:"tail"`
}

// A Repair is a message that the branch lacks and that a context needs to be
// valid.
type Repair struct {
	Kind       string    `json:"kind"`         // synthetic_result: an assistant's call that nobody answered before the branch went on
	MessageID  uuid.UUID `json:"message_id"`   // the assistant message
	ToolCallID string    `json:"tool_call_id"` //
	Index      int       `json:"index"`        // of the synthetic message in messages
}

// build makes a context of a view. It is a pure function of its arguments, and
// of a child's view it gives the parent's messages first, byte for byte, as
// long as the same summary applies and nothing is omitted.
func build(v tree.View, s Settings, count tokens.Counter) Context {
	b := s.beside(tree.Tokens(v.Prefix))
	c := Context{
		ConversationID: v.ConversationID, HeadID: v.HeadID, Repairs: []Repair{},
		Counts: Counts{Prefix: len(v.Prefix), Folded: v.Folded}, whole: v.Whole(),
	}
	shown := len(v.Prefix) + 1 + len(v.Tail)
	c.Messages, c.parts = make([]json.RawMessage, 0, shown), make([]Part, 0, shown)
	used := tree.Tokens(v.Prefix)
	for _, m := range v.Prefix {
		c.add(Part{PartPrefix, m.ID, m.Tokens}, m.Body)
	}
	if v.Summary != nil {
		body, cost := summaryMessage(v.Summary), v.Summary.Tokens
		if s.Recall {
			body, cost = prompt.WithRecall(body), cost+prompt.RecallTokens(count)
		}
		c.add(Part{PartSummary, v.Summary.ID, cost}, body)
		c.Summary = contextSummary(v.Summary)
		c.Counts.Kept = len(v.Summary.Range.KeptIDs)
		used += cost
	}
	costs, gaps := link(v.Tail, count)
	start := fit(v.Tail, costs, b.Available-used)
	if cost := acknowledged(v, start, count); cost > 0 {
		start = fit(v.Tail, costs, b.Available-used-cost)
	}
	if cost := acknowledged(v, start, count); cost > 0 {
		c.add(Part{PartTurn, v.Summary.ID, cost}, chat.Acknowledgment())
		used += cost
	}
	c.Omitted = v.Above + start
	c.Counts.Tail = len(v.Tail) - start
	for i := start; i < len(v.Tail); i++ {
		m := &v.Tail[i]
		c.add(Part{PartTail, m.ID, m.Tokens}, m.Body)
		if gap, ok := gaps[i]; ok {
			c.repair(gap)
		}
		used += costs[i]
	}
	c.Usage = s.usage(tree.Tokens(v.Prefix), used)
	c.Complete = c.Omitted == 0 && used <= b.Available
	plan, _ := MakePlan(v, s, &Demand{})
	c.folds = plan != nil || v.Above > 0
	c.Status = c.status()
	c.Roles = rolesOf(v, start, gaps)
	return c
}

// acknowledged is what the word of the assistant's costs between a summary and a
// tail that is shown from start on; 0 where none stands there. It depends on nothing
// that a child of the head adds, unless the tail is empty.
func acknowledged(v tree.View, start int, count tokens.Counter) int {
	if v.Summary == nil || start >= len(v.Tail) || v.Tail[start].Role != tree.RoleUser {
		return 0
	}
	return acknowledgmentTokens(count)
}

func acknowledgmentTokens(count tokens.Counter) int {
	return messageTokens + count.Count(chat.Read(chat.Acknowledgment()).Text())
}

// rolesOf tells the order of roles of a context that shows the tail from start on.
func rolesOf(v tree.View, start int, gaps map[int]gap) Roles {
	var roles chat.Alternation
	for _, m := range v.Prefix {
		roles.Add(m.Role, false)
	}
	if v.Summary != nil {
		roles.Add(tree.RoleUser, false)
		if start < len(v.Tail) && v.Tail[start].Role == tree.RoleUser {
			roles.Add(tree.RoleAssistant, false)
		}
	}
	for i := start; i < len(v.Tail); i++ {
		roles.Add(v.Tail[i].Role, len(v.Tail[i].Calls) > 0)
		for range gaps[i].calls {
			roles.Add(tree.RoleTool, false)
		}
	}
	if roles.Alternate() {
		return RolesAlternating
	}
	return RolesMixed
}

// ByTurns returns the context for a model that takes user and assistant by turns
// only: with neighbours of one role joined. A context whose roles alternate comes
// back as it is. The result's messages are no longer those of the branch, so Parts
// tells of the first of each.
func (c Context) ByTurns() Context {
	if c.Roles == RolesAlternating {
		return c
	}
	messages, at := chat.ByTurns(c.Messages, false)
	parts := make([]Part, len(messages))
	for i, p := range c.parts {
		if to := &parts[at[i]]; to.Kind == "" {
			*to = p
		} else {
			to.Tokens += p.Tokens
		}
	}
	for i := range parts {
		if parts[i].Kind == "" {
			parts[i].Kind = PartTurn
		}
	}
	c.Repairs = slices.Clone(c.Repairs)
	for i := range c.Repairs {
		c.Repairs[i].Index = at[c.Repairs[i].Index]
	}
	c.Messages, c.parts, c.Roles = messages, parts, RolesAlternating
	return c
}

// WithHead returns the context with the head itself at its end, for a model
// that is to answer the head. A summary may fold the head itself, where
// somebody goes back to a message at which a summary was cut. The question must
// then still come last, and verbatim. A tool's result stays folded with its
// call, because no model takes the result without the call. Any other context
// ends in its head already.
func (c Context) WithHead(head tree.Message) Context {
	if !c.FoldsHead() || head.Role == tree.RoleTool {
		return c
	}
	c.Messages, c.parts = slices.Clone(c.Messages), slices.Clone(c.parts)
	if head.Role == tree.RoleUser {
		cost := acknowledgmentTokens(tokens.O200k())
		c.add(Part{PartTurn, c.Summary.ID, cost}, chat.Acknowledgment())
		c.Usage.ContextTokens += cost
	}
	c.add(Part{PartTail, head.ID, head.Tokens}, head.Body)
	c.Counts.Folded--
	c.Counts.Tail++
	if slices.Contains(c.Summary.KeptIDs, head.ID) {
		c.Counts.Kept--
	}
	c.Usage.ContextTokens += head.Tokens
	c.Usage.Percent = percent(c.Usage.ContextTokens, c.Usage.AvailableTokens)
	c.Complete = c.Complete && c.Usage.ContextTokens <= c.Usage.AvailableTokens
	c.Status = c.status()
	return c
}

// Whole is how many tokens the context would have if it left nothing out.
func (c Context) Whole() int { return max(c.whole, c.Usage.ContextTokens) }

// FoldsHead reports whether the summary folds the head itself.
func (c Context) FoldsHead() bool { return c.Summary != nil && c.Summary.LastSummarizedID == c.HeadID }

func (c *Context) add(p Part, body json.RawMessage) {
	c.Messages = append(c.Messages, body)
	c.parts = append(c.parts, p)
}

// A gap is where a branch went on without the results of an assistant's calls.
type gap struct {
	caller uuid.UUID // the assistant message
	calls  []string  // ids of those without a result
	tokens []int     // of the results that a context adds
}

// link finds the gaps of a tail, by the index of the message that each comes
// after, and what each message costs with the results added after it. Calls of
// the branch's end are pending, and stay open.
func link(tail []tree.PathMessage, count tokens.Counter) (costs []int, gaps map[int]gap) {
	costs = make([]int, len(tail))
	caller, answered := -1, map[string]bool{}
	for i := range tail {
		m := &tail[i]
		costs[i] = m.Tokens
		switch {
		case m.Role == tree.RoleTool:
			answered[m.Answers] = true
		case len(m.Calls) > 0:
			caller = i
			clear(answered)
		default:
			caller = -1
		}
		ends := i+1 < len(tail) && tail[i+1].Role != tree.RoleTool
		if caller < 0 || !ends || len(tail[caller].Calls) == len(answered) {
			continue
		}
		g := gap{caller: tail[caller].ID}
		for _, id := range tail[caller].Calls {
			if !answered[id] {
				cost := syntheticTokens + count.Count(id) + count.Count(unanswered)
				g.calls, g.tokens = append(g.calls, id), append(g.tokens, cost)
				costs[i] += cost
			}
		}
		if gaps == nil {
			gaps = map[int]gap{}
		}
		gaps[i] = g
	}
	return costs, gaps
}

// weigh gives messages with the tokens that they cost in a context: results that
// it adds count with the message after which they stand.
func weigh(tail []tree.PathMessage, count tokens.Counter) []tree.PathMessage {
	out := slices.Clone(tail)
	costs, _ := link(tail, count)
	for i := range out {
		out[i].Tokens = costs[i]
	}
	return out
}

// fit is the index of the first message to show of a tail: 0, or where it is
// over the budget as many of the newest as fit, without results whose call is
// left out. The last message stays whatever its size, and if it is a result its
// call with it.
func fit(tail []tree.PathMessage, costs []int, budget int) int {
	start, sum := len(tail), 0
	for start > 0 && sum+costs[start-1] <= budget {
		start--
		sum += costs[start]
	}
	if start == 0 {
		return 0
	}
	for start < len(tail) && tail[start].Role == tree.RoleTool {
		start++
	}
	if start < len(tail) {
		return start
	}
	for start--; start > 0 && tail[start].Role == tree.RoleTool; start-- {
	}
	return start
}

// unanswered is what a model reads where a call has no result.
const unanswered = "[No result: the conversation went on before this call was answered.]"

// repair adds a result to each call of a gap.
func (c *Context) repair(g gap) {
	for i, id := range g.calls {
		body, _ := json.Marshal(struct { // strings always marshal
			Role       tree.Role `json:"role"`
			ToolCallID string    `json:"tool_call_id"`
			Content    string    `json:"content"`
		}{tree.RoleTool, id, unanswered})
		c.Repairs = append(c.Repairs, Repair{Kind: "synthetic_result", MessageID: g.caller, ToolCallID: id, Index: len(c.Messages)})
		c.add(Part{PartRepair, g.caller, g.tokens[i]}, body)
	}
}

// syntheticTokens frames a synthetic result: role, start and end.
const syntheticTokens = 3

func contextSummary(s *tree.Summary) *ContextSummary {
	out := &ContextSummary{
		ID: s.ID, ParentID: s.AnchorID, LastSummarizedID: s.Range.LastSummarizedID, KeptIDs: s.Range.KeptIDs,
		Model: s.Range.Model, Origin: s.Range.Origin, Tokens: s.Tokens, CreatedAt: s.CreatedAt.Format(time.RFC3339Nano),
	}
	if s.Range.PriorSummaryID != uuid.Nil {
		out.PriorSummaryID = &s.Range.PriorSummaryID
	}
	return out
}

// usage is that of a context with so many tokens, of which the prefix has so many.
func (s Settings) usage(prefix, used int) Usage {
	available := s.Budget().Available
	return Usage{
		ContextTokens: used, AvailableTokens: available, MaxContextTokens: s.MaxContextTokens,
		ReservedTokens: s.ReservedTokens, TriggerTokens: s.due(prefix), Percent: percent(used, available),
	}
}

func percent(part, whole int) int {
	if whole <= 0 {
		return 100
	}
	return part * 100 / whole
}

// advisedPercent is where the status line begins to advise a compaction, if one would
// fold anything.
const advisedPercent = 70

func (c Context) status() string {
	u := c.Usage
	line := fmt.Sprintf("Token usage: %d/%d (%d%%)", u.ContextTokens, u.AvailableTokens, u.Percent)
	switch {
	case c.Omitted == 1:
		line += ". 1 older message didn't fit and is not shown. Compact the conversation now."
	case c.Omitted > 1:
		line += fmt.Sprintf(". %d older messages didn't fit and are not shown. Compact the conversation now.", c.Omitted)
	case u.Percent > advisedPercent && c.folds:
		line += ". Compact the conversation soon, while you still know what matters."
	}
	return line
}

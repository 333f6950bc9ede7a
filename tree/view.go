package tree

import (
	"context"
	"encoding/json"
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
)

// A View is a branch as a context or a compaction needs it: the prefix, the
// summary that applies, and the messages after it. It knows no budgets and no
// prompts.
type View struct {
	ConversationID uuid.UUID
	HeadID         uuid.UUID
	Settings       json.RawMessage // of the conversation
	AnsweredBy     string          // the model of the newest reply on the branch, as far as it was read; "" where none is known
	Prefix         []PathMessage   // leading system and developer messages
	Summary        *Summary        // the applicable one, nil for none
	Kept           []PathMessage   // of Summary: folded messages that stay verbatim, oldest first; only in a Skeleton, as their text stands in Summary's body
	Tail           []PathMessage   // after the cutoff, or after the prefix, oldest first
	Folded         int             // messages between the prefix and the tail that Summary replaces
	Above          int             // messages between the prefix or the cutoff and the tail that are not in it, because the budget ended

	length     int   // messages on the path to the head
	pathTokens int64 // of the head
	leadTokens int64 // of the path up to the cutoff, or else of the prefix
}

// A PathMessage is a message on a branch. It has no Siblings, and in a View
// without bodies no Body.
type PathMessage struct {
	Message
	Calls   []string // ids of the tool calls that an assistant makes
	Answers string   // id of the tool call that a tool message answers
}

// Asks reports whether the message has words of the user's own: text that was brought
// from another branch has none.
func (m PathMessage) Asks() bool { return m.Role == RoleUser && m.Graft == nil }

// A ViewOption changes what a View reads.
type ViewOption func(*viewOptions)

type viewOptions struct {
	skeleton bool
	without  []uuid.UUID
}

// Skeleton leaves all bodies unread, except the summary's.
func Skeleton() ViewOption { return func(o *viewOptions) { o.skeleton = true } }

// Without reads the branch as if these summaries were not there.
func Without(summaries ...uuid.UUID) ViewOption {
	return func(o *viewOptions) { o.without = summaries }
}

// parts of a GetView row.
const (
	partPrefix = iota + 1
	partSummary
	partKept
	partCutoff
	partTail
)

// reach is how many budgets of tokens a View goes up to find the summary of a
// branch that doesn't fit.
const reach = 4

// View reads the branch that ends in headID, or in the active head where headID
// is uuid.Nil. It reads from the head up to the cutoff of the applicable summary,
// to the prefix, or until the tail has more than budget tokens. The message that
// passes the budget is the first of Tail. If the budget ends before a summary is
// found, the walk goes on to look for one, up to four budgets away, without
// reading the messages between.
//
// It is one query. Its cost is that of the messages it returns, and of the ids of
// up to three more budgets where they don't fit. Messages above cost nothing.
func (s *Store) View(ctx context.Context, conversationID, headID uuid.UUID, budget int64, opts ...ViewOption) (_ View, err error) {
	defer db.Wrap(&err, "tree.View(%s, head %s)", conversationID, headID)
	var o viewOptions
	for _, opt := range opts {
		opt(&o)
	}
	v := viewing{View: View{ConversationID: conversationID}}
	if err := db.EachViewRow(ctx, s.h, s.viewParams(conversationID, headID, budget, o), v.take); err != nil {
		return View{}, err
	}
	if v.read == 0 {
		return View{}, s.noBranch(ctx, conversationID, headID, Paging{})
	}
	return v.done(), nil
}

// ViewIn reads the conversation and what View reads, in one round trip. Where the
// conversation has no messages and headID is uuid.Nil, the view is that of no
// branch: see NoBranch.
func (s *Store) ViewIn(ctx context.Context, conversationID, headID uuid.UUID, budget int64) (_ Conversation, _ View, err error) {
	defer db.Wrap(&err, "tree.ViewIn(%s, head %s)", conversationID, headID)
	v := viewing{View: View{ConversationID: conversationID}}
	row, err := db.ViewInConversation(ctx, s.h, s.viewParams(conversationID, headID, budget, viewOptions{}), v.take)
	if err != nil {
		return Conversation{}, View{}, orMissing(err, errConversationNotFound)
	}
	c := fromConversation(row)
	if headID == uuid.Nil {
		c.HeadID = v.HeadID // which may have changed between the two statements: the view counts
	}
	switch {
	case v.read > 0:
		return c, v.done(), nil
	case headID == uuid.Nil:
		return c, NoBranch(c), nil
	}
	return c, View{}, errMessageNotFound
}

// NoBranch is the view above a new root: no message is in it.
func NoBranch(c Conversation) View { return View{ConversationID: c.ID, Settings: c.Settings} }

func (s *Store) viewParams(conversationID, headID uuid.UUID, budget int64, o viewOptions) db.GetViewParams {
	return db.GetViewParams{
		ConversationID: toUUID(conversationID), HeadID: toUUID(headID), TenantID: s.tenant, Reader: s.reader,
		Budget: budget, Reach: min(budget, math.MaxInt64/reach) * reach, WithBodies: !o.skeleton, Without: toUUIDs(o.without),
	}
}

// A viewing is a View whose rows are being read.
type viewing struct {
	View
	read   int // rows
	folded int // messages of the branch up to the cutoff, or in the prefix
}

func (v *viewing) take(row *db.GetViewRow) error {
	if v.read++; v.read == 1 {
		v.Settings, v.AnsweredBy = row.Settings, row.AnsweredBy
	}
	m := PathMessage{Message: Message{
		ConversationID: v.ConversationID, ID: uuid.UUID(row.ID.Bytes), ParentID: uuid.UUID(row.ParentID.Bytes),
		Role: Role(row.Role), Body: row.Body, Pinned: row.Pinned, Tokens: int(row.Tokens), PathTokens: row.PathTokens,
		Depth: int(row.Depth), CreatedAt: row.CreatedAt.UTC(),
	}}
	m.Calls, m.Answers = callsOf(row)
	if row.Part != partSummary && m.Depth >= v.length { // the head is the deepest message read
		v.HeadID, v.length, v.pathTokens = m.ID, m.Depth+1, m.PathTokens
	}
	switch row.Part {
	case partPrefix:
		v.Prefix = append(v.Prefix, m)
		v.folded, v.leadTokens = max(v.folded, m.Depth+1), max(v.leadTokens, m.PathTokens)
	case partSummary:
		v.Summary = &Summary{
			ConversationID: v.ConversationID, ID: m.ID, AnchorID: m.ParentID,
			Range: fromRange(row.LastSummarizedID, row.PriorSummaryID, row.KeptIds, row.Model, row.Origin),
			Body:  row.Body, Metadata: row.Metadata, Tokens: m.Tokens, Depth: m.Depth, CreatedAt: m.CreatedAt,
		}
	case partKept:
		m.Graft = fromGraft(row.Origin)
		v.Kept = append(v.Kept, m)
	case partCutoff:
		v.Folded = max(0, m.Depth+1-len(v.Prefix))
		v.folded, v.leadTokens = max(v.folded, m.Depth+1), max(v.leadTokens, m.PathTokens)
	case partTail:
		m.Graft = fromGraft(row.Origin)
		v.Tail = append(v.Tail, m)
	}
	return nil
}

func (v *viewing) done() View {
	if len(v.Tail) > 0 {
		v.Above = v.Tail[0].Depth - v.folded
	}
	return v.View
}

// With returns the view of the branch that goes on from the view's head with
// these messages, which must be checked. It is what View gives of the last one
// once they are stored there, as long as no summary is anchored at them.
func (v View) With(ms []NewMessage) View {
	v.Prefix, v.Tail = slices.Clip(v.Prefix), slices.Clip(v.Tail)
	leads := v.length == len(v.Prefix) // nothing but the prefix was said
	for _, m := range ms {
		v.pathTokens += int64(m.Tokens())
		said := PathMessage{Message: Message{
			ConversationID: v.ConversationID, ID: m.ID, ParentID: v.HeadID, Role: m.Message.Role, Body: m.Message.Raw, Pinned: m.Pinned, Graft: m.Graft,
			Tokens: m.Tokens(), PathTokens: v.pathTokens, Depth: v.length, CreatedAt: m.CreatedAt,
		}}
		switch said.Role {
		case RoleAssistant:
			for _, call := range m.Message.Calls {
				said.Calls = append(said.Calls, call.ID)
			}
		case RoleTool:
			said.Answers = m.Message.Answers()
		}
		if leads = leads && (said.Role == RoleSystem || said.Role == RoleDeveloper); leads {
			v.Prefix, v.leadTokens = append(v.Prefix, said), said.PathTokens
			v.Summary, v.Folded = nil, 0 // which would stand for a part of the prefix
		} else {
			v.Tail = append(v.Tail, said)
		}
		v.HeadID = said.ID
		v.length++
	}
	return v
}

// Whole is what the branch costs in a context that leaves nothing out: its
// prefix, its summary, and every message that the summary doesn't stand for.
func (v View) Whole() int {
	whole := Tokens(v.Prefix) + int(min(v.pathTokens-v.leadTokens, math.MaxInt32))
	if v.Summary != nil {
		whole += v.Summary.Tokens
	}
	return whole
}

// callsOf gives the ids of the calls that a message makes, or of the one that it
// answers.
func callsOf(row *db.GetViewRow) (calls []string, answers string) {
	switch role := Role(row.Role); {
	case role == RoleTool && row.Body == nil && len(row.CallIds) == 1:
		return nil, row.CallIds[0]
	case role == RoleAssistant && row.Body == nil:
		return row.CallIds, ""
	case row.Body == nil:
	case role == RoleTool:
		_, answers = chat.CallIDs(row.Body)
		return nil, answers
	case role == RoleAssistant:
		calls, _ = chat.CallIDs(row.Body)
		return calls, ""
	}
	return nil, ""
}

// Tokens returns the sum of what messages cost in a context.
func Tokens(messages []PathMessage) (sum int) {
	for _, m := range messages {
		sum += m.Tokens
	}
	return sum
}

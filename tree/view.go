package tree

import (
	"context"
	"encoding/json"
	"math"

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
	Prefix         []PathMessage   // leading system and developer messages
	Summary        *Summary        // the applicable one, nil for none
	Kept           []PathMessage   // of Summary: folded messages that stay verbatim, oldest first; only in a Skeleton, as their text stands in Summary's body
	Tail           []PathMessage   // after the cutoff, or after the prefix, oldest first
	Folded         int             // messages between the prefix and the tail that Summary replaces
	Above          int             // messages between the prefix or the cutoff and the tail that are not in it, because the budget ended
}

// A PathMessage is a message on a branch. It has no Siblings, and in a View
// without bodies no Body.
type PathMessage struct {
	Message
	Calls   []string // ids of the tool calls that an assistant makes
	Answers string   // id of the tool call that a tool message answers
}

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
	v := View{ConversationID: conversationID}
	deepest := -1        // depth of the head, which is the deepest message read
	read, folded := 0, 0 // rows; messages of the branch up to the cutoff, or in the prefix
	err = db.EachViewRow(ctx, s.h, db.GetViewParams{
		ConversationID: toUUID(conversationID), HeadID: toUUID(headID), TenantID: s.tenant,
		Budget: budget, Reach: min(budget, math.MaxInt64/reach) * reach, WithBodies: !o.skeleton, Without: toUUIDs(o.without),
	}, func(row *db.GetViewRow) error {
		if read++; read == 1 {
			v.Settings = row.Settings
		}
		m := PathMessage{Message: Message{
			ConversationID: conversationID, ID: uuid.UUID(row.ID.Bytes), ParentID: uuid.UUID(row.ParentID.Bytes),
			Role: Role(row.Role), Body: row.Body, Pinned: row.Pinned, Tokens: int(row.Tokens), PathTokens: row.PathTokens,
			Depth: int(row.Depth), CreatedAt: row.CreatedAt.UTC(),
		}}
		m.Calls, m.Answers = callsOf(row)
		if row.Part != partSummary && m.Depth > deepest {
			v.HeadID, deepest = m.ID, m.Depth
		}
		switch row.Part {
		case partPrefix:
			v.Prefix = append(v.Prefix, m)
			folded = max(folded, m.Depth+1)
		case partSummary:
			v.Summary = &Summary{
				ConversationID: conversationID, ID: m.ID, AnchorID: m.ParentID,
				Range: fromRange(row.LastSummarizedID, row.PriorSummaryID, row.KeptIds, row.Model, row.Origin),
				Body:  row.Body, Metadata: row.Metadata, Tokens: m.Tokens, Depth: m.Depth, CreatedAt: m.CreatedAt,
			}
		case partKept:
			v.Kept = append(v.Kept, m)
		case partCutoff:
			v.Folded = max(0, m.Depth+1-len(v.Prefix))
			folded = max(folded, m.Depth+1)
		case partTail:
			v.Tail = append(v.Tail, m)
		}
		return nil
	})
	if err != nil {
		return View{}, err
	}
	if read == 0 {
		return View{}, s.noBranch(ctx, conversationID, headID, Paging{})
	}
	if len(v.Tail) > 0 {
		v.Above = v.Tail[0].Depth - folded
	}
	return v, nil
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

package tree

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
)

// A View is a branch as a context or a compaction needs it: what comes first,
// the summary that applies, and what came after. It says nothing of budgets
// and prompts.
type View struct {
	ConversationID uuid.UUID
	HeadID         uuid.UUID
	Settings       json.RawMessage // of the conversation
	Prefix         []PathMessage   // leading system and developer messages
	Summary        *Summary        // the applicable one, nil for none
	Kept           []PathMessage   // of Summary: folded messages that stay verbatim, oldest first
	Tail           []PathMessage   // after the cutoff, or after the prefix, oldest first
	Folded         int             // messages between the prefix and the tail that Summary replaces
	Above          int             // messages between the prefix or the cutoff and the tail that were not read, because the budget ended
}

// A PathMessage is a message on a branch. Its Siblings are not read, and in a
// View without bodies neither is its Body.
type PathMessage struct {
	Message
	Calls int // tool calls that it makes
}

// A ViewOption changes what a View reads.
type ViewOption func(*viewOptions)

type viewOptions struct{ skeleton bool }

// Skeleton leaves bodies unread, except the summary's.
func Skeleton() ViewOption { return func(o *viewOptions) { o.skeleton = true } }

// parts of a GetView row.
const (
	partPrefix = iota + 1
	partSummary
	partKept
	partCutoff
	partTail
)

// View reads the branch that ends in headID, from the head up to the cutoff of
// the applicable summary, to the prefix, or until the tail has more than budget
// tokens: the message that passes the budget is the first of Tail. One query,
// whose cost is that of the messages it gives; what lies above costs nothing.
func (s *Store) View(ctx context.Context, conversationID, headID uuid.UUID, budget int64, opts ...ViewOption) (_ View, err error) {
	defer wrap(&err, nil, "View(%s, head %s)", conversationID, headID)
	var o viewOptions
	for _, opt := range opts {
		opt(&o)
	}
	rows, err := s.q.GetView(ctx, db.GetViewParams{
		ConversationID: toUUID(conversationID), HeadID: toUUID(headID), TenantID: s.tenant, Budget: budget, WithBodies: !o.skeleton,
	})
	if err != nil {
		return View{}, err
	}
	if len(rows) == 0 {
		return View{}, s.noBranch(ctx, conversationID, Paging{})
	}
	v := View{ConversationID: conversationID, HeadID: headID, Settings: rows[0].Settings}
	folded := 0 // messages of the branch up to the cutoff, or in the prefix
	for _, row := range rows {
		m := PathMessage{Calls: int(row.Calls), Message: Message{
			ConversationID: conversationID, ID: uuid.UUID(row.ID.Bytes), ParentID: uuid.UUID(row.ParentID.Bytes),
			Role: Role(row.Role), Body: row.Body, Pinned: row.Pinned, Tokens: int(row.Tokens), PathTokens: row.PathTokens,
			Depth: int(row.Depth), CreatedAt: row.CreatedAt.UTC(),
		}}
		if !o.skeleton && m.Role == RoleAssistant && bytes.Contains(m.Body, []byte(`"tool_calls"`)) {
			m.Calls = countCalls(m.Body)
		}
		switch row.Part {
		case partPrefix:
			v.Prefix = append(v.Prefix, m)
			folded = max(folded, m.Depth+1)
		case partSummary:
			v.Summary = &Summary{
				ConversationID: conversationID, ID: m.ID, AnchorID: m.ParentID,
				Range: fromRange(row.LastSummarizedID, row.PriorSummaryID, row.KeptIds, row.Model),
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
	}
	if len(v.Tail) > 0 {
		v.Above = v.Tail[0].Depth - folded
	}
	return v, nil
}

func countCalls(raw json.RawMessage) int {
	var b struct {
		ToolCalls []json.RawMessage `json:"tool_calls"`
	}
	if json.Unmarshal(raw, &b) != nil {
		return 0 // a stored body was checked
	}
	return len(b.ToolCalls)
}

// Tokens sums what messages cost in a context.
func Tokens(messages []PathMessage) (sum int) {
	for _, m := range messages {
		sum += m.Tokens
	}
	return sum
}

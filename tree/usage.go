package tree

import (
	"context"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
)

// A ModelUsage is how many tokens the calls of a model took, as its provider
// counted them.
type ModelUsage struct {
	Model                          string
	Calls                          int
	PromptTokens, CompletionTokens int
	ReasoningTokens                int // the part of CompletionTokens that was reasoning
}

// Usage is what the calls of models took that a conversation needed, by model.
type Usage struct {
	Replies, Compactions, Titles []ModelUsage
}

// Usage returns the tokens that a conversation took. The tokens of replies stand in
// the metadata of their messages, and those of a title in the metadata of the
// answer after which it was looked for. So a fork counts the replies that it
// copied, and a pruned reply is not counted. Usage reads the conversation.
func (s *Store) Usage(ctx context.Context, conversationID uuid.UUID) (u Usage, err error) {
	defer db.Wrap(&err, "tree.Usage(%s)", conversationID)
	if _, err := s.Conversation(ctx, conversationID); err != nil {
		return u, err
	}
	rows, err := s.q.ListUsage(ctx, db.ListUsageParams{ConversationID: toUUID(conversationID), TenantID: s.tenant, Reader: s.reader})
	of := map[string]*[]ModelUsage{"reply": &u.Replies, "compaction": &u.Compactions, "title": &u.Titles}
	for _, r := range rows {
		*of[r.What] = append(*of[r.What], ModelUsage{r.Model, int(r.Calls), int(r.PromptTokens), int(r.CompletionTokens), int(r.ReasoningTokens)})
	}
	return u, err
}

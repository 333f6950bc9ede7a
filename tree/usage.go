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

// Usage returns the tokens that replies and compactions of a conversation took,
// by model. The tokens of replies stand in the metadata of their messages. So a
// fork counts the replies that it copied, and a pruned reply is not counted.
// Usage reads the conversation.
func (s *Store) Usage(ctx context.Context, conversationID uuid.UUID) (replies, compactions []ModelUsage, err error) {
	defer db.Wrap(&err, "tree.Usage(%s)", conversationID)
	if _, err := s.Conversation(ctx, conversationID); err != nil {
		return nil, nil, err
	}
	said, err := s.q.ListReplyUsage(ctx, db.ListReplyUsageParams{ConversationID: toUUID(conversationID), TenantID: s.tenant})
	if err != nil {
		return nil, nil, err
	}
	ran, err := s.q.ListCompactionUsage(ctx, db.ListCompactionUsageParams{ConversationID: toUUID(conversationID), TenantID: s.tenant})
	if err != nil {
		return nil, nil, err
	}
	for _, r := range said {
		replies = append(replies, ModelUsage{r.Model, int(r.Calls), int(r.PromptTokens), int(r.CompletionTokens), int(r.ReasoningTokens)})
	}
	for _, r := range ran {
		compactions = append(compactions, ModelUsage{r.Model, int(r.Calls), int(r.PromptTokens), int(r.CompletionTokens), int(r.ReasoningTokens)})
	}
	return replies, compactions, nil
}

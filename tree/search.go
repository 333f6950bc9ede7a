package tree

import (
	"context"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db"
)

const maxQueryBytes = 1000

// Search finds messages by their words, newest first, in one conversation or,
// where conversationID is uuid.Nil, in all of the tenant's. The query is in
// the syntax of web searches: words must all occur, "quoted words" stand
// together, or is or, -word must not occur. Words are compared whole and case
// aside, without stemming.
//
// Each hit names the newest leaf below it, the branch to open; finding those
// walks what lies below the hits, at about 200,000 messages a second.
func (s *Store) Search(ctx context.Context, query string, conversationID uuid.UUID, p Paging) (_ Page[Hit], err error) {
	defer wrap(&err, nil, "Search(conversation %s, %+v)", conversationID, p)
	limit, before, err := p.timed("search", s.tenant, conversationID.String(), query)
	if err != nil {
		return Page[Hit]{}, err
	}
	if err := checkText(query, "query", maxQueryBytes); err != nil {
		return Page[Hit]{}, err
	}
	if strings.TrimSpace(query) == "" {
		return Page[Hit]{}, invalid("empty_query", "query", "Say which words to look for.")
	}
	var rows []db.SearchTenantRow
	if conversationID == uuid.Nil {
		rows, err = s.q.SearchTenant(ctx, db.SearchTenantParams{
			TenantID: s.tenant, Query: query, BeforeCreatedAt: before.time(), BeforeID: toUUID(before.id), RowLimit: int32(limit) + 1,
		})
	} else {
		rows, err = s.searchConversation(ctx, query, conversationID, before, limit)
	}
	if err != nil {
		return Page[Hit]{}, err
	}
	out := make([]Hit, len(rows))
	for i, row := range rows {
		out[i] = Hit{
			Message: fromMessage(row.Node, row.SiblingCount), LeafID: uuid.UUID(row.LeafID.Bytes),
			Title: row.Title, Snippet: row.Snippet,
		}
	}
	return paged(out, limit, before, func(h Hit) cursor { return timed(h.Message.CreatedAt, h.Message.ID) }), nil
}

func (s *Store) searchConversation(ctx context.Context, query string, id uuid.UUID, before cursor, limit int) ([]db.SearchTenantRow, error) {
	if _, err := s.Conversation(ctx, id); err != nil {
		return nil, err
	}
	rows, err := s.q.SearchConversation(ctx, db.SearchConversationParams{
		ConversationID: toUUID(id), TenantID: s.tenant, Query: query,
		BeforeCreatedAt: before.time(), BeforeID: toUUID(before.id), RowLimit: int32(limit) + 1,
	})
	out := make([]db.SearchTenantRow, len(rows))
	for i, row := range rows {
		out[i] = db.SearchTenantRow(row)
	}
	return out, err
}

package tree

import (
	"context"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
)

// Ratings says how readers took the answers of models.
type Ratings struct {
	Models        []ModelRatings `json:"data"`
	Conversations int            `json:"conversations"` // that were read
	Complete      bool           `json:"complete"`      // there are no others
}

// ModelRatings says how readers took the answers of one model. An answer is kept if
// something follows it or if it is the active head. It is compared if it stands beside
// others.
type ModelRatings struct {
	Model        string `json:"model"`
	Answers      int    `json:"answers"`
	Kept         int    `json:"kept"`
	Compared     int    `json:"compared"`
	ComparedKept int    `json:"compared_kept"`
	RatedUp      int    `json:"rated_up"`
	RatedDown    int    `json:"rated_down"`
}

// Ratings reads the tenant's conversations, the one touched last first: 1,000 at most, and
// about 100,000 messages.
func (s *Store) Ratings(ctx context.Context) (r Ratings, err error) {
	defer db.Wrap(&err, "tree.Ratings")
	const mostConversations, mostMessages = 1000, 100_000 // which take about a second
	recent, err := s.q.ListRecentHeads(ctx, db.ListRecentHeadsParams{TenantID: s.tenant, Reader: s.reader, RowLimit: mostConversations + 1})
	if err != nil {
		return r, err
	}
	var ids, heads []pgtype.UUID
	messages := 0
	for _, c := range recent {
		if len(ids) == mostConversations || messages > mostMessages {
			break
		}
		ids, heads = append(ids, c.ID), append(heads, c.HeadID)
		messages += int(c.MessageCount)
	}
	r.Conversations, r.Complete = len(ids), len(ids) == len(recent)
	r.Models = []ModelRatings{} // for programs, which get none as a list
	rows, err := s.q.ListRatings(ctx, db.ListRatingsParams{Ids: ids, Heads: heads})
	for _, row := range rows {
		r.Models = append(r.Models, ModelRatings{row.Model, int(row.Answers), int(row.Kept), int(row.Compared), int(row.ComparedKept), int(row.RatedUp), int(row.RatedDown)})
	}
	return r, err
}

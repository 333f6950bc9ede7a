package tree_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// Messages of any length share the entries of their tenant: the index stays
// small, and a search for a word that nobody said looks at few texts.
func TestSearchIndexServesMessagesOfAllLengths(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	const messages = 3000
	r := rand.New(rand.NewPCG(1, 2))
	lengths := []int{4, 20, 20, 60, 60, 60, 150, 400}
	id, head := newConversation(t, s).ID, uuid.Nil
	for range messages / 500 {
		var chain []tree.NewMessage
		for range 500 {
			var text strings.Builder
			for range lengths[r.IntN(len(lengths))] {
				// Of 50,000 words, the n-th has a share of about 1/n.
				fmt.Fprintf(&text, "word%d ", int(math.Pow(50_000, r.Float64())))
			}
			chain = append(chain, user(text.String()))
		}
		stored, _, err := s.AppendChain(t.Context(), id, head, chain)
		if err != nil {
			t.Fatal(err)
		}
		head = stored[len(stored)-1].ID
	}
	var entries int
	if err := pool.QueryRow(t.Context(), `select count(distinct entry) from nodes
		cross join unnest(tsvector_to_array(search_entries(search_key, body ->> 'content'))) entry`).Scan(&entries); err != nil {
		t.Fatal(err)
	}
	const words = 20
	checked := 0
	for i := range words {
		checked += effortOf(t, pool, tree.DefaultTenant, func(s *tree.Store) error {
			_, err := s.Search(t.Context(), fmt.Sprintf("unheardof%d", i), uuid.Nil, tree.Paging{Limit: 50})
			return err
		}).checked
	}
	t.Logf("%d entries of %d messages, %d texts looked at for each word", entries, messages, checked/words)
	if entries > 2*messages {
		t.Errorf("%d messages have %d entries", messages, entries)
	}
	if most := messages / 8; checked > words*most {
		t.Errorf("a search for an absent word looks at %d of %d texts, want %d at most", checked/words, messages, most)
	}
}

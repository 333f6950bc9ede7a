package speed

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// BenchmarkPendingList appends to a database with lists of several lengths for
// words that wait to be indexed, and with none, which is what the schema has. It
// is meant for -benchtime 12000x: the list of Postgres' own default is full only
// once in some 8,000 messages.
func BenchmarkPendingList(b *testing.B) {
	for _, limit := range []int{0, 4096, 1024, 512, 256} {
		b.Run(fmt.Sprintf("%d_kB", limit), func(b *testing.B) {
			pool := dbtest.New(b)
			if limit > 0 {
				if _, err := pool.Exec(b.Context(), fmt.Sprintf("alter index nodes_search set (fastupdate = on, gin_pending_list_limit = %d)", limit)); err != nil {
					b.Fatal(err)
				}
			}
			texts := newCorpus(1, 4096)
			const messages = 25_600
			plant(b, pool, texts, func(p *planter) {
				for range messages / 6400 {
					if _, err := p.interleave(64, 100); err != nil {
						b.Fatal(err)
					}
				}
			})
			store := tree.New(pool)
			id := uuid.Must(uuid.NewV7())
			if _, _, err := store.CreateConversation(b.Context(), tree.NewConversation{ID: id}); err != nil {
				b.Fatal(err)
			}
			var parent uuid.UUID
			var appends, searches []time.Duration
			b.ResetTimer()
			for i := range b.N {
				text := texts.draw([]tree.Role{tree.RoleUser, tree.RoleAssistant}[i%2])
				begin := time.Now()
				m, _, err := store.Append(b.Context(), id, parent, tree.NewMessage{Body: text.body})
				if err != nil {
					b.Fatal(err)
				}
				appends = append(appends, time.Since(begin))
				parent = m.ID
				if i%100 == 0 {
					begin := time.Now()
					if _, err := store.Search(b.Context(), "unheardof", uuid.Nil, tree.Paging{}); err != nil {
						b.Fatal(err)
					}
					searches = append(searches, time.Since(begin))
				}
			}
			slices.Sort(appends)
			slices.Sort(searches)
			b.ReportMetric(milliseconds(appends[len(appends)/2]), "append-p50-ms")
			b.ReportMetric(milliseconds(appends[len(appends)*999/1000]), "append-p99.9-ms")
			b.ReportMetric(milliseconds(appends[len(appends)-1]), "append-longest-ms")
			b.ReportMetric(milliseconds(searches[len(searches)/2]), "search-p50-ms")
			size := int64(0)
			if err := pool.QueryRow(b.Context(), "select pg_relation_size('nodes_search')").Scan(&size); err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(size)/float64(messages+b.N), "index-bytes/message")
		})
	}
}

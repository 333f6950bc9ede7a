package tree_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// line appends n messages in one path, chain by chain, and returns them.
func line(tb testing.TB, s *tree.Store, conversation uuid.UUID, n int) (ids []uuid.UUID) {
	tb.Helper()
	parent := uuid.Nil
	for len(ids) < n {
		chain := make([]tree.NewMessage, min(tree.MaxChain, n-len(ids)))
		for i := range chain {
			chain[i] = user(fmt.Sprintf("message %d of a long line, which says neither much nor little, as messages do", len(ids)+i))
		}
		got, _, err := s.AppendChain(tb.Context(), conversation, parent, chain)
		if err != nil {
			tb.Fatal(err)
		}
		for _, m := range got {
			ids = append(ids, m.ID)
		}
		parent = ids[len(ids)-1]
	}
	return ids
}

func BenchmarkAppend(b *testing.B) {
	s := tree.New(dbtest.New(b))
	c := newConversation(b, s)
	parent := uuid.Nil
	for b.Loop() {
		parent = mustAppend(b, s, c.ID, parent, user("a message of some length, as people write them to a model")).ID
	}
}

// BenchmarkTranscriptPage reads a page of 50 at several depths of one line: the
// cost is the page's.
func BenchmarkTranscriptPage(b *testing.B) {
	s := tree.New(dbtest.New(b))
	c := newConversation(b, s)
	ids := line(b, s, c.ID, 100_000)
	for _, depth := range []int{100, 1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint("depth=", depth), func(b *testing.B) {
			var times []time.Duration
			for b.Loop() {
				start := time.Now()
				if _, err := s.Transcript(b.Context(), c.ID, ids[depth-1], tree.Paging{Limit: 50}); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(start))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
		})
	}
}

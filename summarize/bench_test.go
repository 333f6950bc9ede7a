package summarize

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// BenchmarkContext builds a context without HTTP, with a summary of 300
// messages and tails of several lengths.
func BenchmarkContext(b *testing.B) {
	pool := dbtest.New(b)
	store := tree.New(pool)
	service, err := New(store, Config{})
	if err != nil {
		b.Fatal(err)
	}
	for _, tail := range []int{50, 200, 1000} {
		b.Run(fmt.Sprint("tail=", tail), func(b *testing.B) {
			id, head := folded(b, store, service, tail)
			if _, err := pool.Exec(b.Context(), "analyze"); err != nil { // as autovacuum does after a minute
				b.Fatal(err)
			}
			var times []time.Duration
			for b.Loop() {
				start := time.Now()
				c, err := service.Context(b.Context(), id, head, Window{})
				if err != nil || c.Summary == nil || c.Counts.Tail != tail {
					b.Fatalf("%+v, %v", c.Counts, err)
				}
				times = append(times, time.Since(start))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Microseconds()), "p50-µs")
		})
	}
}

// folded stores a line of messages, and a summary of all but the tail.
func folded(b *testing.B, store *tree.Store, service *Service, tail int) (id, head uuid.UUID) {
	b.Helper()
	c, _, err := store.CreateConversation(b.Context(), tree.NewConversation{})
	if err != nil {
		b.Fatal(err)
	}
	body := messageBody("user", strings.Repeat("Tell me about hazel, ash and oak. ", 10))
	for left := 300 + tail; left > 0; {
		chain := make([]tree.NewMessage, min(left, tree.MaxChain))
		for i := range chain {
			chain[i].Body = body
		}
		stored, _, err := store.AppendChain(b.Context(), c.ID, head, chain)
		if err != nil {
			b.Fatal(err)
		}
		left -= len(stored)
		head = stored[len(stored)-1].ID
	}
	k, err := service.Compact(b.Context(), c.ID, head, TriggerRequest, &Demand{KeepRecentMessages: tail})
	if err != nil || k.Outcome != tree.OutcomeSaved {
		b.Fatalf("%s: %s, %v", k.Outcome, k.Reason, err)
	}
	return c.ID, head
}

package tree

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coppice-chat/coppice/db"
)

// TestAppendsDontWaitForACount holds that appends of a tenant whose messages take
// long to be counted share one count, and go on before it ends.
func TestAppendsDontWaitForACount(t *testing.T) {
	t.Parallel()
	var counts atomic.Int32
	counted := make(chan struct{})
	s := &Store{tenant: "acme", sizes: &sizes{tenants: map[string]*size{}, counting: map[string]chan struct{}{}}}
	s.sizes.count = func(context.Context, string) (int64, error) {
		counts.Add(1)
		<-counted
		return 1 << 20, nil
	}
	key := func(want int64) {
		if got, err := s.keyFor(t.Context(), 1, firstBytes/firstSeen); err != nil || got != db.SearchKey("acme", want, firstBytes/firstSeen) {
			t.Errorf("the key is %s, %v; want that of %d messages", got, err, want)
		}
	}
	var appends sync.WaitGroup
	for range 200 {
		appends.Go(func() { key(guessed) })
	}
	appends.Wait()
	if n := counts.Load(); n != 1 {
		t.Errorf("counted %d times", n)
	}
	ended := s.sizes.recount("acme")
	close(counted)
	<-ended
	key(1 << 20)
}

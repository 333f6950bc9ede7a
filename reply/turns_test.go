package reply

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// slowReads is a handle on which reads of branches wait, and which counts how many
// wait at a time.
type slowReads struct {
	db.Handle
	release chan struct{}

	mu        sync.Mutex
	now, most int
}

func (h *slowReads) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	for _, q := range b.QueuedQueries {
		if strings.Contains(q.SQL, "name: GetView ") {
			h.count(1)
			<-h.release
			h.count(-1)
		}
	}
	return h.Handle.SendBatch(ctx, b)
}

func (h *slowReads) count(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now += n
	h.most = max(h.most, h.now)
}

func (h *slowReads) waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// Of many requests at once, only so many read their branch at a time, and all are
// answered.
func TestPreparedInTurns(t *testing.T) {
	t.Parallel()
	const requests, atOnce = 12, 2
	pool := dbtest.New(t)
	h := &slowReads{Handle: pool, release: make(chan struct{})}
	contexts := check.Must(summarize.New(tree.New(h), summarize.Config{}))(t)
	f := serveOn(t, pool, func(cfg *Config) { cfg.Contexts, cfg.MaxPreparing = contexts, atOnce })
	var all []<-chan began
	for range requests {
		id, head := f.conversation(t)
		all = append(all, f.begin(t.Context(), Request{ConversationID: id, HeadID: head}))
	}
	check.Eventually(t, "the requests to come", func() bool { return f.Stats().Running == requests && h.waiting() == atOnce })
	close(h.release)
	for _, one := range all {
		b := <-one
		if b.err != nil {
			t.Fatal(b.err)
		}
		if e := end(t, b.reply); e.Status != StatusCompleted {
			t.Errorf("%+v", e)
		}
	}
	if h.most > atOnce {
		t.Errorf("%d branches were read at a time, want %d", h.most, atOnce)
	}
}

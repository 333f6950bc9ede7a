package torture

import (
	"context"
	"math/rand/v2"
	"net/http"

	"github.com/google/uuid"
)

// forkBranch makes a conversation of a branch. Now and then writers go on with
// it in place of another one.
func (w *writer) forkBranch(ctx context.Context, c *conversation, standing []*message) bool {
	m := standing[w.rng.IntN(len(standing))]
	fork, a := w.forkMessage(ctx, w.rng, c, m)
	if a.code == "message_not_found" {
		w.gone(c, m, "fork")
	}
	fork.mu.Lock()
	whole := fork.state == acknowledged && fork.fork == nil
	fork.mu.Unlock()
	if whole && w.rng.IntN(4) == 0 {
		w.mu.Lock()
		if i := w.rng.IntN(len(w.shared)); w.shared[i].tenant == fork.tenant {
			w.shared[i] = fork
		}
		w.mu.Unlock()
	}
	return true
}

// forkMessage makes a fork, and reads its tree for the ids that its messages
// have.
func (w *run) forkMessage(ctx context.Context, rng *rand.Rand, c *conversation, m *message) (*conversation, answer) {
	fork := newConversation(uuid.Must(uuid.NewV7()))
	fork.shared, fork.tenant, fork.origin = true, c.tenant, c.origin
	c.mu.Lock()
	fork.fork = &forkOrder{path: known(c.path(m.id))}
	fork.inherited, fork.settings = c.ever, c.settings
	c.mu.Unlock()
	w.register(fork)
	var got shownConversation
	a, attempts := w.persist(ctx, rng, func(server int) answer {
		return w.as(c).do(ctx, rng, server, http.MethodPost, w.path(c)+"/messages/"+m.id.String()+"/fork", map[string]any{"id": fork.id}, &got)
	})
	fork.mu.Lock()
	fork.state = a.outcome()
	switch {
	case fork.state == acknowledged:
		w.report.findings(checkHeader(fork, got, "the answer to its fork"))
		fork.has(got.Title)
	case fork.state == refused && attempts > 1:
		fork.state = unknown
	}
	made := fork.state == acknowledged
	fork.mu.Unlock()
	w.report.operation("fork", a.outcome(), attempts)
	if !made {
		return fork, a
	}
	if tree, read := w.readTree(ctx, fork); read.outcome() == acknowledged {
		fork.mu.Lock()
		fork.fill(fork.fork, tree)
		w.report.findings(checkTree(fork, tree, w.marks))
		fork.mu.Unlock()
	}
	return fork, a
}

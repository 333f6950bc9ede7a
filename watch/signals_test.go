package watch

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// lossy loses every signal.
type lossy struct{ Signals }

func (lossy) Send(context.Context, string) error { return nil }

// TestLostSignals holds that what was signalled in vain is found all the same.
func TestLostSignals(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	a, b := newServer(t, pool, func(c *Config) { c.Signals = lossy{c.Signals} }), newServer(t, pool, nil)
	w := b.watch(t, tree.DefaultTenant, uuid.Nil, nil)
	c, _, err := a.store.CreateConversation(t.Context(), tree.NewConversation{})
	must[int](t)(0, err)
	if got := collect(t, w, 1); got[0].ConversationID != c.ID {
		t.Errorf("%v", got)
	}
}

// broken has a connection that never listens.
type broken struct{ Signals }

func (broken) Listen(context.Context, func(), func(string)) error {
	return errors.New("the connection broke")
}

func TestBrokenListener(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	a, b := newServer(t, pool, nil), newServer(t, pool, func(c *Config) { c.Signals = broken{c.Signals} })
	w := b.watch(t, tree.DefaultTenant, uuid.Nil, nil)
	c, _, err := a.store.CreateConversation(t.Context(), tree.NewConversation{})
	must[int](t)(0, err)
	if got := collect(t, w, 1); got[0].ConversationID != c.ID {
		t.Errorf("%v", got)
	}
}

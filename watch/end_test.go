package watch

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

func TestSlowReader(t *testing.T) {
	t.Parallel()
	a := newServer(t, dbtest.New(t), silent)
	w := a.watch(t, tree.DefaultTenant, uuid.Nil, nil)
	c := tree.Change{ConversationID: uuid.New(), TenantID: tree.DefaultTenant, At: time.Now()}
	for i := range 2*maxQueue + 1 {
		c.Sequence = int64(i + 1)
		w.add(c)
	}
	if _, err := w.Next(t.Context()); !errors.Is(err, ErrSlow) {
		t.Errorf("%v", err)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	a := newServer(t, dbtest.New(t), nil)
	w := a.watch(t, tree.DefaultTenant, uuid.Nil, nil)
	a.hub.End()
	if _, err := w.Next(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	if _, err := a.hub.Watch(t.Context(), tree.DefaultTenant, uuid.Nil, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("%v", err)
	}
	a.hub.Changed(tree.DefaultTenant, uuid.New())
	a.hub.Close() // which waits for the signal
	a.hub.Changed(tree.DefaultTenant, uuid.New())
	w.Close()
}

func TestForget(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	a := newServer(t, pool, silent)
	for range 2 {
		check.Must3(a.store.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	}
	check.Must(pool.Exec(t.Context(), "update changes set at = $1 where conversation_id = (select min(conversation_id::text)::uuid from changes)", time.Now().Add(-61*time.Minute)))(t)
	check.NoError(t, a.store.Feed().Forget(t.Context()))
	var left int
	check.NoError(t, pool.QueryRow(t.Context(), "select count(*) from changes").Scan(&left))
	if left != 1 {
		t.Errorf("%d changes are left", left)
	}
}

package reply

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/tree"
)

// between is a handle that does something before it first reads a conversation.
type between struct {
	db.Handle
	do func()
}

func (h *between) QueryRow(ctx context.Context, sql string, args ...any) pgx.Row {
	if strings.Contains(sql, "name: GetConversation ") {
		h.do()
	}
	return h.Handle.QueryRow(ctx, sql, args...)
}

// A conversation that was empty when its branch was read, and isn't any more, is
// answered.
func TestFirstMessageComesMeanwhile(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	h := &between{Handle: pool}
	f := serveOn(t, pool, func(cfg *Config) { cfg.Store = tree.New(h) }, llm.Offline(0))
	c, _, err := f.store.CreateConversation(t.Context(), tree.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	h.do = sync.OnceFunc(func() { f.say(t, c.ID, uuid.Nil, "user", "What is a coppice?") })
	end, err := f.ask(t, Request{ConversationID: c.ID}).Wait(t.Context())
	if err != nil || end.Message == nil {
		t.Errorf("%+v, %v", end, err)
	}
}

package tree_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// over tells whether an error is that of a limit, with this code.
func over(err error, code string) bool {
	var e *fault.Error
	return errors.Is(err, fault.Full) && errors.As(err, &e) && e.Code == code && e.Detail != ""
}

// stored counts a conversation's messages, by themselves and as they are kept.
func stored(t testing.TB, pool *pgxpool.Pool, id uuid.UUID) (messages int) {
	t.Helper()
	var kept int
	err := pool.QueryRow(t.Context(), `select (select count(*) from nodes where conversation_id = $1 and kind = 'message'),
		(select message_count from conversations where id = $1)`, id).Scan(&messages, &kept)
	if err != nil {
		t.Fatal(err)
	}
	if kept != messages {
		t.Errorf("message_count is %d, and there are %d messages", kept, messages)
	}
	return messages
}

func bundleOf(id uuid.UUID, messages int) tree.Bundle {
	b := tree.Bundle{Conversation: tree.NewConversation{ID: id}}
	for range messages {
		b.Nodes = append(b.Nodes, tree.BundleNode{ID: uuid.New(), Body: json.RawMessage(`{"role":"user","content":"imported"}`)})
	}
	return b
}

// Every way in ends at the limit, a message that is there already can be sent
// again all the same, and what is pruned makes room.
func TestMessageLimit(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool, tree.WithLimits(tree.Limits{MessagesPerConversation: 5}))
	c := newConversation(t, s)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("1"))
	rest, _, err := s.AppendChain(t.Context(), c.ID, root.ID, []tree.NewMessage{user("2"), user("3"), user("4")})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.AppendChain(t.Context(), c.ID, root.ID, []tree.NewMessage{user("5"), user("6")}); !over(err, "too_many_messages") {
		t.Errorf("a chain over the limit: %v", err)
	}
	last := user("5")
	last.ID = uuid.New()
	mustAppend(t, s, c.ID, root.ID, last)
	if _, _, err := s.Append(t.Context(), c.ID, root.ID, user("6")); !over(err, "too_many_messages") {
		t.Errorf("a message over the limit: %v", err)
	}
	if _, _, err := s.Append(t.Context(), c.ID, uuid.New(), user("6")); !errors.Is(err, fault.NotFound) {
		t.Errorf("an absent parent: %v", err)
	}
	if m, created, err := s.Append(t.Context(), c.ID, root.ID, last); err != nil || created || m.ID != last.ID {
		t.Errorf("the last one again: %v, created %t", err, created)
	}
	chain := make([]tree.NewMessage, len(rest))
	for i, m := range rest {
		chain[i] = tree.NewMessage{ID: m.ID, Body: m.Body}
	}
	if _, created, err := s.AppendChain(t.Context(), c.ID, root.ID, chain); err != nil || created {
		t.Errorf("the chain again: %v, created %t", err, created)
	}
	if _, err := s.Import(t.Context(), bundleOf(c.ID, 1)); !over(err, "too_many_messages") {
		t.Errorf("an import over the limit: %v", err)
	}
	if _, err := s.Import(t.Context(), bundleOf(uuid.New(), 6)); !over(err, "too_many_messages") {
		t.Errorf("an import of too many: %v", err)
	}
	// A summary is the server's, and doesn't count.
	if _, err := s.AddSummary(t.Context(), c.ID, tree.NewSummary{AnchorID: rest[2].ID, Range: tree.SummaryRange{LastSummarizedID: root.ID, Model: "m"}, Body: json.RawMessage(`{"role":"user","content":"s"}`)}); err != nil {
		t.Error(err)
	}
	small := tree.New(pool, tree.WithLimits(tree.Limits{MessagesPerConversation: 3}))
	if _, _, err := small.Fork(t.Context(), c.ID, rest[2].ID, tree.NewConversation{}); !over(err, "too_many_messages") {
		t.Errorf("a fork over the limit: %v", err)
	}
	fork, _, err := s.Fork(t.Context(), c.ID, rest[2].ID, tree.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	if got := stored(t, pool, c.ID); got != 5 {
		t.Errorf("%d messages, want 5", got)
	}
	if got := stored(t, pool, fork.ID); got != 4 {
		t.Errorf("%d messages in the fork, want 4", got)
	}
	if _, err := s.Prune(t.Context(), c.ID, rest[1].ID); err != nil { // and the summary
		t.Fatal(err)
	}
	if got := stored(t, pool, c.ID); got != 3 {
		t.Errorf("%d messages after the prune, want 3", got)
	}
	if _, err := s.Import(t.Context(), bundleOf(c.ID, 2)); err != nil {
		t.Error(err)
	}
	if got := stored(t, pool, c.ID); got != 5 {
		t.Errorf("%d messages after the import, want 5", got)
	}
	// Without the limit, it goes on.
	mustAppend(t, tree.New(pool), c.ID, root.ID, user("6"))
}

// Writers that come at once fill a conversation to its limit and not beyond.
func TestMessageLimitUnderConcurrency(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(8))
	s := tree.New(pool, tree.WithLimits(tree.Limits{MessagesPerConversation: 20}))
	c := newConversation(t, s)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	var all sync.WaitGroup
	var accepted atomic.Int64
	for i := range 32 {
		all.Go(func() {
			var err error
			n := 1
			switch i % 4 {
			case 0:
				n = 3
				_, _, err = s.AppendChain(t.Context(), c.ID, root.ID, []tree.NewMessage{user("a"), user("b"), user("c")})
			case 1:
				_, err = s.Import(t.Context(), bundleOf(c.ID, 1))
			default:
				_, _, err = s.Append(t.Context(), c.ID, root.ID, user(fmt.Sprint(i)))
			}
			if err == nil {
				accepted.Add(int64(n))
			} else if !over(err, "too_many_messages") {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := stored(t, pool, c.ID); got != 20 || accepted.Load() != 19 {
		t.Errorf("%d messages are stored, and %d were accepted after the first; want 20 and 19", got, accepted.Load())
	}
}

// Conversations made at once, in every way, are so many as may be. Another
// tenant's don't count.
func TestConversationLimit(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(8))
	unlimited := tree.New(pool)
	var sources []tree.Message
	for range 3 {
		c := newConversation(t, unlimited)
		sources = append(sources, mustAppend(t, unlimited, c.ID, uuid.Nil, user("x")))
	}
	for range 5 {
		newConversation(t, unlimited.ForTenant("other"))
	}
	s := tree.New(pool, tree.WithLimits(tree.Limits{Conversations: 10}))
	count := func() (n int) {
		if err := pool.QueryRow(t.Context(), "select count(*) from conversations where tenant_id = $1", s.TenantID()).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	var all sync.WaitGroup
	var accepted atomic.Int64
	for i := range 30 {
		all.Go(func() {
			var err error
			source := sources[i%len(sources)]
			switch i % 3 {
			case 0:
				_, _, err = s.CreateConversation(t.Context(), tree.NewConversation{})
			case 1:
				_, _, err = s.Fork(t.Context(), source.ConversationID, source.ID, tree.NewConversation{})
			case 2: // which also adds to one that is there, so that it takes two locks
				_, err = s.Import(t.Context(), bundleOf(source.ConversationID, 1), bundleOf(uuid.New(), 1))
			}
			if err == nil {
				accepted.Add(1)
			} else if !over(err, "too_many_conversations") {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := count(); got != 10 || accepted.Load() != 7 {
		t.Errorf("%d conversations, and %d were accepted, want 10 and 7", got, accepted.Load())
	}
	var list []tree.Conversation
	page, err := s.Conversations(t.Context(), tree.ConversationFilter{}, tree.Paging{})
	if err != nil {
		t.Fatal(err)
	}
	list = page.Data
	if _, created, err := s.CreateConversation(t.Context(), tree.NewConversation{ID: sources[0].ConversationID}); err != nil || created {
		t.Errorf("one that is there, again: %v, created %t", err, created)
	}
	if err := s.DeleteConversation(t.Context(), list[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.CreateConversation(t.Context(), tree.NewConversation{}); err != nil {
		t.Errorf("where one was deleted: %v", err)
	}
	if _, _, err := s.CreateConversation(t.Context(), tree.NewConversation{}); !over(err, "too_many_conversations") {
		t.Errorf("one too many: %v", err)
	}
}

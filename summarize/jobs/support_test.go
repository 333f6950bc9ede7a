package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
	"github.com/coppice-chat/coppice/watch"
)

const written = "The user and the assistant said at some length what there is to say about this talk, in the turns 0, 1, 2, 3, 4, 5, 6, 7, 8 and 9."

// messageBody is a message that says text.
func messageBody(role, text string) json.RawMessage {
	return tree.Text(tree.Role(role), text).Message.Raw
}

// counting is a summarizer that always gives the same text, and counts.
func counting(text string) (*llmtest.Model, *atomic.Int32) {
	var calls atomic.Int32
	return &llmtest.Model{Answer: func(context.Context, llm.Request) (llm.Response, error) {
		calls.Add(1)
		return llmtest.Response(text), nil
	}}, &calls
}

// smallSettings compact soon.
func smallSettings() summarize.Settings {
	s := summarize.Defaults()
	s.MaxContextTokens, s.ReservedTokens, s.MinFoldTokens, s.MinFoldMessages, s.MinRecentMessages = 1200, 0, 20, 2, 2
	return s
}

func service(t testing.TB, s *tree.Store, cfg summarize.Config) *summarize.Service {
	t.Helper()
	if cfg.Settings == (summarize.Settings{}) {
		cfg.Settings = smallSettings()
	}
	return check.Must(summarize.New(s, cfg))(t)
}

func conversation(t testing.TB, s *tree.Store) uuid.UUID {
	t.Helper()
	c := check.Must3(s.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	return c.ID
}

// talk appends turns to a conversation and gives the last message.
func talk(t testing.TB, s *tree.Store, conversation, parent uuid.UUID, turns int) (last tree.Message) {
	t.Helper()
	var messages []tree.NewMessage
	for i := range turns {
		for _, role := range []string{"user", "assistant"} {
			messages = append(messages, tree.NewMessage{Message: chat.Read(messageBody(role, fmt.Sprintf("%s says in turn %d of this talk what there is to say about it, at some length.", role, i)))})
		}
	}
	for chain := range slices.Chunk(messages, tree.MaxChain) {
		stored := check.Must(s.AppendChain(t.Context(), conversation, parent, chain))(t)
		last = stored.Messages[len(stored.Messages)-1]
		parent = last.ID
	}
	return last
}

func add(t testing.TB, s *tree.Store, id, parent uuid.UUID, body string) tree.Message {
	t.Helper()
	m := check.Must(s.Append(t.Context(), id, parent, tree.NewMessage{Message: chat.Read([]byte(body))}))(t)
	return m.Message
}

// follow has a worker follow the store's changes, and others' at once only if looks is set.
func follow(t *testing.T, pool *pgxpool.Pool, w *Worker, looks bool, options ...tree.Option) *tree.Store {
	t.Helper()
	pause := time.Hour
	if looks {
		pause = 20 * time.Millisecond
	}
	hub := watch.New(watch.Config{Store: tree.New(pool)})
	followers := []watch.Follower{{Name: Compactions, Follow: w.FollowCompactions, Look: pause}}
	if name := w.Embeddings(); name != "" {
		followers = append(followers, watch.Follower{Name: name, Scans: true, Follow: w.FollowEmbeddings, Look: pause})
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	for _, f := range followers {
		running.Go(func() { hub.Follow(ctx, f) })
	}
	t.Cleanup(func() { cancel(); running.Wait(); hub.Close() })
	return tree.New(pool, append(options, tree.WithChangeHook(hub.Changed))...)
}

// handled waits until a follower has handled all that changed.
func handled(t *testing.T, pool *pgxpool.Pool, follower string) {
	t.Helper()
	check.Eventually(t, "the follower", func() bool {
		return count(t, pool, `select count(*) from conversations c where not exists (
			select from follower_places p where p.conversation_id = c.id and p.follower = $1 and p.sequence = c.change_count)`, follower) == 0
	})
}

func count(t *testing.T, pool *pgxpool.Pool, query string, args ...any) (n int) {
	t.Helper()
	check.NoError(t, pool.QueryRow(t.Context(), query, args...).Scan(&n))
	return n
}

// counts wants a number of rows.
func counts(t *testing.T, pool *pgxpool.Pool, want int, what, query string, args ...any) {
	t.Helper()
	check.Equal(t, what, count(t, pool, query, args...), want)
}

// untilCounts waits for a number of rows.
func untilCounts(t *testing.T, pool *pgxpool.Pool, want int, what, query string, args ...any) {
	t.Helper()
	check.Eventually(t, what, func() bool { return count(t, pool, query, args...) == want })
}

func contextOf(t *testing.T, s *summarize.Service, id, head uuid.UUID) summarize.Context {
	t.Helper()
	return check.Must(s.Context(t.Context(), id, head, summarize.Window{}))(t)
}

// withoutDigest are the settings of a Service whose digest never stands in.
func withoutDigest(s summarize.Settings) summarize.Settings {
	s.Digest = summarize.DigestNever
	return s
}

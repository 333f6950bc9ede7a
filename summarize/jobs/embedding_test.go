package jobs

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/search/embed"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

func embeddings(t *testing.T, server *llmtest.EmbeddingServer, model string) *embed.Service {
	t.Helper()
	e := check.Must(llm.NewOpenAIEmbedder(llm.OpenAIConfig{BaseURL: server.URL(), Model: model, HTTPClient: server.Client()}, 0))(t)
	return embed.New(embed.Config{Model: e})
}

// embeddingWorker makes a worker, which isn't started, and follows a store.
func embeddingWorker(t *testing.T, pool *pgxpool.Pool, id string, e *embed.Service) (*tree.Store, *Worker) {
	t.Helper()
	w := check.Must(New(pool, service(t, tree.New(pool), summarize.Config{Settings: summarize.Defaults()}), Config{ID: id, Embeddings: e}))(t)
	return follow(t, pool, w, false), w
}

// startWorker starts a worker until stop is called, or the test's end.
func startWorker(t *testing.T, w *Worker) (stop func()) {
	t.Helper()
	check.NoError(t, w.Start(t.Context()))
	stop = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := w.Stop(ctx); err != nil {
			t.Errorf("stopping: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// lacking counts messages without a row of the model.
func lacking(t *testing.T, pool *pgxpool.Pool, model string) int {
	t.Helper()
	return count(t, pool, `select count(*) from nodes n where n.kind = 'message'
		and not exists (select from embeddings e where e.conversation_id = n.conversation_id and e.message_id = n.id and e.model = $1)`, model)
}

func unfinishedJobs(t *testing.T, pool *pgxpool.Pool) int {
	t.Helper()
	return count(t, pool, "select count(*) from river_job where kind = 'embedding' and state not in ('completed', 'cancelled', 'discarded')")
}

// Every message gets a vector, of every tenant and branch, also from before a model or its change.
func TestEveryMessageIsEmbedded(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	server := llmtest.NewEmbeddingServer(t, []string{"talk"})
	plain := tree.New(pool).ForTenant("old")
	talk(t, plain, conversation(t, plain), uuid.Nil, 50)

	store, w := embeddingWorker(t, pool, "one", embeddings(t, server, "small"))
	stop := startWorker(t, w)
	id := conversation(t, store)
	head := talk(t, store, id, uuid.Nil, 3)
	talk(t, store, id, head.ParentID, 2)
	add(t, store, id, head.ID, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}`)
	check.Eventually(t, "vectors of all messages", func() bool { return lacking(t, pool, "small") == 0 && unfinishedJobs(t, pool) == 0 })
	counts(t, pool, 1, "messages that say nothing to embed", "select count(*) from embeddings where vector is null")
	for _, texts := range server.Inputs() {
		check.That(t, len(texts) <= 64, "a request has %d texts", len(texts))
	}

	stop()
	_, other := embeddingWorker(t, pool, "two", embeddings(t, server, "large"))
	startWorker(t, other)
	check.Eventually(t, "vectors of the other model", func() bool { return lacking(t, pool, "large") == 0 })
}

// While the provider fails, the job waits without an attempt. Then every message gets its vector.
func TestBrokenProviderOnlyDelaysVectors(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	server := llmtest.NewEmbeddingServer(t)
	server.Fail(func([]string) *llmtest.Failure { return &llmtest.Failure{Status: http.StatusServiceUnavailable} })
	store, w := embeddingWorker(t, pool, "one", embeddings(t, server, "fake"))
	startWorker(t, w)
	id := conversation(t, store)
	head := talk(t, store, id, uuid.Nil, 2)
	check.Eventually(t, "a failed request", func() bool { return len(server.Inputs()) > 0 })
	talk(t, store, id, head.ID, 2)
	untilCounts(t, pool, 1, "the job's wait", "select count(*) from river_job where kind = 'embedding' and state in ('scheduled', 'available') and attempt = 0")
	server.Fail(nil)
	check.Eventually(t, "all vectors", func() bool { return lacking(t, pool, "fake") == 0 && unfinishedJobs(t, pool) == 0 })
}

// A refused text keeps no other from its vector, and isn't asked for again. If all are refused, none is given up.
func TestRefusedTexts(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(10))
	store := tree.New(pool)
	server := llmtest.NewEmbeddingServer(t)
	e := embeddings(t, server, "fake")
	id := conversation(t, store)
	head := talk(t, store, id, uuid.Nil, 5)
	bad := add(t, store, id, head.ID, `{"role":"user","content":"forbidden"}`)
	server.Fail(func([]string) *llmtest.Failure { return &llmtest.Failure{Status: http.StatusNotFound} })
	if saved, left, err := e.Step(t.Context(), store, id, 0); saved != 0 || left != 11 || err == nil {
		t.Errorf("an unknown model: %d of %d saved, %v", saved, left, err)
	}
	refuse := func(text string) bool { return text == "forbidden" || text == "f" || text == "fo" }
	server.Fail(func(texts []string) *llmtest.Failure {
		if slices.ContainsFunc(texts, refuse) {
			return &llmtest.Failure{Status: http.StatusBadRequest}
		}
		return nil
	})
	if saved, found, err := e.Step(t.Context(), store, id, 0); saved != 11 || found != 11 || err != nil {
		t.Errorf("%d of %d saved, %v", saved, found, err)
	}
	counts(t, pool, 1, "marks of the refused text", "select count(*) from embeddings where message_id = $1 and vector is null", bad.ID)
	counts(t, pool, 10, "vectors", "select count(*) from embeddings where vector is not null")
}

// Vectors go with their messages, and a fork has its own.
func TestVectorsGoWithTheirMessages(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	server := llmtest.NewEmbeddingServer(t)
	e := embeddings(t, server, "fake")
	store := tree.New(pool)
	id := conversation(t, store)
	first := talk(t, store, id, uuid.Nil, 2)
	last := talk(t, store, id, first.ID, 2)
	if saved, _, err := e.Step(t.Context(), store, id, 0); saved != 8 || err != nil {
		t.Fatal(saved, err)
	}
	asked := len(server.Inputs())
	fork := check.Must3(store.Fork(t.Context(), id, last.ID, tree.NewConversation{}))(t)
	if saved, left, err := e.Step(t.Context(), store, fork.ID, 0); saved+left != 0 || err != nil || len(server.Inputs()) != asked {
		t.Errorf("the fork's messages were embedded again: %d, %d, %v", saved, left, err)
	}
	counts(t, pool, 8, "vectors of the fork", "select count(*) from embeddings e join nodes n using (conversation_id) where n.id = e.message_id and e.conversation_id = $1", fork.ID)
	check.Must(store.Prune(t.Context(), id, first.ID))(t)
	counts(t, pool, 3, "vectors after a prune", "select count(*) from embeddings where conversation_id = $1", id)
	check.NoError(t, store.DeleteConversation(t.Context(), fork.ID))
	counts(t, pool, 3, "vectors after a deletion", "select count(*) from embeddings")
}

// A tenant with many vectors has pgvector's index, and finds its oldest message. Without pgvector nothing fails.
func TestLargeTenantsIndex(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t, dbtest.MaxConns(6))
	server := llmtest.NewEmbeddingServer(t, []string{"violin", "fiddle"}, []string{"number"})
	e := embeddings(t, server, "it's a \\ model")
	_, w := embeddingWorker(t, pool, "one", e)
	store := tree.New(pool).ForTenant("large")
	id := conversation(t, store)
	messages := []tree.NewMessage{{Message: chat.Read(messageBody("user", "The violin is sold."))}}
	for i := range tree.ManyEmbeddings + 10 {
		messages = append(messages, tree.Text(tree.RoleUser, fmt.Sprintf("Number %d.", i)))
	}
	parent, first := uuid.Nil, uuid.Nil
	for len(messages) > 0 {
		some := messages[:min(len(messages), tree.MaxChain)]
		stored := check.Must(store.AppendChain(t.Context(), id, parent, some))(t)
		if first == uuid.Nil {
			first = stored.Messages[0].ID
		}
		parent, messages = stored.Messages[len(stored.Messages)-1].ID, messages[len(some):]
	}
	// The vectors that the model would give, in one statement; the violin's is the oldest.
	check.Must(pool.Exec(t.Context(), `insert into embeddings (conversation_id, message_id, model, tenant_key, stamp, vector)
		select n.conversation_id, n.id, $1, $2, n.depth, 
			case when n.depth = 0 then '\xff8080'::bytea else 
				set_byte(set_byte(set_byte('\x808080', 0, 128 + n.depth % 100), 1, 130 + n.depth * 7 % 120), 2, 128 + n.depth * 13 % 120) end from nodes n`, e.Model(), db.TenantKey("large")))(t)
	small := tree.New(pool).ForTenant("small")
	other := add(t, small, conversation(t, small), uuid.Nil, `{"role":"user","content":"A violin as well."}`)
	if _, _, err := e.Step(t.Context(), small, other.ConversationID, 0); err != nil {
		t.Fatal(err)
	}

	extension := count(t, pool, "select count(*) from pg_available_extensions where name = 'vector'") > 0
	if extension {
		check.Must(pool.Exec(t.Context(), "create extension vector"))(t)
	} else {
		t.Log("this Postgres has no pgvector: only what happens without it is tested")
	}
	for _, tenant := range []string{"large", "small"} {
		w.index(t.Context(), tenant)
	}
	want := 0
	if extension {
		want = 1
	}
	check.Equal(t, "jobs that make an index", count(t, pool, "select count(*) from river_job where kind = 'embedding_index'"), want)
	startWorker(t, w)
	check.Eventually(t, "the index", func() bool {
		return count(t, pool, "select count(*) from pg_class where relname like 'embeddings\\_nearest\\_%'") == want &&
			count(t, pool, "select count(*) from river_job where kind = 'embedding_index' and state <> 'completed'") == 0
	})

	question := e.Question(t.Context(), "Where is my fiddle?")
	places, indexed, err := store.Index().NearestEmbeddings(t.Context(), e.Model(), question.Stored(), 5)
	check.Need(t, err == nil && indexed == extension, "an index was asked: %t, %v", indexed, err)
	for _, p := range places {
		check.That(t, p.ConversationID == id, "%v is another tenant's", p)
	}
	answer := check.Must(search.New(0, search.WithEmbeddings(e)).RecallTenant(t.Context(), store, search.Question{Query: "Where is my fiddle?", Limit: 1}))(t)
	check.Equal(t, "that the oldest message is found", len(answer.Hits) == 1 && answer.Hits[0].Message.ID == first, extension)
	if !extension {
		return
	}
	check.That(t, places[0].MessageID == first, "the nearest is %v, want %s", places[0], first)
	if _, indexed, err := small.Index().NearestEmbeddings(t.Context(), e.Model(), question.Stored(), 5); indexed || err != nil {
		t.Errorf("a small tenant has an index: %t, %v", indexed, err)
	}
	talk(t, store, id, parent, 1) // stored into the index, too
	if _, _, err := e.Step(t.Context(), store, id, 0); err != nil {
		t.Error(err)
	}
}

package jobs

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/tree"
)

// A tenant with many vectors gets pgvector's index of its own where the database
// has the extension, and a question over the tenant then finds the oldest message
// by its vector. Without the extension, nothing fails, and the newest are compared.
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
		messages = append(messages, tree.NewMessage{Message: chat.Read(messageBody("user", fmt.Sprintf("Number %d.", i)))})
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
	if n := count(t, pool, "select count(*) from river_job where kind = 'embedding_index'"); n != want {
		t.Errorf("%d jobs that make an index, want %d", n, want)
	}
	startWorker(t, w)
	check.Eventually(t, "the index", func() bool {
		return count(t, pool, "select count(*) from pg_class where relname like 'embeddings\\_nearest\\_%'") == want &&
			count(t, pool, "select count(*) from river_job where kind = 'embedding_index' and state <> 'completed'") == 0
	})

	question := e.Question(t.Context(), "Where is my fiddle?")
	places, indexed, err := store.Index().NearestEmbeddings(t.Context(), e.Model(), question.Stored(), 5)
	if err != nil || indexed != extension {
		t.Fatalf("an index was asked: %t, %v", indexed, err)
	}
	for _, p := range places {
		if p.ConversationID != id {
			t.Errorf("%v is another tenant's", p)
		}
	}
	answer := check.Must(search.New(0, search.WithEmbeddings(e)).RecallTenant(t.Context(), store, search.Question{Query: "Where is my fiddle?", Limit: 1}))(t)
	if found := len(answer.Hits) == 1 && answer.Hits[0].Message.ID == first; found != extension {
		t.Errorf("the oldest message was found: %t, with the extension: %t", found, extension)
	}
	if !extension {
		return
	}
	if places[0].MessageID != first {
		t.Errorf("the nearest is %v, want %s", places[0], first)
	}
	if _, indexed, err := small.Index().NearestEmbeddings(t.Context(), e.Model(), question.Stored(), 5); indexed || err != nil {
		t.Errorf("a small tenant has an index: %t, %v", indexed, err)
	}
	talk(t, store, id, parent, 1) // stored into the index, too
	if _, _, err := e.Step(t.Context(), store, id, 0); err != nil {
		t.Error(err)
	}
}

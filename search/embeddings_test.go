package search_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/search/embed"
	"github.com/coppice-chat/coppice/tree"
)

// concepts of the fake model: words of a list mean the same to it.
var concepts = [][]string{
	{"violin", "fiddle", "stringed instrument"},
	{"sold", "gave away for money", "get rid of"},
	{"tulip", "spring flower"},
	{"bicycle", "two-wheeler"},
}

func embeddings(t testing.TB, server *llmtest.EmbeddingServer, model string) *embed.Service {
	t.Helper()
	e := check.Must(llm.NewOpenAIEmbedder(llm.OpenAIConfig{BaseURL: server.URL(), Model: model, HTTPClient: server.Client()}, 0))(t)
	return embed.New(embed.Config{Model: e, QuestionTimeout: time.Minute})
}

// embedAll embeds all messages of a conversation.
func embedAll(t testing.TB, e *embed.Service, s *tree.Store, id uuid.UUID) {
	t.Helper()
	for {
		_, found, err := e.Step(t.Context(), s, id, 0)
		check.NoError(t, err)
		if found == 0 {
			return
		}
	}
}

func hitIDs(a search.Answer) (ids []uuid.UUID) {
	for _, h := range a.Hits {
		ids = append(ids, h.Message.ID)
	}
	return ids
}

// A paraphrase without a common word is found with embeddings and not without, in every scope.
func TestParaphraseIsFoundByItsVector(t *testing.T) {
	t.Parallel()
	store := search.NewStore()
	server := llmtest.NewEmbeddingServer(t, concepts...)
	e := embeddings(t, server, "fake")
	id, other := conversation(t, store), conversation(t, store)
	ids := chain(t, store, id, uuid.Nil,
		said(tree.RoleUser, "My violin was sold in May."), said(tree.RoleAssistant, "Noted."), said(tree.RoleUser, "Tulips come next."))
	chain(t, store, other, uuid.Nil, said(tree.RoleUser, "A bicycle stands in the yard."))
	embedAll(t, e, store, id)
	embedAll(t, e, store, other)
	const question = "Which stringed instrument did he get rid of?"
	for _, scope := range []search.Scope{search.ScopeBranch, search.ScopeConversation, search.ScopeTenant} {
		q := search.Question{Query: question, Scope: scope, Limit: 1}
		words := check.Must(search.New(0).Recall(t.Context(), store, id, ids[2], q))(t)
		check.That(t, len(words.Hits) == 0 && words.Ranking == "", "%s: words alone find %v by %s", scope, hitIDs(words), words.Ranking)
		fused := check.Must(search.New(0, search.WithEmbeddings(e)).Recall(t.Context(), store, id, ids[2], q))(t)
		check.That(t, slices.Equal(hitIDs(fused), ids[:1]) && fused.Ranking == search.RankingEmbeddings,
			"%s: vectors find %v by %s, want %s", scope, hitIDs(fused), fused.Ranking, ids[0])
	}
	found, err := search.New(0, search.WithEmbeddings(e)).RecallTenant(t.Context(), store, search.Question{Query: "Where is that two-wheeler?", Limit: 1})
	check.That(t, err == nil && len(found.Hits) == 1 && found.Hits[0].Message.ConversationID == other, "over the tenant: %v, %v", hitIDs(found), err)
	foreign, err := search.New(0, search.WithEmbeddings(e)).RecallTenant(t.Context(), store.ForTenant("another"), search.Question{Query: question})
	check.That(t, err == nil && len(foreign.Hits) == 0, "another tenant finds %v, %v", hitIDs(foreign), err)
}

// A charged embedder notes whose account each call is on.
type charged struct {
	llm.Embedder
	tenants []string
}

func (e *charged) Embed(ctx context.Context, texts []string) (llm.Embeddings, error) {
	e.tenants = append(e.tenants, access.TenantOf(ctx))
	return e.Embedder.Embed(ctx, texts)
}

// What embeddings cost, of messages and of questions, is on the tenant's account.
func TestEmbeddingsAreOnTheTenantsAccount(t *testing.T) {
	t.Parallel()
	store := search.NewStore().ForTenant("payer")
	server := llmtest.NewEmbeddingServer(t, concepts...)
	model := &charged{Embedder: check.Must(llm.NewOpenAIEmbedder(llm.OpenAIConfig{BaseURL: server.URL(), Model: "fake", HTTPClient: server.Client()}, 0))(t)}
	e := embed.New(embed.Config{Model: model, QuestionTimeout: time.Minute})
	id := conversation(t, store)
	ids := chain(t, store, id, uuid.Nil, said(tree.RoleUser, "My violin was sold in May."))
	embedAll(t, e, store, id)
	s, q := search.New(0, search.WithEmbeddings(e)), search.Question{Query: "Which fiddle?", Scope: search.ScopeBranch}
	check.Must(s.Recall(t.Context(), store, id, ids[0], q))(t)
	check.Must(s.RecallTenant(t.Context(), store, q))(t)
	want := []string{"payer", "payer", "payer"}
	check.That(t, slices.Equal(model.tenants, want), "calls were on the account of %q, want %q", model.tenants, want)
}

// A vector of a message's text isn't stored for another message that took its id.
func TestVectorOfAPrunedMessageIsNotStored(t *testing.T) {
	t.Parallel()
	store := search.NewStore()
	id := conversation(t, store)
	n := said(tree.RoleUser, "The violin.")
	n.ID = uuid.Must(uuid.NewV7())
	chain(t, store, id, uuid.Nil, n)
	lacking, err := store.Index().Unembedded(t.Context(), id, "fake", 0, 10)
	check.Need(t, err == nil && len(lacking) == 1, "%v, %v", lacking, err)
	check.Must(store.Prune(t.Context(), id, n.ID))(t)
	n.Message = said(tree.RoleUser, "Coffee.").Message
	chain(t, store, id, uuid.Nil, n)
	saved, err := store.Index().SaveEmbeddings(t.Context(), id, "fake", []tree.Embedding{{MessageID: n.ID, Version: lacking[0].Version, Vector: []byte{255}}})
	check.That(t, err == nil && saved == 0, "%d stored, %v", saved, err)
	lacking, err = store.Index().Unembedded(t.Context(), id, "fake", 0, 10)
	check.That(t, err == nil && len(lacking) == 1, "%d lack a vector, %v", len(lacking), err)
}

// While the provider fails in whichever way, recall answers by words.
func TestBrokenProviderNeverFailsARecall(t *testing.T) {
	t.Parallel()
	store := search.NewStore()
	server := llmtest.NewEmbeddingServer(t, concepts...)
	id := conversation(t, store)
	ids := chain(t, store, id, uuid.Nil, said(tree.RoleUser, "My violin was sold in May."), said(tree.RoleAssistant, "Noted."))
	embedAll(t, embeddings(t, server, "fake"), store, id)
	release := make(chan struct{})
	t.Cleanup(func() { close(release) })
	for name, f := range map[string]func([]string) *llmtest.Failure{
		"500": func([]string) *llmtest.Failure { return &llmtest.Failure{Status: http.StatusInternalServerError} },
		"429": func([]string) *llmtest.Failure {
			return &llmtest.Failure{Status: http.StatusTooManyRequests, RetryAfter: time.Hour}
		},
		"401": func([]string) *llmtest.Failure { return &llmtest.Failure{Status: http.StatusUnauthorized} },
		"no JSON": func([]string) *llmtest.Failure {
			return &llmtest.Failure{Status: http.StatusOK, NotJSON: true, Message: "hello"}
		},
		"empty": func([]string) *llmtest.Failure { return &llmtest.Failure{Status: http.StatusOK, NotJSON: true} },
		"hangs": func([]string) *llmtest.Failure { <-release; return nil },
	} {
		server.Fail(f)
		model := check.Must(llm.NewOpenAIEmbedder(llm.OpenAIConfig{BaseURL: server.URL(), Model: "fake", HTTPClient: server.Client()}, 0))(t)
		s := search.New(0, search.WithEmbeddings(embed.New(embed.Config{Model: model, QuestionTimeout: 50 * time.Millisecond})))
		before := len(server.Inputs())
		for range 6 {
			a, err := s.Recall(t.Context(), store, id, ids[1], search.Question{Query: "the violin", Scope: search.ScopeBranch, Limit: 1})
			check.That(t, err == nil && slices.Equal(hitIDs(a), ids[:1]) && a.Ranking == search.RankingWords,
				"%s: %v by %s, %v", name, hitIDs(a), a.Ranking, err)
		}
		calls := len(server.Inputs()) - before
		check.That(t, calls <= 3, "%s: the model was asked %d times in a row", name, calls)
	}
}

// No vector brings a message that is not on the branch, whatever the tree.
func TestVectorsStayOnTheBranch(t *testing.T) {
	t.Parallel()
	store := search.NewStore()
	server := llmtest.NewEmbeddingServer(t, concepts...)
	e := embeddings(t, server, "fake")
	s := search.New(0, search.WithEmbeddings(e))
	words := []string{"violin", "fiddle", "sold", "tulip", "bicycle", "coffee", "spring flower"}
	rapid.Check(t, func(rt *rapid.T) {
		id := conversation(t, store)
		paths := map[uuid.UUID][]uuid.UUID{uuid.Nil: nil}
		all := []uuid.UUID{uuid.Nil}
		for range rapid.IntRange(2, 12).Draw(rt, "messages") {
			parent := rapid.SampledFrom(all).Draw(rt, "parent")
			text := rapid.SampledFrom(words).Draw(rt, "word") + " " + rapid.SampledFrom(words).Draw(rt, "other word")
			m := chain(t, store, id, parent, said(tree.RoleUser, text))[0]
			paths[m] = append(slices.Clone(paths[parent]), m)
			all = append(all, m)
			if rapid.Bool().Draw(rt, "embedded") {
				embedAll(t, e, store, id)
			}
			head := rapid.SampledFrom(all[1:]).Draw(rt, "head")
			question := rapid.SampledFrom(words).Draw(rt, "question")
			a := check.Must(s.Recall(t.Context(), store, id, head, search.Question{Query: question, Scope: search.ScopeBranch}))(rt)
			for _, h := range a.Hits {
				for _, m := range append(append([]tree.Message{h.Message}, h.Before...), h.After...) {
					check.Need(rt, slices.Contains(paths[head], m.ID), "%s is not on the path to %s", m.ID, head)
				}
			}
		}
	})
}

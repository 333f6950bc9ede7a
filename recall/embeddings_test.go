package recall_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/recall"
	"github.com/coppice-chat/coppice/recall/embed"
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
	e, err := llm.NewOpenAIEmbedder(llm.OpenAIConfig{BaseURL: server.URL(), Model: model, HTTPClient: server.Client()}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return embed.New(embed.Config{Model: e, QuestionTimeout: time.Minute})
}

// embedAll embeds all messages of a conversation.
func embedAll(t testing.TB, e *embed.Service, s *tree.Store, id uuid.UUID) {
	t.Helper()
	for {
		_, left, err := e.Step(t.Context(), s, id)
		if err != nil {
			t.Fatal(err)
		}
		if left == 0 {
			return
		}
	}
}

func hitIDs(a recall.Answer) (ids []uuid.UUID) {
	for _, h := range a.Hits {
		ids = append(ids, h.Message.ID)
	}
	return ids
}

// A paraphrase without a common word is found with embeddings and not without,
// in every scope.
func TestParaphraseIsFoundByItsVector(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	server := llmtest.NewEmbeddingServer(t, concepts...)
	e := embeddings(t, server, "fake")
	id, other := conversation(t, store), conversation(t, store)
	ids := chain(t, store, id, uuid.Nil,
		said(tree.RoleUser, "My violin was sold in May."), said(tree.RoleAssistant, "Noted."), said(tree.RoleUser, "Tulips come next."))
	chain(t, store, other, uuid.Nil, said(tree.RoleUser, "A bicycle stands in the yard."))
	embedAll(t, e, store, id)
	embedAll(t, e, store, other)
	const question = "Which stringed instrument did he get rid of?"
	for _, scope := range []recall.Scope{recall.ScopeBranch, recall.ScopeConversation, recall.ScopeTenant} {
		q := recall.Question{Query: question, Scope: scope, Limit: 1}
		words, err := recall.New(0).Recall(t.Context(), store, id, ids[2], q)
		if err != nil {
			t.Fatal(err)
		}
		if len(words.Hits) != 0 || words.Ranking != "" {
			t.Errorf("%s: words alone find %v by %s", scope, hitIDs(words), words.Ranking)
		}
		fused, err := recall.New(0, recall.WithEmbeddings(e)).Recall(t.Context(), store, id, ids[2], q)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(hitIDs(fused), ids[:1]) || fused.Ranking != recall.RankingEmbeddings {
			t.Errorf("%s: vectors find %v by %s, want %s", scope, hitIDs(fused), fused.Ranking, ids[0])
		}
	}
	found, err := recall.New(0, recall.WithEmbeddings(e)).RecallTenant(t.Context(), store, recall.Question{Query: "Where is that two-wheeler?", Limit: 1})
	if err != nil || len(found.Hits) != 1 || found.Hits[0].Message.ConversationID != other {
		t.Errorf("over the tenant: %v, %v", hitIDs(found), err)
	}
	if foreign, err := recall.New(0, recall.WithEmbeddings(e)).RecallTenant(t.Context(), store.ForTenant("another"), recall.Question{Query: question}); err != nil || len(foreign.Hits) != 0 {
		t.Errorf("another tenant finds %v, %v", hitIDs(foreign), err)
	}
}

// What comes after the first question is found by the second, and a vector of
// another model or of a pruned message is not.
func TestVectorsFollowTheTree(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	server := llmtest.NewEmbeddingServer(t, concepts...)
	e := embeddings(t, server, "fake")
	s := recall.New(0, recall.WithEmbeddings(e))
	id := conversation(t, store)
	first := chain(t, store, id, uuid.Nil, said(tree.RoleUser, "Tulips."))[0]
	embedAll(t, e, store, id)
	ask := func(s *recall.Service, head uuid.UUID) recall.Answer {
		t.Helper()
		a, err := s.Recall(t.Context(), store, id, head, recall.Question{Query: "the fiddle", Scope: recall.ScopeBranch})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	if a := ask(s, first); len(a.Hits) != 0 {
		t.Errorf("found %v", hitIDs(a))
	}
	n := said(tree.RoleUser, "The violin.")
	n.ID = uuid.Must(uuid.NewV7())
	head := chain(t, store, id, first, n)[0]
	if a := ask(s, head); len(a.Hits) != 0 {
		t.Errorf("found %v before it was embedded", hitIDs(a))
	}
	embedAll(t, e, store, id)
	if a := ask(s, head); !slices.Equal(hitIDs(a), []uuid.UUID{head}) {
		t.Errorf("found %v, want %s", hitIDs(a), head)
	}
	if a := ask(recall.New(0, recall.WithEmbeddings(embeddings(t, server, "another"))), head); len(a.Hits) != 0 || a.Ranking != recall.RankingWords {
		t.Errorf("another model's vectors find %v", hitIDs(a))
	}

	if _, err := store.Prune(t.Context(), id, head); err != nil {
		t.Fatal(err)
	}
	n.Body = said(tree.RoleUser, "Coffee is ready.").Body
	chain(t, store, id, first, n)
	for _, s := range []*recall.Service{s, recall.New(0, recall.WithEmbeddings(e))} {
		if a := ask(s, head); len(a.Hits) != 0 {
			t.Errorf("a message is found by what another one said under its id: %v", hitIDs(a))
		}
	}
}

// A vector that was made of a message's text isn't stored for another message
// that took its id meanwhile.
func TestVectorOfAPrunedMessageIsNotStored(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	id := conversation(t, store)
	n := said(tree.RoleUser, "The violin.")
	n.ID = uuid.Must(uuid.NewV7())
	chain(t, store, id, uuid.Nil, n)
	lacking, missing, err := store.Unembedded(t.Context(), id, "fake", 10)
	if err != nil || missing != 1 {
		t.Fatal(missing, err)
	}
	if _, err := store.Prune(t.Context(), id, n.ID); err != nil {
		t.Fatal(err)
	}
	n.Body = said(tree.RoleUser, "Coffee.").Body
	chain(t, store, id, uuid.Nil, n)
	saved, err := store.SaveEmbeddings(t.Context(), id, "fake", []tree.Embedding{{MessageID: n.ID, Version: lacking[0].Version, Vector: []byte{255}}})
	if err != nil || saved != 0 {
		t.Errorf("%d stored, %v", saved, err)
	}
	if _, missing, err := store.Unembedded(t.Context(), id, "fake", 10); err != nil || missing != 1 {
		t.Errorf("%d lack a vector, %v", missing, err)
	}
}

// While the provider fails in whichever way, recall answers by words.
func TestBrokenProviderNeverFailsARecall(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
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
		model, err := llm.NewOpenAIEmbedder(llm.OpenAIConfig{BaseURL: server.URL(), Model: "fake", HTTPClient: server.Client()}, 0)
		if err != nil {
			t.Fatal(err)
		}
		s := recall.New(0, recall.WithEmbeddings(embed.New(embed.Config{Model: model, QuestionTimeout: 50 * time.Millisecond})))
		before := len(server.Inputs())
		for range 6 {
			a, err := s.Recall(t.Context(), store, id, ids[1], recall.Question{Query: "the violin", Scope: recall.ScopeBranch, Limit: 1})
			if err != nil || !slices.Equal(hitIDs(a), ids[:1]) || a.Ranking != recall.RankingWords {
				t.Errorf("%s: %v by %s, %v", name, hitIDs(a), a.Ranking, err)
			}
		}
		if calls := len(server.Inputs()) - before; calls > 3 {
			t.Errorf("%s: the model was asked %d times in a row", name, calls)
		}
	}
}

// Ranks are fused by the sum of 1/(60 + rank).
func TestFusedOrder(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	server := llmtest.NewEmbeddingServer(t, concepts...)
	e := embeddings(t, server, "fake")
	id := conversation(t, store)
	filler := strings.Repeat("Nothing of note was said on that long and quiet day in the house. ", 12)
	texts := []string{
		"The violin was sold in May to a friend of the family from the town.",  // words and vector
		"My fiddle: I gave away for money what I had, in the end, last year.",  // vector alone
		"The violinist of the orchestra came to dinner and stayed until late.", // the vector's violin
		"What may be sold here, and by whom, is written on the board outside.", // words, and half of the vector
		"Tulips stand in a row along the fence and wait for the sun to shine.", // neither
	}
	var messages []tree.NewMessage
	for _, text := range texts {
		for range 3 { // so that no neighbour counts for it
			messages = append(messages, said(tree.RoleAssistant, filler))
		}
		messages = append(messages, said(tree.RoleUser, text))
	}
	ids := chain(t, store, id, uuid.Nil, messages...)
	embedAll(t, e, store, id)
	a, err := recall.New(0, recall.WithEmbeddings(e)).Recall(t.Context(), store, id, uuid.Nil, recall.Question{Query: "violin sold", Scope: recall.ScopeBranch, Limit: 4})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range a.Hits {
		got = append(got, fmt.Sprintf("%.4f %s", h.Score, texts[slices.Index(ids, h.Message.ID)/4]))
	}
	const want = `0.0325 The violin was sold in May to a friend of the family from the town.
0.0317 What may be sold here, and by whom, is written on the board outside.
0.0297 My fiddle: I gave away for money what I had, in the end, last year.
0.0286 The violinist of the orchestra came to dinner and stayed until late.`
	if out := strings.Join(got, "\n"); out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
}

// No vector brings a message that is not on the branch, whatever the tree.
func TestVectorsStayOnTheBranch(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	store := tree.New(pool)
	server := llmtest.NewEmbeddingServer(t, concepts...)
	e := embeddings(t, server, "fake")
	s := recall.New(0, recall.WithEmbeddings(e))
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
			a, err := s.Recall(t.Context(), store, id, head, recall.Question{Query: question, Scope: recall.ScopeBranch})
			if err != nil {
				rt.Fatal(err)
			}
			for _, h := range a.Hits {
				for _, m := range append(append([]tree.Message{h.Message}, h.Before...), h.After...) {
					if !slices.Contains(paths[head], m.ID) {
						rt.Fatalf("%s is not on the path to %s", m.ID, head)
					}
				}
			}
		}
	})
}

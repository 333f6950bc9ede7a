package search_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/tree"
)

func ask(t testing.TB, s *search.Service, store *tree.Store, conversationID, head uuid.UUID, q search.Question) search.Answer {
	t.Helper()
	return check.Must(s.Recall(t.Context(), store, conversationID, head, q))(t)
}

func code(err error) string {
	var e *fault.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// Input that can't be answered says what to fix, and costs nothing.
func TestBadQuestions(t *testing.T) {
	t.Parallel()
	store := search.NewStore()
	id := conversation(t, store)
	head := chain(t, store, id, uuid.Nil, said(tree.RoleUser, "Hello."))[0]
	s := search.New(0)
	for _, test := range []struct {
		q        search.Question
		code     string
		id, head uuid.UUID
	}{
		{search.Question{}, "empty_query", id, head},
		{search.Question{Query: " ?! "}, "empty_query", id, head},
		{search.Question{Query: strings.Repeat("a ", search.MaxQueryBytes)}, "query_too_large", id, head},
		{search.Question{Query: "a", Limit: -1}, "invalid_limit", id, head},
		{search.Question{Query: "a", Limit: search.MaxLimit + 1}, "invalid_limit", id, head},
		{search.Question{Query: "a", MaxTokens: search.MaxMaxTokens + 1}, "invalid_parameter", id, head},
		{search.Question{Query: "a", Scope: "all"}, "invalid_parameter", id, head},
		{search.Question{Query: "a"}, "conversation_not_found", uuid.New(), head},
		{search.Question{Query: "a"}, "message_not_found", id, uuid.New()},
	} {
		check.Equal(t, fmt.Sprintf("%+v", test.q), code(second(s.Recall(t.Context(), store, test.id, test.head, test.q))), test.code)
	}
	a := ask(t, s, store, id, head, search.Question{Query: "hello"})
	check.That(t, len(a.Hits) == 0 && a.Searched == 0, "nothing is folded, and yet %+v", a)
}

// An answer ends at a page's bytes, without the worst hits: reasoning has no tokens.
func TestAnswersHaveBoundedBytes(t *testing.T) {
	t.Parallel()
	s, store := search.New(0), search.NewStore()
	id := conversation(t, store)
	var head uuid.UUID
	for range 12 {
		m := said(tree.RoleAssistant, "A hazel.")
		m.Reasoning = strings.Repeat("x", 500<<10)
		head = mustAppend(t, store, id, head, m).ID
	}
	q := search.Question{Query: "hazel", Scope: search.ScopeBranch, Limit: 12}
	a := ask(t, s, store, id, head, q)
	check.That(t, len(a.Hits) == 9 && a.Omitted == 3, "%d hits, and %d are omitted", len(a.Hits), a.Omitted)
	a, err := s.RecallTenant(t.Context(), store, q)
	check.That(t, err == nil && len(a.Hits) == 9 && a.Omitted == 3, "of the tenant %d hits, and %d are omitted: %v", len(a.Hits), a.Omitted, err)
}

// What other branches say neither comes nor changes the scores of what does.
func TestOtherBranchesDontCount(t *testing.T) {
	t.Parallel()
	s, store, q := search.New(0), search.NewStore(), search.Question{Query: "hazel and ash", Scope: search.ScopeBranch}
	id := conversation(t, store)
	root := chain(t, store, id, uuid.Nil, said(tree.RoleUser, "Name trees."))[0]
	branch := chain(t, store, id, root, said(tree.RoleAssistant, "A hazel."), said(tree.RoleUser, "And an ash."), said(tree.RoleAssistant, "Both grow again."))
	before := ask(t, s, store, id, branch[2], q)
	for range 5 {
		chain(t, store, id, root, said(tree.RoleAssistant, "An ash, an ash, and an ash beside a hazel."))
	}
	ask(t, s, store, id, branch[2], search.Question{Query: q.Query, Scope: search.ScopeConversation}) // its index has all of them now
	after := ask(t, s, store, id, branch[2], q)
	check.Need(t, len(before.Hits) != 0 && len(after.Hits) == len(before.Hits),
		"%d hits, and %d when others have spoken", len(before.Hits), len(after.Hits))
	for i, h := range after.Hits {
		was := before.Hits[i]
		check.That(t, h.Message.ID == was.Message.ID && h.Score == was.Score,
			"hit %d is %s with %v, and was %s with %v", i, h.Message.ID, h.Score, was.Message.ID, was.Score)
	}
}

// A question reads a bounded part, the newest first, and says so. The next ones read on.
func TestQuestionsReadInParts(t *testing.T) {
	t.Parallel()
	store := search.NewStore()
	id := conversation(t, store)
	ids := chain(t, store, id, uuid.Nil, users(45, func(i int) string { return fmt.Sprintf("hazel %02d", i) })...) // 8 bytes each
	for _, scope := range []search.Scope{search.ScopeBranch, search.ScopeConversation, search.ScopeTenant} {
		s := search.New(0, search.WithMostRead(20*8))
		for i, searched := range []int{20, 40, 45} {
			a := ask(t, s, store, id, uuid.Nil, search.Question{Query: "00 hazel", Scope: scope, Limit: search.MaxLimit})
			complete := searched == len(ids)
			check.That(t, a.Searched == searched && a.Incomplete != complete && len(a.Hits) == searched && (a.Hits[0].Message.ID == ids[0]) == complete,
				"%s, question %d: %d hits of %d messages, incomplete %t", scope, i, len(a.Hits), a.Searched, a.Incomplete)
			for _, h := range a.Hits {
				check.That(t, h.Message.Depth >= len(ids)-searched, "%s, question %d finds message %d", scope, i, h.Message.Depth)
			}
		}
	}
}

// Another tenant's conversation doesn't exist, also where its index is in memory.
func TestTenants(t *testing.T) {
	t.Parallel()
	mine := search.NewStore()
	theirs := mine.ForTenant("other")
	id := conversation(t, mine)
	head := chain(t, mine, id, uuid.Nil, said(tree.RoleUser, "The violin is sold."))[0]
	s := search.New(0)
	q := search.Question{Query: "violin", Scope: search.ScopeConversation}
	a := ask(t, s, mine, id, head, q)
	check.Need(t, len(a.Hits) == 1, "%+v", a)
	check.Equal(t, "another tenant", code(second(s.Recall(t.Context(), theirs, id, head, q))), "conversation_not_found")
}

// What was pruned on one server isn't found on another whose memory has it.
func TestPrunedIsGone(t *testing.T) {
	t.Parallel()
	store := search.NewStore()
	id := conversation(t, store)
	ids := chain(t, store, id, uuid.Nil, said(tree.RoleUser, "One."), said(tree.RoleAssistant, "Two."))
	other := chain(t, store, id, ids[1], said(tree.RoleUser, "Another branch."))[0]
	// The later sibling: the prune of the earlier one would change the version of the other.
	ids = append(ids, chain(t, store, id, ids[1], said(tree.RoleUser, "The violin is sold."))...)
	s := search.New(0)
	q := search.Question{Query: "violin", Scope: search.ScopeConversation}
	a := ask(t, s, store, id, other, q)
	check.Need(t, len(a.Hits) != 0 && a.Hits[0].Message.ID == ids[2], "%+v", a)
	q.Scope = search.ScopeBranch
	a = ask(t, s, store, id, other, q)
	check.Need(t, len(a.Hits) == 0, "found on another branch: %+v", a)
	check.Must(store.Prune(t.Context(), id, ids[2]))(t)
	check.Equal(t, "the pruned head", code(second(s.Recall(t.Context(), store, id, ids[2], q))), "message_not_found")
	q.Scope = search.ScopeConversation
	a = ask(t, s, store, id, other, q)
	check.That(t, len(a.Hits) == 0 && a.Searched == 3, "after the prune: %+v", a)
	// Under the same id another message may be stored.
	for _, below := range []bool{false, true} { // asked about, or about a message below it
		s := search.New(0)
		q.Scope = search.ScopeBranch
		id := conversation(t, store)
		ids := chain(t, store, id, uuid.Nil, said(tree.RoleUser, "One."), said(tree.RoleAssistant, "Two."), said(tree.RoleUser, "The violin is sold."))
		a := ask(t, s, store, id, ids[2], q)
		check.Need(t, len(a.Hits) == 3, "%+v", a)
		check.Must(store.Prune(t.Context(), id, ids[2]))(t)
		n := said(tree.RoleUser, "Tulips.")
		n.ID = ids[2]
		head := chain(t, store, id, ids[0], n)[0]
		if below {
			head = chain(t, store, id, head, said(tree.RoleAssistant, "In a box."))[0]
		}
		a = ask(t, s, store, id, head, q)
		check.That(t, len(a.Hits) == 0, "after the id was used again: %+v", a)
	}
}

// Beside appends, prunes and regenerations, on two servers, every answer is of its branch.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	store := search.NewStore()
	services := []*search.Service{search.New(0), search.New(30_000)}
	var conversations []uuid.UUID
	var trunks [][]uuid.UUID
	for range 3 {
		id := conversation(t, store)
		trunk := chain(t, store, id, uuid.Nil, users(60, func(i int) string { return fmt.Sprintf("Trunk number%d has a violin.", i) })...)
		conversations, trunks = append(conversations, id), append(trunks, trunk)
	}
	var wg sync.WaitGroup
	for worker := range 6 {
		wg.Go(func() {
			own := fmt.Sprintf("worker%d", worker)
			for round := range 5 {
				c := (worker + round) % len(conversations)
				at := trunks[c][(7*worker+round)%len(trunks[c])]
				stored, err := store.AppendChain(t.Context(), conversations[c], at, []tree.NewMessage{
					said(tree.RoleUser, own+" asks about the violin."), said(tree.RoleAssistant, "It is "+own+"'s."),
				})
				if err != nil {
					t.Error(err)
					return
				}
				for _, s := range services {
					a, err := s.Recall(t.Context(), store, conversations[c], stored.Messages[1].ID, search.Question{Query: own + " violin", Scope: search.ScopeBranch, MaxTokens: 50_000, Limit: 50})
					if err != nil {
						t.Error(err)
						return
					}
					mine := 0
					for _, hit := range a.Hits {
						body := string(hit.Message.Body)
						check.That(t, !strings.Contains(body, "worker") || strings.Contains(body, own), "%s found %s", own, body)
						if hit.Message.ID == stored.Messages[0].ID || hit.Message.ID == stored.Messages[1].ID {
							mine++
						}
					}
					check.That(t, mine == 2, "%s found %d of its two messages", own, mine)
				}
				if round%2 == 0 {
					if _, err := store.Prune(t.Context(), conversations[c], stored.Messages[0].ID); err != nil {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
}

package tree_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/tree"
)

// TestPagesAreBounded holds that the pages of every list end where their rows come to
// tree.MaxPageBytes, and together give every row once.
func TestPagesAreBounded(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	large := strings.Repeat("  .", 300<<10)
	thought := tree.NewMessage{Message: chat.Read(said(tree.RoleAssistant, "Hm.")), Reasoning: strings.Repeat("x", 500<<10)} // counted and indexed sooner
	var roots, children, chain, ran, conversations []uuid.UUID

	forest, line, lists := newConversation(t, s).ID, newConversation(t, s).ID, s.ForTenant("lists")
	question := must(s.Append(t.Context(), line, uuid.Nil, user("Which tree?"), tree.WithPathHash()))(t).ID
	for range 12 {
		roots = append(roots, mustAppend(t, s, forest, uuid.Nil, thought).ID)
	}
	for i := range 6 {
		answer := tree.NewMessage{Message: chat.Read(said(tree.RoleAssistant, fmt.Sprint("hazel ", i, large))), Metadata: json.RawMessage(`{"n":1}`)}
		children = append(children, mustAppend(t, s, line, question, answer).ID)
		k := must(s.RecordCompaction(t.Context(), tree.Compaction{
			ConversationID: line, ID: uuid.New(), HeadID: question, Trigger: "request", Outcome: tree.OutcomeNoGain,
			Settings: json.RawMessage("{}"), Attempts: json.RawMessage(`["` + large + `"]`),
		}, nil))(t)
		ran = append(ran, k.ID)
	}
	whole := newConversation(t, s).ID
	for _, m := range must(s.AppendChain(t.Context(), whole, uuid.Nil, slices.Repeat([]tree.NewMessage{thought}, 12)))(t).Messages {
		chain = append(chain, m.ID)
	}
	metadata := json.RawMessage(`{"of":"` + strings.Repeat("x", 60<<10) + `"}`)
	for range 80 {
		c := must3(lists.CreateConversation(t.Context(), tree.NewConversation{Title: "beech", Metadata: metadata}))(t)
		conversations = append(conversations, c.ID)
	}

	idOf := func(m tree.Message) uuid.UUID { return m.ID }
	backwards := func(ids []uuid.UUID) []uuid.UUID {
		ids = slices.Clone(ids)
		slices.Reverse(ids)
		return ids
	}
	for name, list := range map[string]struct {
		want []uuid.UUID
		rows int // of a page, which the bytes end
		page func(tree.Paging) (ids []uuid.UUID, next string, err error)
	}{
		"roots": {roots, 9, func(p tree.Paging) ([]uuid.UUID, string, error) {
			return pageOf(idOf)(s.Children(t.Context(), forest, uuid.Nil, p))
		}},
		"children": {children, 5, func(p tree.Paging) ([]uuid.UUID, string, error) {
			return pageOf(idOf)(s.Children(t.Context(), line, question, p))
		}},
		"branches": {backwards(children), 5, func(p tree.Paging) ([]uuid.UUID, string, error) {
			return pageOf(idOf)(s.Branches(t.Context(), line, p))
		}},
		"transcript": {backwards(chain), 9, func(p tree.Paging) ([]uuid.UUID, string, error) {
			ids, next, err := pageOf(idOf)(s.Transcript(t.Context(), whole, uuid.Nil, p))
			return backwards(ids), next, err
		}},
		"branch": {chain, 9, func(p tree.Paging) (ids []uuid.UUID, next string, err error) {
			messages, more, err := s.BranchFrom(t.Context(), whole, uuid.Nil, or(p.Cursor, chain[0]), p.Limit)
			for _, m := range messages {
				ids = append(ids, m.ID)
			}
			if more { // a page begins with a message of the one before
				next, ids = ids[len(ids)-1].String(), ids[:len(ids)-1]
				return append(ids, uuid.Nil), next, err
			}
			return ids, "", err
		}},
		"search": {backwards(children), 5, func(p tree.Paging) ([]uuid.UUID, string, error) {
			page, err := find(t.Context(), s, "hazel", uuid.Nil, p)
			return pageOf(idOfHit)(page.Page, err)
		}},
		"ranked": {backwards(children), 5, func(p tree.Paging) ([]uuid.UUID, string, error) {
			page, err := newSearch().Ranked(t.Context(), s, "hazel", search.Within{ConversationID: line}, p)
			return pageOf(idOfHit)(page.Page, err)
		}},
		"compactions": {backwards(ran), 5, func(p tree.Paging) ([]uuid.UUID, string, error) {
			return pageOf(func(k tree.Compaction) uuid.UUID { return k.ID })(s.Compactions(t.Context(), line, p))
		}},
		"conversations": {backwards(conversations), 69, func(p tree.Paging) ([]uuid.UUID, string, error) {
			return pageOf(idOfConversation)(lists.Conversations(t.Context(), tree.ConversationFilter{}, p))
		}},
		"conversations by a query": {backwards(conversations), 69, func(p tree.Paging) ([]uuid.UUID, string, error) {
			page, _, err := newSearch().Conversations(t.Context(), lists, tree.ConversationFilter{Query: "beech"}, p)
			return pageOf(idOfConversation)(page, err)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []uuid.UUID
			for p := (tree.Paging{Limit: 100}); ; {
				ids, next, err := list.page(p)
				noError(t, err)
				if rest := len(list.want) - len(got); len(ids) != min(list.rows, rest) {
					t.Fatalf("a page has %d of %d rows", len(ids), rest)
				}
				got = append(got, slices.DeleteFunc(ids, func(id uuid.UUID) bool { return id == uuid.Nil })...)
				if p.Cursor = next; next == "" {
					break
				}
			}
			if !slices.Equal(got, list.want) {
				t.Errorf("the pages have %v, want %v", got, list.want)
			}
		})
	}
}

func idOfHit(h tree.Hit) uuid.UUID                   { return h.Message.ID }
func idOfConversation(c tree.Conversation) uuid.UUID { return c.ID }

// pageOf gives the ids of a page, and its cursor.
func pageOf[T any](id func(T) uuid.UUID) func(tree.Page[T], error) ([]uuid.UUID, string, error) {
	return func(page tree.Page[T], err error) (ids []uuid.UUID, next string, _ error) {
		for _, row := range page.Data {
			ids = append(ids, id(row))
		}
		return ids, page.Next, err
	}
}

func or(id string, first uuid.UUID) uuid.UUID {
	if id == "" {
		return first
	}
	return uuid.MustParse(id)
}

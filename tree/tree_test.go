package tree_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/tree"
)

func noError(t check.T, err error) {
	t.Helper()
	check.NoError(t, err)
}

// must gives a call's first result, and ends the test if the call failed.
func must[T any](got T, err error) func(check.T) T { return check.Must(got, err) }

// must3 is must for a call of three results.
func must3[T, U any](got T, _ U, err error) func(check.T) T { return must(got, err) }

// paged gives what a list has on all its pages.
func paged[T any](t check.T, limit int, list func(tree.Paging) (tree.Page[T], error)) (got []T) {
	t.Helper()
	for p := (tree.Paging{Limit: limit}); ; {
		page := must(list(p))(t)
		got = append(got, page.Data...)
		if p.Cursor = page.Next; p.Cursor == "" {
			return got
		}
	}
}

// gather gives what a sequence gives, and ends the test where it fails.
func gather[T any](t check.T, seq iter.Seq2[T, error]) (got []T) {
	t.Helper()
	for v, err := range seq {
		noError(t, err)
		got = append(got, v)
	}
	return got
}

// refused wants an error of a kind.
func refused(t *testing.T, what string, err, kind error) {
	t.Helper()
	check.That(t, errors.Is(err, kind), "%s: %v, want %v", what, err, kind)
}

// newSearch has a minute for a search: the machine may be busy.
func newSearch() *search.Service { return search.New(0, search.WithTimeout(time.Minute)) }

// find searches by words.
func find(ctx context.Context, s *tree.Store, query string, in uuid.UUID, p tree.Paging) (search.Page, error) {
	return newSearch().Messages(ctx, s, query, search.Within{ConversationID: in}, p)
}

// second and third give a call's last result.
func second[T any](_ T, err error) error { return err }

func third[T, U any](_ T, _ U, err error) error { return err }

// said is a message body.
func said(role tree.Role, text string) json.RawMessage {
	body, err := json.Marshal(map[string]string{"role": string(role), "content": text})
	if err != nil {
		panic(err)
	}
	return body
}

func user(text string) tree.NewMessage {
	return tree.NewMessage{Message: chat.Read(said(tree.RoleUser, text))}
}

func raw(body string) tree.NewMessage { return tree.NewMessage{Message: chat.Read([]byte(body))} }

func newConversation(t testing.TB, s *tree.Store) tree.Conversation {
	t.Helper()
	return must3(s.CreateConversation(t.Context(), tree.NewConversation{}))(t)
}

// newTree gives a store of an empty database, and a conversation.
func newTree(t *testing.T) (*tree.Store, tree.Conversation) {
	t.Helper()
	s := tree.New(dbtest.New(t))
	return s, newConversation(t, s)
}

// newPool is newTree with the database.
func newPool(t *testing.T) (*pgxpool.Pool, *tree.Store, tree.Conversation) {
	t.Helper()
	pool := dbtest.New(t)
	s := tree.New(pool)
	return pool, s, newConversation(t, s)
}

func mustAppend(t testing.TB, s *tree.Store, conversation, parent uuid.UUID, m tree.NewMessage) tree.Message {
	t.Helper()
	return must(s.Append(t.Context(), conversation, parent, m))(t).Message
}

// counts is what must stay the same when an input is refused.
func counts(t *testing.T, s *tree.Store, id uuid.UUID) string {
	t.Helper()
	n := len(gather(t, s.Tree(t.Context(), id, 0)))
	c := must(s.Conversation(t.Context(), id))(t)
	return fmt.Sprintf("%d nodes, %s", n, c.AppendJSON(nil))
}

func (bytesCounter) Count(text string) int { return len(text) }

func TestTenants(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	mine, theirs := tree.New(pool).ForTenant("mine"), tree.New(pool).ForTenant("theirs")
	c := newConversation(t, theirs)
	m := mustAppend(t, theirs, c.ID, uuid.Nil, user("secret word"))
	own, file := newConversation(t, mine), upload(t, theirs, "secret.txt", []byte("secret"))
	ctx := t.Context()
	for name, call := range map[string]func() error{
		"Conversation":       func() error { return second(mine.Conversation(ctx, c.ID)) },
		"UpdateConversation": func() error { return second(mine.UpdateConversation(ctx, c.ID, tree.ConversationUpdate{HeadID: m.ID})) },
		"FindCall":           func() error { return second(mine.Histories().FindCall(ctx, c.ID, "x")) },
		"OpenCalls":          func() error { return second(mine.Histories().OpenCalls(ctx, c.ID, m.ID)) },
		"DeleteConversation": func() error { return mine.DeleteConversation(ctx, c.ID) },
		"Append":             func() error { return second(mine.Append(ctx, c.ID, m.ID, user("x"))) },
		"Append again": func() error {
			return second(mine.Append(ctx, c.ID, uuid.Nil, tree.NewMessage{ID: m.ID, Message: chat.Read(m.Body)}))
		},
		"AppendChain": func() error { return second(mine.AppendChain(ctx, c.ID, m.ID, []tree.NewMessage{user("x")})) },
		"Message":     func() error { return second(mine.Message(ctx, c.ID, m.ID)) },
		"Retract": func() error {
			return second(mine.Histories().Retract(ctx, c.ID, m.ID, func(tree.Message) int { return 1 }))
		},
		"Attachment":       func() error { return third(mine.Attachments().One(ctx, file.Hash)) },
		"Attachments.Text": func() error { return second(mine.Attachments().Text(ctx, file.Hash)) },
		"Append that names a file": func() error {
			return second(mine.Append(ctx, own.ID, uuid.Nil, tree.NewMessage{Message: chat.Read(naming("x", file))}))
		},
		"Answer":           func() error { return second(mine.Answer(ctx, c.ID, m.ID)) },
		"Children":         func() error { return second(mine.Children(ctx, c.ID, m.ID, tree.Paging{})) },
		"Children of none": func() error { return second(mine.Children(ctx, c.ID, uuid.Nil, tree.Paging{})) },
		"Branches":         func() error { return second(mine.Branches(ctx, c.ID, tree.Paging{})) },
		"NewestLeaf":       func() error { return second(mine.NewestLeaf(ctx, c.ID, m.ID)) },
		"Transcript":       func() error { return second(mine.Transcript(ctx, c.ID, m.ID, tree.Paging{})) },
		"Compare":          func() error { return second(mine.Compare(ctx, c.ID, m.ID, m.ID, 0)) },
		"Tree": func() error {
			for _, err := range mine.Tree(ctx, c.ID, 10) {
				return err
			}
			return nil
		},
		"Prune":  func() error { return second(mine.Prune(ctx, c.ID, m.ID)) },
		"Fork":   func() error { return third(mine.Fork(ctx, c.ID, m.ID, tree.NewConversation{})) },
		"Search": func() error { return second(find(ctx, mine, "secret", c.ID, tree.Paging{})) },
		"Summaries.Add": func() error {
			return second(mine.Summaries().Add(ctx, c.ID, tree.NewSummary{AnchorID: m.ID, Body: m.Body, Range: tree.SummaryRange{LastSummarizedID: m.ID, Model: "x"}}))
		},
		"Export":            func() error { return third(mine.Export(ctx, c.ID)) },
		"Head":              func() error { return second(mine.Head(ctx, c.ID)) },
		"View":              func() error { return second(mine.View(ctx, c.ID, m.ID, 1<<40)) },
		"View, no bodies":   func() error { return second(mine.View(ctx, c.ID, m.ID, 1<<40, tree.Skeleton())) },
		"Messages":          func() error { return second(mine.Messages(ctx, c.ID, []uuid.UUID{m.ID})) },
		"Summary":           func() error { return second(mine.Summaries().One(ctx, c.ID, m.ID)) },
		"Summaries":         func() error { return second(mine.Summaries().All(ctx, c.ID)) },
		"SummariesOnBranch": func() error { return second(mine.Summaries().OnBranch(ctx, c.ID, m.ID)) },
		"Compactions":       func() error { return second(mine.Summaries().Compactions(ctx, c.ID, tree.Paging{})) },
		"Lock":              func() error { return mine.Lock(ctx, c.ID) },
		"BranchState":       func() error { return second(mine.Index().BranchState(ctx, c.ID, m.ID)) },
		"BranchFrom":        func() error { return third(mine.Histories().BranchFrom(ctx, c.ID, m.ID, m.ID, 1)) },
		"Branch": func() error {
			for _, err := range mine.Branch(ctx, c.ID, m.ID, 0) {
				return err
			}
			return nil
		},
		"Retitle": func() error { return second(mine.Retitle(ctx, c.ID, "", "mine")) },
		"Usage":   func() error { return second(mine.Usage(ctx, c.ID)) },
		"ChangeMetadata": func() error {
			return mine.ChangeMetadata(ctx, c.ID, m.ID, func(was json.RawMessage) json.RawMessage { return was })
		},
	} {
		err := call()
		check.That(t, errors.Is(err, fault.NotFound), "%s of another tenant's conversation: %v, want ErrNotFound", name, err)
	}
	refused(t, "Import over another tenant's id", second(mine.Import(ctx, tree.Bundle{Conversation: tree.NewConversation{ID: c.ID}})), fault.Conflict)
	refused(t, "CreateConversation with another tenant's id", third(mine.CreateConversation(ctx, tree.NewConversation{ID: c.ID})), fault.Conflict)
	noError(t, mine.DeleteConversation(ctx, own.ID))
	list, err := mine.Conversations(ctx, tree.ConversationFilter{}, tree.Paging{})
	found, _, err2 := newSearch().Conversations(ctx, mine, tree.ConversationFilter{Query: "secret"}, tree.Paging{})
	hits, err3 := find(ctx, mine, "secret", uuid.Nil, tree.Paging{})
	err = errors.Join(err, err2, err3)
	check.That(t, err == nil && len(list.Data)+len(found.Data)+len(hits.Data) == 0,
		"lists show another tenant's: %v, %v, %v, %v", list, found, hits, err)
	got := counts(t, theirs, c.ID)
	check.That(t, strings.HasPrefix(got, "1 nodes"), "another tenant changed it: %s", got)
}

// A page that can't be is refused by each list.
func TestPagesRefused(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	ctx := t.Context()
	for range 2 {
		mustAppend(t, s, newConversation(t, s).ID, uuid.Nil, user("a fox"))
	}
	own := must(s.Conversations(ctx, tree.ConversationFilter{}, tree.Paging{Limit: 1}))(t).Next
	for _, p := range []tree.Paging{{Limit: -1}, {Limit: tree.MaxPage + 1}, {Cursor: "x"}, {Cursor: "!!!"}, {Cursor: strings.Repeat("f", 32)}, {Cursor: own[:len(own)/2/4*4]}, {Cursor: own + own}} {
		_, err1 := s.Conversations(ctx, tree.ConversationFilter{}, p)
		_, err2 := s.Branches(ctx, c.ID, p)
		_, err3 := s.Children(ctx, c.ID, uuid.Nil, p)
		_, err4 := find(ctx, s, "x", uuid.Nil, p)
		_, err5 := s.Transcript(ctx, c.ID, uuid.New(), p)
		for i, err := range []error{err1, err2, err3, err4, err5} {
			check.That(t, errors.Is(err, fault.Invalid), "list %d with %+v: %v, want ErrInvalid", i, p, err)
		}
	}
}

func TestAddSummaryRefuses(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	left := mustAppend(t, s, c.ID, root.ID, user("left"))
	right := mustAppend(t, s, c.ID, root.ID, user("right"))
	body := said(tree.RoleUser, "summary")
	for _, test := range []struct {
		name           string
		anchor, cutoff uuid.UUID
		body           json.RawMessage
		code           string
	}{
		{"cutoff on a sibling branch", left.ID, right.ID, body, "invalid_cutoff"},
		{"cutoff below the anchor", root.ID, left.ID, body, "invalid_cutoff"},
		{"absent cutoff", left.ID, uuid.New(), body, "invalid_cutoff"},
		{"absent anchor", uuid.New(), root.ID, body, "invalid_cutoff"},
		{"a system message", left.ID, root.ID, said(tree.RoleSystem, "summary"), "invalid_role"},
		{"no text", left.ID, root.ID, said(tree.RoleUser, ""), "empty_content"},
	} {
		_, err := s.Summaries().Add(t.Context(), c.ID, tree.NewSummary{AnchorID: test.anchor, Body: test.body,
			Range: tree.SummaryRange{LastSummarizedID: test.cutoff, Model: "test"}})
		var e *fault.Error
		check.That(t, errors.As(err, &e) && e.Code == test.code, "%s: %v, want %s", test.name, err, test.code)
	}
}

// A fork whose metadata has no room for a name of the source does without.
func TestForkOfFullMetadata(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	full := `{"a":"` + strings.Repeat("x", tree.MaxMetadataBytes-8) + `"}`
	c := must3(s.CreateConversation(t.Context(), tree.NewConversation{Metadata: json.RawMessage(full)}))(t)
	fork, _, err := s.Fork(t.Context(), c.ID, mustAppend(t, s, c.ID, uuid.Nil, user("root")).ID, tree.NewConversation{})
	check.That(t, err == nil && string(fork.Metadata) == full, "%v, metadata of %d bytes", err, len(fork.Metadata))
}

// Settings that can't stand are refused wherever they are given. Those that stand already stay.
func TestCheckingSettings(t *testing.T) {
	t.Parallel()
	lax := tree.New(dbtest.New(t))
	refusal := fault.New(fault.Invalid, "invalid_setting", "settings.bad", "It can't stand.")
	bad := json.RawMessage(`{"bad":1}`)
	store := lax.CheckingSettings(func(settings json.RawMessage) error {
		if string(settings) == string(bad) {
			return refusal
		}
		return nil
	}).ForTenant(lax.TenantID())
	ctx, c := t.Context(), newConversation(t, store)
	m := mustAppend(t, store, c.ID, uuid.Nil, user("x"))
	refused(t, "created", third(store.CreateConversation(ctx, tree.NewConversation{Settings: bad})), refusal)
	refused(t, "updated", second(store.UpdateConversation(ctx, c.ID, tree.ConversationUpdate{Settings: bad})), refusal)
	refused(t, "forked", third(store.Fork(ctx, c.ID, m.ID, tree.NewConversation{Settings: bad})), refusal)
	// A store without the check may have let it in.
	must(lax.UpdateConversation(ctx, c.ID, tree.ConversationUpdate{Settings: bad}))(t)
	must(store.UpdateConversation(ctx, c.ID, tree.ConversationUpdate{Title: new("Hazel")}))(t)
	check.Equal(t, "the settings of a fork", string(must3(store.Fork(ctx, c.ID, m.ID, tree.NewConversation{}))(t).Settings), string(bad))
}

// The newest message is found that makes a call, in its tenant and conversation.
func TestFindCall(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c, other := newConversation(t, s), newConversation(t, s)
	call := func(conversation uuid.UUID, id string) tree.Message {
		return mustAppend(t, s, conversation, uuid.Nil, raw(`{"role":"assistant","content":null,"tool_calls":[{"id":"`+id+`","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]}`))
	}
	call(c.ID, "a")
	want := call(c.ID, "a")
	mustAppend(t, s, c.ID, uuid.Nil, raw(`{"role":"assistant","content":"a","tool_calls":null}`))
	call(other.ID, "a")
	call(c.ID, "ab")
	check.Equal(t, "the newest", must(s.Histories().FindCall(t.Context(), c.ID, "a"))(t), want.ID)
	refused(t, "a call that nobody made", second(s.Histories().FindCall(t.Context(), c.ID, "b")), fault.NotFound)
}

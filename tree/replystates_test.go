package tree_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/tree"
)

// TestRetractAll holds that answers taken back in any order leave every branch
// whole that goes on from them, and nothing once all are.
func TestRetractAll(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	one := func(tree.Message) int { return 1 }
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.WithoutCancel(t.Context())
		c, _, err := s.CreateConversation(ctx, tree.NewConversation{})
		if err != nil {
			rt.Fatal(err)
		}
		// Each answer is the second of two messages, below an answer or at a root.
		var answers []uuid.UUID
		paths := map[uuid.UUID][]uuid.UUID{uuid.Nil: nil}
		for range rapid.IntRange(1, 8).Draw(rt, "answers") {
			parent := rapid.SampledFrom(append([]uuid.UUID{uuid.Nil}, answers...)).Draw(rt, "parent")
			chain, _, err := s.AppendChain(ctx, c.ID, parent, []tree.NewMessage{user("q"), raw(`{"role":"assistant","content":"a"}`)})
			if err != nil {
				rt.Fatal(err)
			}
			id := chain[1].ID
			answers = append(answers, id)
			paths[id] = append(slices.Clone(paths[parent]), chain[0].ID, id)
		}
		order := rapid.Permutation(answers).Draw(rt, "order")
		for i, id := range order {
			left, err := s.Retract(ctx, c.ID, id, one)
			if err != nil {
				rt.Fatal(err)
			}
			if _, err := s.Retract(ctx, c.ID, id, one); !errors.Is(err, fault.NotFound) {
				rt.Fatalf("taken back twice: %v", err)
			}
			if m, err := s.Answer(ctx, c.ID, id); !errors.Is(err, fault.NotFound) {
				rt.Fatalf("an answer that was taken back can be gone on from: %v, %v", m, err)
			}
			needed := map[uuid.UUID]bool{}
			for _, rest := range order[i+1:] {
				if m, err := s.Answer(ctx, c.ID, rest); err != nil || m.ID != rest {
					rt.Fatalf("an answer that stays: %v, %v", m, err)
				}
				got, err := s.Transcript(ctx, c.ID, rest, tree.Paging{})
				if err != nil {
					rt.Fatal(err)
				}
				for j, m := range got.Data {
					if m.ID != paths[rest][j] {
						rt.Fatalf("the branch of %s is %v, and was %v", rest, got.Data, paths[rest])
					}
					needed[m.ID] = true
				}
			}
			if left != len(needed) {
				rt.Fatalf("%d messages are left, and branches need %d", left, len(needed))
			}
		}
	})
}

// TestRetractKeeps holds that what another branch goes on from stays, and that a
// tenant takes nothing of another's back.
func TestRetractKeeps(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	question := mustAppend(t, s, c.ID, uuid.Nil, user("question"))
	answer := mustAppend(t, s, c.ID, question.ID, raw(`{"role":"assistant","content":"answer"}`))
	other := mustAppend(t, s, c.ID, question.ID, raw(`{"role":"assistant","content":"other"}`))
	two := func(tree.Message) int { return 2 }
	if _, err := s.ForTenant("else").Retract(t.Context(), c.ID, answer.ID, two); !errors.Is(err, fault.NotFound) {
		t.Errorf("another tenant: %v", err)
	}
	if left, err := s.Retract(t.Context(), c.ID, answer.ID, two); err != nil || left != 2 {
		t.Errorf("%d are left, %v", left, err)
	}
	if m, err := s.Message(t.Context(), c.ID, other.ID); err != nil || m.Siblings != (tree.Siblings{Index: 1, Count: 1}) {
		t.Errorf("%+v, %v", m, err)
	}
	if left, err := s.Retract(t.Context(), c.ID, other.ID, func(tree.Message) int { return 0 }); err != nil || left != 1 {
		t.Errorf("%d are left, %v", left, err)
	}
	if head := activeHead(t, s, c.ID); head != question.ID {
		t.Errorf("the head is %s", head)
	}
}

// TestAnswer holds that an answer is read as it was said, that only an answer is
// one, and that it is its tenant's.
func TestAnswer(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	question := mustAppend(t, s, c.ID, uuid.Nil, user("question"))
	answer := mustAppend(t, s, c.ID, question.ID, raw(`{"role":"assistant","content":"answer"}`))
	want := answer
	want.Siblings = tree.Siblings{}
	if m, err := s.Answer(t.Context(), c.ID, answer.ID); err != nil || !reflect.DeepEqual(m, want) {
		t.Errorf("%+v, %v, want %+v", m, err, want)
	}
	for _, state := range []tree.State{tree.StateRunning, tree.StateStopping, tree.StateEnded} { // of a reply, which doesn't delete its answer
		if err := s.PutReplyState(t.Context(), tree.ReplyState{ConversationID: c.ID, MessageID: answer.ID, State: state}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Answer(t.Context(), c.ID, answer.ID); err != nil {
			t.Errorf("%s: %v", state, err)
		}
	}
	other := newConversation(t, s)
	for name, err := range map[string]error{
		"a question":           second(s.Answer(t.Context(), c.ID, question.ID)),
		"an id of no message":  second(s.Answer(t.Context(), c.ID, uuid.New())),
		"another conversation": second(s.Answer(t.Context(), other.ID, answer.ID)),
		"another tenant":       second(s.ForTenant("else").Answer(t.Context(), c.ID, answer.ID)),
	} {
		if !errors.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReplyStates holds that a state is its tenant's, and that what ended is told
// for a while.
func TestReplyStates(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	running, ended := uuid.New(), uuid.New()
	for id, state := range map[uuid.UUID]tree.State{running: tree.StateRunning, ended: tree.StateEnded} {
		if err := s.PutReplyState(t.Context(), tree.ReplyState{ConversationID: c.ID, MessageID: id, State: state, Metadata: json.RawMessage(`{"a":1}`)}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.ForTenant("else").ReplyState(t.Context(), c.ID, id); !errors.Is(err, fault.NotFound) {
			t.Errorf("another tenant: %v", err)
		}
	}
	for id, want := range map[uuid.UUID]bool{running: true, ended: false, uuid.New(): false} {
		if asked, err := s.StopReply(t.Context(), c.ID, id); asked != want || err != nil {
			t.Errorf("%t, %v", asked, err)
		}
	}
	if r, err := s.ReplyState(t.Context(), c.ID, running); err != nil || r.State != tree.StateStopping || string(r.Metadata) != `{"a":1}` {
		t.Errorf("%+v, %v", r, err)
	}
	if err := s.ForgetReplyStates(t.Context(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReplyState(t.Context(), c.ID, ended); !errors.Is(err, fault.NotFound) {
		t.Errorf("it is told for ever: %v", err)
	}
	if _, err := s.ReplyState(t.Context(), c.ID, running); err != nil {
		t.Error(err)
	}
	if err := s.DropReplyState(t.Context(), c.ID, running); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReplyState(t.Context(), c.ID, running); !errors.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

// TestDeriveKey holds that a key is the same each time, another for each purpose,
// and no tenant's id.
func TestDeriveKey(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	key := func(s *tree.Store, purpose string) string {
		k, err := s.DeriveKey(t.Context(), purpose)
		if err != nil || len(k) != 32 {
			t.Fatalf("%d bytes, %v", len(k), err)
		}
		return string(k)
	}
	if key(s, "a") != key(s.ForTenant("else"), "a") || key(s, "a") == key(s, "b") {
		t.Error("keys of two purposes are one, or of two tenants two")
	}
}

// TestRepliesTo holds that the replies to a message are those that run and answer
// it, in this tenant.
func TestRepliesTo(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s)
	one, two := mustAppend(t, s, c.ID, uuid.Nil, user("one")), mustAppend(t, s, c.ID, uuid.Nil, user("two"))
	for _, reply := range []struct {
		parent uuid.UUID
		told   string
	}{{one.ID, `{"a":1}`}, {two.ID, `{"a":2}`}, {one.ID, ""}} {
		id := uuid.New()
		if err := s.ClaimReply(t.Context(), tree.Checkpoint{ConversationID: c.ID, MessageID: id, ParentID: reply.parent, ServerID: "one"}, []byte(reply.told), true); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.RepliesTo(t.Context(), c.ID, one.ID)
	told := make([]string, len(got))
	for i, reply := range got {
		told[i] = string(reply.Metadata)
	}
	slices.Sort(told)
	if err != nil || !slices.Equal(told, []string{`{"a":1}`, "{}"}) {
		t.Errorf("%q, %v", told, err)
	}
	if got, err := s.ForTenant("another").RepliesTo(t.Context(), c.ID, one.ID); err != nil || len(got) != 0 {
		t.Errorf("another tenant's: %v, %v", got, err)
	}
}

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

// TestBeginsReply holds that messages and the claim of the reply to them are stored
// together or not at all.
func TestBeginsReply(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	begin := func(server string, reply uuid.UUID, ms ...tree.NewMessage) (bool, error) {
		t.Helper()
		claim := tree.BeginsReply(tree.Checkpoint{ConversationID: c.ID, MessageID: reply, ParentID: ms[len(ms)-1].ID, ServerID: server}, []byte(`{"a":1}`))
		if len(ms) == 1 {
			_, created, err := s.Append(t.Context(), c.ID, uuid.Nil, ms[0], tree.KeepHead(), claim)
			return created, err
		}
		_, created, err := s.AppendChain(t.Context(), c.ID, uuid.Nil, ms, tree.KeepHead(), claim)
		return created, err
	}
	said := func(text string) tree.NewMessage {
		m := user(text)
		m.ID = uuid.New()
		return m
	}
	one, two, reply := said("one"), said("two"), uuid.New()
	for _, ms := range [][]tree.NewMessage{{one}, {two, said("and")}} {
		created, err := begin("a", reply, ms...)
		saved, missing := s.Checkpoint(t.Context(), c.ID, reply)
		state, untold := s.ReplyState(t.Context(), c.ID, reply)
		if !created || err != nil || missing != nil || untold != nil || saved.ServerID != "a" || saved.ParentID != ms[len(ms)-1].ID || string(state.Metadata) != `{"a":1}` {
			t.Errorf("%v %v; %+v %v; %+v %v", created, err, saved, missing, state, untold)
		}
		other := uuid.New()
		if created, err := begin("b", other, ms...); created || err != nil {
			t.Errorf("once more: %v, %v", created, err)
		}
		if _, err := s.Checkpoint(t.Context(), c.ID, other); err == nil {
			t.Error("a reply to messages that were there already is claimed")
		}
		lost := said("lost")
		if _, err := begin("b", reply, lost); !errors.Is(err, tree.ErrReplyLost) {
			t.Errorf("a second server: %v", err)
		}
		if _, err := s.Message(t.Context(), c.ID, lost.ID); err == nil {
			t.Error("a message is stored whose reply another server has")
		}
		noError(t, s.EndReply(t.Context(), tree.ReplyEnd{ConversationID: c.ID, MessageID: reply, ServerID: "a"}))
		reply = uuid.New()
	}
	if head := activeHead(t, s, c.ID); head != uuid.Nil {
		t.Errorf("the head is %s", head)
	}
}

// TestEndReplyGivesAHead holds that the end of a reply moves no active head that
// there is, and gives one where there is none and no reply is under way.
func TestEndReplyGivesAHead(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	for name, test := range map[string]struct {
		headed, running, pruned, leave bool
		want                           func(before, asked, other uuid.UUID) uuid.UUID
	}{
		"none":                  {want: func(_, asked, _ uuid.UUID) uuid.UUID { return asked }},
		"one":                   {headed: true, want: func(before, _, _ uuid.UUID) uuid.UUID { return before }},
		"one that is coming":    {running: true, want: func(_, _, _ uuid.UUID) uuid.UUID { return uuid.Nil }},
		"none, and is pruned":   {pruned: true, want: func(_, _, other uuid.UUID) uuid.UUID { return other }},
		"none, and is to be so": {leave: true, want: func(_, _, _ uuid.UUID) uuid.UUID { return uuid.Nil }},
	} {
		c := newConversation(t, s)
		add := func(text string) uuid.UUID {
			m := must3(s.Append(t.Context(), c.ID, uuid.Nil, user(text), tree.KeepHead()))(t)
			return m.ID
		}
		var before uuid.UUID
		if test.headed {
			before = mustAppend(t, s, c.ID, uuid.Nil, user("before")).ID
		}
		asked, other := add("asked"), add("other")
		claim := func() uuid.UUID {
			id := uuid.New()
			noError(t, s.ClaimReply(t.Context(), tree.Checkpoint{ConversationID: c.ID, MessageID: id, ParentID: asked, ServerID: "a"}, nil, true))
			return id
		}
		end := tree.ReplyEnd{ConversationID: c.ID, MessageID: claim(), HeadID: asked, ServerID: "a", Metadata: []byte(`{}`)}
		if test.running {
			claim()
		}
		if test.pruned {
			must(s.Prune(t.Context(), c.ID, asked))(t)
		}
		if test.leave {
			end.HeadID = uuid.Nil
		}
		noError(t, s.ForTenant("another").EndReply(t.Context(), end))
		if _, err := s.Checkpoint(t.Context(), c.ID, end.MessageID); err != nil {
			t.Errorf("another tenant ended it: %v", err)
		}
		noError(t, s.EndReply(t.Context(), end))
		if got, want := activeHead(t, s, c.ID), test.want(before, asked, other); got != want {
			t.Errorf("where there is %s: the head is %s, want %s", name, got, want)
		}
		if state, err := s.ReplyState(t.Context(), c.ID, end.MessageID); err != nil || state.State != tree.StateEnded {
			t.Errorf("%+v, %v", state, err)
		}
	}
}

// A reply is deleted whose answer could not be stored, and is left in its checkpoint:
// nothing of it is stored after that. One whose answer came to be stored stays for
// Retract.
func TestDropReply(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	asked := mustAppend(t, s, c.ID, uuid.Nil, user("hi"))
	answer := func(c tree.Checkpoint, _ json.RawMessage) (tree.NewMessage, uuid.UUID) {
		return tree.NewMessage{ID: c.MessageID, Body: raw(`{"role":"assistant","content":"` + c.Content + `"}`).Body}, c.ParentID
	}
	refused(t, "another tenant", second(s.ForTenant("other").DropReply(t.Context(), c.ID, uuid.New())), fault.NotFound)
	for _, drops := range []bool{true, false} {
		id := uuid.New()
		noError(t, s.ClaimReply(t.Context(), tree.Checkpoint{ConversationID: c.ID, MessageID: id, ParentID: asked.ID, ServerID: "a", Model: "m", Content: "said"}, nil, false))
		if drops {
			if answer, err := s.DropReply(t.Context(), c.ID, id); answer != nil || err != nil {
				t.Fatal(answer, err)
			}
		}
		listed, err := s.Checkpoints(t.Context())
		if err != nil || len(listed) != 1 {
			t.Fatal(listed, err)
		}
		if _, stored, err := s.TakeCheckpoint(t.Context(), listed[0], answer); err != nil || stored == drops {
			t.Errorf("deleted %t: it is stored: %t, %v", drops, stored, err)
		}
		if _, err := s.Message(t.Context(), c.ID, id); errors.Is(err, fault.NotFound) != drops {
			t.Errorf("deleted %t: %v", drops, err)
		}
		if !drops {
			if m, err := s.DropReply(t.Context(), c.ID, id); err != nil || m == nil || m.ID != id {
				t.Errorf("%+v, %v, want the answer that was stored", m, err)
			}
		}
		if deleted, err := s.Retracted(t.Context(), c.ID, id); err != nil || deleted != drops {
			t.Errorf("deleted %t: it is told: %t, %v", drops, deleted, err)
		}
	}
}

// TestDropReplyTakesTurns deletes a reply while another server stores what was saved of
// it: the second of the two knows of the first.
func TestDropReplyTakesTurns(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	c := newConversation(t, s)
	asked := mustAppend(t, s, c.ID, uuid.Nil, user("hi"))
	for _, dropFirst := range []bool{true, false} {
		id := uuid.New()
		noError(t, s.ClaimReply(t.Context(), tree.Checkpoint{ConversationID: c.ID, MessageID: id, ParentID: asked.ID, ServerID: "a", Model: "m", Content: "said"}, nil, false))
		listed, err := s.Checkpoints(t.Context())
		if err != nil || len(listed) != 1 {
			t.Fatal(listed, err)
		}
		var answer *tree.Message
		var stored bool
		drop := func(s *tree.Store) (err error) {
			answer, err = s.DropReply(t.Context(), c.ID, id)
			return err
		}
		take := func(s *tree.Store) (err error) {
			_, stored, err = s.TakeCheckpoint(t.Context(), listed[0], func(c tree.Checkpoint, _ json.RawMessage) (tree.NewMessage, uuid.UUID) {
				return tree.NewMessage{ID: c.MessageID, Body: raw(`{"role":"assistant","content":"said"}`).Body}, c.ParentID
			})
			return err
		}
		first, second := take, drop
		if dropFirst {
			first, second = drop, take
		}
		noError(t, meanwhile(t, pool, first, func() error { return second(s) }))
		deleted, err := s.Retracted(t.Context(), c.ID, id)
		if err != nil || stored == dropFirst || deleted != dropFirst || (answer == nil) != dropFirst {
			t.Errorf("deleted first %t: it is stored %t and marked as deleted %t, and the deletion found %v: %v", dropFirst, stored, deleted, answer, err)
		}
	}
}

// TestRetractAll holds that answers taken back in any order leave every branch
// whole that goes on from them, and nothing once all are.
func TestRetractAll(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	one := func(tree.Message) int { return 1 }
	rapid.Check(t, func(rt *rapid.T) {
		ctx := context.WithoutCancel(t.Context())
		c := must3(s.CreateConversation(ctx, tree.NewConversation{}))(rt)
		// Each answer is the second of two messages, below an answer or at a root.
		var answers []uuid.UUID
		paths := map[uuid.UUID][]uuid.UUID{uuid.Nil: nil}
		for range rapid.IntRange(1, 8).Draw(rt, "answers") {
			parent := rapid.SampledFrom(append([]uuid.UUID{uuid.Nil}, answers...)).Draw(rt, "parent")
			chain := must3(s.AppendChain(ctx, c.ID, parent, []tree.NewMessage{user("q"), raw(`{"role":"assistant","content":"a"}`)}))(rt)
			id := chain[1].ID
			answers = append(answers, id)
			paths[id] = append(slices.Clone(paths[parent]), chain[0].ID, id)
		}
		order := rapid.Permutation(answers).Draw(rt, "order")
		for i, id := range order {
			left := must(s.Retract(ctx, c.ID, id, one))(rt)
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
				got := must(s.Transcript(ctx, c.ID, rest, tree.Paging{}))(rt)
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
	s, c := newTree(t)
	question := mustAppend(t, s, c.ID, uuid.Nil, user("question"))
	answer := mustAppend(t, s, c.ID, question.ID, raw(`{"role":"assistant","content":"answer"}`))
	other := mustAppend(t, s, c.ID, question.ID, raw(`{"role":"assistant","content":"other"}`))
	two := func(tree.Message) int { return 2 }
	refused(t, "another tenant", second(s.ForTenant("else").Retract(t.Context(), c.ID, answer.ID, two)), fault.NotFound)
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
	s, c := newTree(t)
	question := mustAppend(t, s, c.ID, uuid.Nil, user("question"))
	answer := mustAppend(t, s, c.ID, question.ID, raw(`{"role":"assistant","content":"answer"}`))
	want := answer
	want.Siblings = tree.Siblings{}
	if m, err := s.Answer(t.Context(), c.ID, answer.ID); err != nil || !reflect.DeepEqual(m, want) {
		t.Errorf("%+v, %v, want %+v", m, err, want)
	}
	for _, state := range []tree.State{tree.StateRunning, tree.StateStopping, tree.StateEnded} { // of a reply, which doesn't delete its answer
		noError(t, s.PutReplyState(t.Context(), tree.ReplyState{ConversationID: c.ID, MessageID: answer.ID, State: state}))
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
	s, c := newTree(t)
	running, ended := uuid.New(), uuid.New()
	for id, state := range map[uuid.UUID]tree.State{running: tree.StateRunning, ended: tree.StateEnded} {
		noError(t, s.PutReplyState(t.Context(), tree.ReplyState{ConversationID: c.ID, MessageID: id, State: state, Metadata: json.RawMessage(`{"a":1}`)}))
		refused(t, "another tenant", second(s.ForTenant("else").ReplyState(t.Context(), c.ID, id)), fault.NotFound)
	}
	for id, want := range map[uuid.UUID]bool{running: true, ended: false, uuid.New(): false} {
		if asked, err := s.StopReply(t.Context(), c.ID, id); asked != want || err != nil {
			t.Errorf("%t, %v", asked, err)
		}
	}
	if r, err := s.ReplyState(t.Context(), c.ID, running); err != nil || r.State != tree.StateStopping || string(r.Metadata) != `{"a":1}` {
		t.Errorf("%+v, %v", r, err)
	}
	noError(t, s.ForgetReplyStates(t.Context(), time.Now().Add(time.Hour)))
	refused(t, "it is told for ever", second(s.ReplyState(t.Context(), c.ID, ended)), fault.NotFound)
	must(s.ReplyState(t.Context(), c.ID, running))(t)
	noError(t, s.DropReplyState(t.Context(), c.ID, running))
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
	s, c := newTree(t)
	one, two := mustAppend(t, s, c.ID, uuid.Nil, user("one")), mustAppend(t, s, c.ID, uuid.Nil, user("two"))
	for _, reply := range []struct {
		parent uuid.UUID
		told   string
	}{{one.ID, `{"a":1}`}, {two.ID, `{"a":2}`}, {one.ID, ""}} {
		id := uuid.New()
		noError(t, s.ClaimReply(t.Context(), tree.Checkpoint{ConversationID: c.ID, MessageID: id, ParentID: reply.parent, ServerID: "one"}, []byte(reply.told), true))
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

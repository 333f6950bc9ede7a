package tree_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// begun begins a reply to a message on server "a".
func begun(t testing.TB, s *tree.Store, conversationID, parentID uuid.UUID) tree.Reply {
	t.Helper()
	r := tree.Reply{ConversationID: conversationID, MessageID: uuid.New(), ParentID: parentID, ServerID: "a", Model: "m"}
	noError(t, s.Replies().Begin(t.Context(), r, false))
	return r
}

// answers is the message that ends a reply.
func answers(r tree.Reply, text string) tree.NewMessage {
	return tree.NewMessage{ID: r.MessageID, Message: tree.Text(tree.RoleAssistant, text).Message}
}

// Messages and the reply to them are stored together or not at all. Messages that are stored are no obstacle.
func TestBeginsReply(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	begin := func(reply uuid.UUID, again bool, ms ...tree.NewMessage) (bool, error) {
		t.Helper()
		begins := tree.BeginsReply(tree.Reply{ConversationID: c.ID, MessageID: reply, ServerID: "a", Metadata: []byte(`{"a":1}`)}, again)
		if len(ms) == 1 {
			stored, err := s.Append(t.Context(), c.ID, uuid.Nil, ms[0], tree.KeepHead(), begins)
			return stored.Created, err
		}
		stored, err := s.AppendChain(t.Context(), c.ID, uuid.Nil, ms, tree.KeepHead(), begins)
		return stored.Created, err
	}
	fresh := must(s.Checked(t.Context(), []tree.NewMessage{user("fresh")}))(t)
	for name, ms := range map[string][]tree.NewMessage{"one": chainOf(1), "two": chainOf(2), "a fresh one": fresh} {
		reply := uuid.New()
		created, err := begin(reply, name == "two", ms...)
		running, missing := s.Replies().One(t.Context(), c.ID, reply)
		check.That(t, created && err == nil && missing == nil && running.ServerID == "a" &&
			running.State == tree.StateRunning && running.ParentID == ms[len(ms)-1].ID && string(running.Metadata) == `{"a":1}`,
			"%s: %v %v; %+v %v", name, created, err, running, missing)
		if name == "a fresh one" {
			continue
		}
		created, err = begin(uuid.New(), false, ms...)
		check.That(t, !created && err == nil, "%s, once more: %v, %v", name, created, err)
		lost := chainOf(1)[0]
		for _, again := range []bool{true, false} {
			refused(t, "a second reply of the id", second(begin(reply, again, lost)), tree.ErrReplyLost)
		}
		_, err = s.Message(t.Context(), c.ID, lost.ID)
		check.That(t, err != nil, "a message is stored whose reply another request has")
		noError(t, s.Replies().End(t.Context(), running, uuid.Nil, nil, tree.ReplyEvents{Sequence: 1, Payload: []byte("[]")}))
		created, err = begin(reply, true, lost)
		check.That(t, created && err == nil, "another try: %v, %v", created, err)
		running, events, err := s.Replies().Log(t.Context(), c.ID, reply, 0)
		check.That(t, err == nil && len(events) == 0 && running.State == tree.StateRunning,
			"the other try begins as %+v with %v, %v", running, events, err)
	}
	for _, again := range []bool{true, false} {
		err := s.Replies().Begin(t.Context(), tree.Reply{ConversationID: c.ID, MessageID: uuid.New(), ParentID: uuid.New(), ServerID: "a"}, again)
		refused(t, "a message that isn't there", err, fault.NotFound)
		err = s.Replies().Begin(t.Context(), tree.Reply{ConversationID: c.ID, MessageID: fresh[0].ID, ParentID: fresh[0].ID, ServerID: "a"}, again)
		check.That(t, errors.Is(err, tree.ErrReplyLost), "the id of a message: %v", err)
	}
	check.Equal(t, "the head", activeHead(t, s, c.ID), uuid.Nil)
}

// The events of a reply are those of the attempt that is read, where the next one begins meanwhile.
func TestLogOfOneAttempt(t *testing.T) {
	t.Parallel()
	pool, s, c := newPool(t)
	asked := mustAppend(t, s, c.ID, uuid.Nil, user("hi"))
	for _, first := range []string{"GetReply", "GetReplyLog"} {
		r := begun(t, s, c.ID, asked.ID)
		noError(t, s.Replies().End(t.Context(), r, uuid.Nil, nil, tree.ReplyEvents{Sequence: 1, Payload: []byte(`[{"id":1}]`)}))
		reader := tree.New(dbtest.AfterQuery(t, pool, first, func() { noError(t, s.Replies().Begin(t.Context(), r, true)) }))
		read, events, err := reader.Replies().Log(t.Context(), c.ID, r.MessageID, 0)
		check.That(t, read.State == tree.StateEnded && len(events) == 1 && err == nil, "%+v with %v, %v", read, events, err)
	}
}

// No message goes alone while an answer is written to it or below it, as the answer would be lost.
func TestRemoveKeepsAReply(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	gone := mustAppend(t, s, c.ID, root.ID, user("gone"))
	asked := mustAppend(t, s, c.ID, gone.ID, user("asked"))
	for _, above := range []uuid.UUID{gone.ID, asked.ID} {
		r := begun(t, s, c.ID, asked.ID)
		err := second(s.Remove(t.Context(), c.ID, above))
		check.That(t, fault.Of(err).Code == "reply_running", "while an answer is written: %v", err)
		must(s.Append(t.Context(), c.ID, asked.ID, answers(r, "said"), tree.EndsReply("a", tree.ReplyEvents{})))(t)
	}
	must(s.Remove(t.Context(), c.ID, gone.ID))(t)
}

// A server to which a reply is lost changes nothing of it: another took it, a user deleted it, or nobody has it.
func TestOneServerHasAReply(t *testing.T) {
	t.Parallel()
	pool, s, c := newPool(t)
	asked := mustAppend(t, s, c.ID, uuid.Nil, user("hi"))
	for name, loses := range map[string]func(r tree.Reply) error{
		"another server takes it": func(r tree.Reply) error {
			listed := must(s.Replies().All(t.Context()))(t)
			check.That(t, len(listed) == 1 && listed[0].TenantID == tree.DefaultTenant && listed[0].ServerID == "a", "%+v", listed)
			_, err := s.Replies().Take(t.Context(), listed[0], "b")
			refused(t, "two servers take it", second(s.Replies().Take(t.Context(), listed[0], "c")), tree.ErrReplyLost)
			return err
		},
		"it is deleted": func(r tree.Reply) error { return second(s.Replies().Drop(t.Context(), c.ID, r.MessageID)) },
		"it is over":    func(r tree.Reply) error { return s.Replies().End(t.Context(), r, uuid.Nil, nil, tree.ReplyEvents{}) },
	} {
		t.Run(name, func(t *testing.T) {
			r := begun(t, s, c.ID, asked.ID)
			listed := must(s.Replies().All(t.Context()))(t)
			must(s.Replies().Save(t.Context(), r, tree.ReplyEvents{Sequence: 2, Payload: []byte(`["one"]`)}, false))(t)
			refused(t, "after a sign of life", second(s.Replies().Take(t.Context(), listed[0], "b")), tree.ErrReplyLost)
			noError(t, loses(r))
			before, events, _ := s.Replies().Log(t.Context(), c.ID, r.MessageID, 0)
			more := tree.ReplyEvents{Sequence: 3, Payload: []byte(`["two"]`)}
			for does, err := range map[string]error{
				"saves":   second(s.Replies().Save(t.Context(), r, more, true)),
				"ends it": s.Replies().End(t.Context(), r, asked.ID, nil, more),
				"stores":  second(s.Append(t.Context(), c.ID, asked.ID, answers(r, "late"), tree.EndsReply("a", more))),
			} {
				check.That(t, errors.Is(err, tree.ErrReplyLost), "a server that lost it %s: %v", does, err)
			}
			after, left, _ := s.Replies().Log(t.Context(), c.ID, r.MessageID, 0)
			check.That(t, reflect.DeepEqual(before, after) && reflect.DeepEqual(events, left), "%+v %v became %+v %v", before, events, after, left)
			refused(t, "a late answer", second(s.Message(t.Context(), c.ID, r.MessageID)), fault.NotFound)
			must(pool.Exec(t.Context(), "delete from replies"))(t)
		})
	}
}

// A log is read from any event on, in its tenant. A save made twice stands once, and goes with its message.
func TestReplyLog(t *testing.T) {
	t.Parallel()
	pool, s, c := newPool(t)
	question := mustAppend(t, s, c.ID, uuid.Nil, user("question"))
	asked := mustAppend(t, s, c.ID, question.ID, user("more"))
	r := begun(t, s, c.ID, asked.ID)
	for _, at := range []int{3, 5, 5} {
		stopping, err := s.Replies().Save(t.Context(), r, tree.ReplyEvents{Sequence: at, Payload: fmt.Appendf(nil, "[%d]", at)}, false)
		check.That(t, !stopping && err == nil, "%v, %v", stopping, err)
	}
	for after, want := range map[int]string{0: "[3][5]", 3: "[5]", 4: "[5]", 5: ""} {
		_, saves, err := s.Replies().Log(t.Context(), c.ID, r.MessageID, after)
		got := ""
		for _, save := range saves {
			got += string(save.Payload)
		}
		check.That(t, got == want && err == nil, "after %d: %s, %v", after, got, err)
	}
	refused(t, "another tenant", third(s.ForTenant("else").Replies().Log(t.Context(), c.ID, r.MessageID, 0)), fault.NotFound)
	answer := answers(r, "answer")
	must(s.Append(t.Context(), c.ID, asked.ID, answer, tree.EndsReply("a", tree.ReplyEvents{Sequence: 6, Payload: []byte("[6]")})))(t)
	got, events, err := s.Replies().Log(t.Context(), c.ID, r.MessageID, 5)
	check.That(t, err == nil && got.State == tree.StateStored && len(events) == 1 && len(must(s.Replies().All(t.Context()))(t)) == 0,
		"%+v, %v, %v", got, events, err)
	running := begun(t, s, c.ID, asked.ID)
	must(s.Replies().Save(t.Context(), running, tree.ReplyEvents{Sequence: 1, Payload: []byte("[1]")}, false))(t)
	for _, prune := range []struct {
		id   uuid.UUID
		left int
	}{{answer.ID, 2}, {asked.ID, 0}} {
		must(s.Prune(t.Context(), c.ID, prune.id))(t)
		var left int
		noError(t, pool.QueryRow(t.Context(), "select (select count(*) from replies) + (select count(*) from reply_events)").Scan(&left))
		check.That(t, left == prune.left, "%d rows are left of replies after a prune, want %d", left, prune.left)
	}
}

// The end of a reply moves no head, and gives one where there is none and no reply is under way.
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
			m := must(s.Append(t.Context(), c.ID, uuid.Nil, user(text), tree.KeepHead()))(t).Message
			return m.ID
		}
		var before uuid.UUID
		if test.headed {
			before = mustAppend(t, s, c.ID, uuid.Nil, user("before")).ID
		}
		asked, other := add("asked"), add("other")
		r, head := begun(t, s, c.ID, asked), asked
		if test.running {
			begun(t, s, c.ID, other)
		}
		if test.leave {
			head = uuid.Nil
		}
		refused(t, "another tenant", s.ForTenant("another").Replies().End(t.Context(), r, head, nil, tree.ReplyEvents{}), tree.ErrReplyLost)
		state := tree.StateEnded
		if test.pruned {
			must(s.Prune(t.Context(), c.ID, asked))(t)
			state = ""
		} else {
			noError(t, s.Replies().End(t.Context(), r, head, []byte(`{}`), tree.ReplyEvents{}))
		}
		got, want := activeHead(t, s, c.ID), test.want(before, asked, other)
		check.That(t, got == want, "where there is %s: the head is %s, want %s", name, got, want)
		ended, _ := s.Replies().One(t.Context(), c.ID, r.MessageID)
		check.That(t, ended.State == state, "where there is %s: its state is %q", name, ended.State)
	}
}

// Of a deletion and another server that stores the reply, the second knows of the first.
func TestDropReplyTakesTurns(t *testing.T) {
	t.Parallel()
	pool, s, c := newPool(t)
	asked := mustAppend(t, s, c.ID, uuid.Nil, user("hi"))
	refused(t, "another tenant", second(s.ForTenant("other").Replies().Drop(t.Context(), c.ID, uuid.New())), fault.NotFound)
	for _, dropFirst := range []bool{true, false} {
		r := begun(t, s, c.ID, asked.ID)
		var answer *tree.Message
		drop := func(s *tree.Store) (err error) {
			answer, err = s.Replies().Drop(t.Context(), c.ID, r.MessageID)
			return err
		}
		lost := false
		store := func(s *tree.Store) error {
			_, err := s.Append(t.Context(), c.ID, asked.ID, answers(r, "said"), tree.EndsReply("a", tree.ReplyEvents{}))
			if lost = errors.Is(err, tree.ErrReplyLost); lost {
				return nil
			}
			return err
		}
		first, second := store, drop
		if dropFirst {
			first, second = drop, store
		}
		noError(t, meanwhile(t, pool, first, func() error { return second(s) }))
		_, missing := s.Message(t.Context(), c.ID, r.MessageID)
		check.That(t, lost == dropFirst && (missing != nil) == dropFirst && (answer == nil) == dropFirst,
			"deleted first %t: its answer is lost %t, reading it gives %v, and the deletion found %v", dropFirst, lost, missing, answer)
	}
}

// Answers taken back in any order leave the branches of the others whole, and nothing once all are.
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
			chain := must(s.AppendChain(ctx, c.ID, parent, []tree.NewMessage{user("q"), raw(`{"role":"assistant","content":"a"}`)}))(rt).Messages
			id := chain[1].ID
			answers = append(answers, id)
			paths[id] = append(slices.Clone(paths[parent]), chain[0].ID, id)
		}
		order := rapid.Permutation(answers).Draw(rt, "order")
		for i, id := range order {
			left := must(s.Histories().Retract(ctx, c.ID, id, one))(rt)
			check.Fails(s.Histories().Retract(ctx, c.ID, id, one))(rt, "taken back twice", fault.NotFound)
			check.Fails(s.Answer(ctx, c.ID, id))(rt, "an answer that was taken back can be gone on from", fault.NotFound)
			needed := map[uuid.UUID]bool{}
			for _, rest := range order[i+1:] {
				check.Equal(rt, "an answer that stays", must(s.Answer(ctx, c.ID, rest))(rt).ID, rest)
				got := must(s.Transcript(ctx, c.ID, rest, tree.Paging{}))(rt)
				for j, m := range got.Data {
					check.Need(rt, m.ID == paths[rest][j], "the branch of %s is %v, and was %v", rest, got.Data, paths[rest])
					needed[m.ID] = true
				}
			}
			check.Need(rt, left == len(needed), "%d messages are left, and branches need %d", left, len(needed))
		}
	})
}

// What ended is known for a while, a stop is told to its server, and a deleted answer's mark goes with it.
func TestForgetReplies(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	asked := mustAppend(t, s, c.ID, uuid.Nil, user("hi"))
	running, ended, done := begun(t, s, c.ID, asked.ID), begun(t, s, c.ID, asked.ID), begun(t, s, c.ID, asked.ID)
	noError(t, s.Replies().End(t.Context(), ended, uuid.Nil, nil, tree.ReplyEvents{}))
	must(s.Append(t.Context(), c.ID, asked.ID, answers(done, "said"), tree.EndsReply("a", tree.ReplyEvents{})))(t)
	for r, want := range map[uuid.UUID]bool{running.MessageID: true, ended.MessageID: false, done.MessageID: false, uuid.New(): false} {
		asked, err := s.Replies().Stop(t.Context(), c.ID, r)
		check.That(t, asked == want && err == nil, "%t, %v", asked, err)
	}
	check.That(t, must(s.Replies().Save(t.Context(), running, tree.ReplyEvents{}, false))(t), "its server isn't told to stop")
	known := func(want ...tree.Reply) {
		t.Helper()
		for _, r := range []tree.Reply{running, ended, done} {
			_, err := s.Replies().One(t.Context(), c.ID, r.MessageID)
			is := slices.ContainsFunc(want, func(w tree.Reply) bool { return w.MessageID == r.MessageID })
			check.That(t, is == (err == nil), "%s: %v", r.MessageID, err)
		}
	}
	hour := time.Now().Add(time.Hour)
	noError(t, s.Replies().Forget(t.Context(), time.Time{}, time.Time{}))
	known(running, ended, done)
	noError(t, s.Replies().Forget(t.Context(), hour, time.Time{}))
	known(running, ended)
	noError(t, s.Replies().Forget(t.Context(), hour, hour))
	known(running)

	below := mustAppend(t, s, c.ID, done.MessageID, user("and?"))
	must(s.Histories().Retract(t.Context(), c.ID, done.MessageID, func(tree.Message) int { return 0 }))(t)
	noError(t, s.Replies().Forget(t.Context(), hour, hour))
	deleted, err := s.Histories().Retracted(t.Context(), c.ID, done.MessageID)
	check.That(t, deleted && err == nil, "%v, %v", deleted, err)
	must(s.Prune(t.Context(), c.ID, below.ID))(t)
	must(s.Prune(t.Context(), c.ID, done.MessageID))(t)
	deleted, err = s.Histories().Retracted(t.Context(), c.ID, done.MessageID)
	check.That(t, !deleted && err == nil, "the mark outlives its answer: %v", err)
}

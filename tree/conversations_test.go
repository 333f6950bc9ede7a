package tree_test

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// A list has what its filter keeps, the pinned first, then the one updated last, in pages of any size.
func TestListsAreInOrder(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	tags := []string{"wood", "two words", "Wood", "a,b\"'{}"}
	tenants := 0
	rapid.Check(t, func(rt *rapid.T) {
		tenants++
		s := store.ForTenant(fmt.Sprint("tenant", tenants))
		store.ForTenant("other").CreateConversation(t.Context(), tree.NewConversation{Title: "hazel", Order: tree.Order{Pinned: true, Tags: tags}})
		var all []tree.Conversation
		for i := range rapid.IntRange(0, 12).Draw(rt, "conversations") {
			n := tree.NewConversation{
				Title:     rapid.SampledFrom([]string{"hazel", "oak"}).Draw(rt, "title"),
				CreatedAt: at.Add(time.Duration(rapid.IntRange(0, 3).Draw(rt, "hours")) * time.Hour),
				Order: tree.Order{
					Archived: rapid.Bool().Draw(rt, "archived"), Pinned: rapid.Bool().Draw(rt, "pinned"),
					Tags: rapid.SliceOfNDistinct(rapid.SampledFrom(tags), 0, 3, rapid.ID).Draw(rt, "tags"),
				},
			}
			c := must3(s.CreateConversation(t.Context(), n))(rt)
			if rapid.Bool().Draw(rt, "changed") { // one by one, as requests do
				n.Archived, n.Pinned = !n.Archived, !n.Pinned
				slices.Reverse(n.Tags)
				c = must(s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{Archived: &n.Archived, Pinned: &n.Pinned, Tags: n.Tags}))(rt)
			}
			check.Need(rt, c.Archived == n.Archived && c.Pinned == n.Pinned && slices.Equal(c.Tags, n.Tags),
				"conversation %d is %+v, want %+v", i, c.Order, n.Order)
			all = append(all, c)
		}
		f := tree.ConversationFilter{
			Archived: rapid.Bool().Draw(rt, "of the archived"),
			Tag:      rapid.SampledFrom(append([]string{"", "none"}, tags...)).Draw(rt, "tag"),
			Query:    rapid.SampledFrom([]string{"", "hazel"}).Draw(rt, "query"),
			Chosen:   rapid.Bool().Draw(rt, "chosen"),
		}
		for _, c := range all {
			if rapid.Bool().Draw(rt, "among") {
				f.Among = append(f.Among, c.ID)
			}
		}
		var want, got []uuid.UUID
		rank := func(c tree.Conversation) int { return slices.Index([]bool{true, false}, c.Pinned) }
		slices.SortFunc(all, func(a, b tree.Conversation) int {
			return cmp.Or(rank(a)-rank(b), b.UpdatedAt.Compare(a.UpdatedAt), strings.Compare(b.ID.String(), a.ID.String()))
		})
		for _, c := range all {
			if c.Archived == f.Archived && (f.Tag == "" || slices.Contains(c.Tags, f.Tag)) && (!f.Chosen || slices.Contains(f.Among, c.ID)) {
				want = append(want, c.ID)
			}
		}
		for p := (tree.Paging{Limit: rapid.IntRange(1, 5).Draw(rt, "limit")}); ; {
			page := must(s.Conversations(t.Context(), f, p))(rt)
			for _, c := range page.Data {
				got = append(got, c.ID)
			}
			if p.Cursor = page.Next; p.Cursor == "" {
				break
			}
			for _, other := range []tree.ConversationFilter{
				{Archived: !f.Archived, Tag: f.Tag, Query: f.Query}, {Archived: f.Archived, Tag: f.Tag + "x", Query: f.Query}, {Archived: f.Archived, Tag: f.Tag, Query: f.Query + "x"},
			} {
				check.Fails(s.Conversations(t.Context(), other, p))(rt, "the cursor of another list", fault.Invalid)
			}
		}
		check.Need(rt, slices.Equal(got, want), "%+v lists\n%v, want\n%v", f, got, want)

		counts := map[string]int64{}
		for _, c := range all {
			for _, tag := range c.Tags {
				if c.Archived == f.Archived {
					counts[tag]++
				}
			}
		}
		counted, err := s.Tags(t.Context(), f.Archived)
		check.Need(rt, err == nil && len(counted) == len(counts) &&
			slices.IsSortedFunc(counted, func(a, b tree.TagCount) int { return cmp.Compare(b.Conversations, a.Conversations) }),
			"tags %v, %v; want %v", counted, err, counts)
		for _, c := range counted {
			check.Need(rt, counts[c.Tag] == c.Conversations, "tags %v, want %v", counted, counts)
		}
	})
}

// An order that can't stand changes nothing. A change of the order moves no conversation, and is told once.
func TestOrderIsChanged(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	long := make([]string, tree.MaxTags+1)
	for i := range long {
		long[i] = fmt.Sprint(i)
	}
	for code, tags := range map[string][]string{
		"invalid_tag": {"a", ""}, "tag_too_large": {strings.Repeat("é", tree.MaxTagBytes/2) + "x"}, "too_many_tags": long,
		"invalid_character": {"a\nb"}, "invalid_utf8": {"\xff"},
	} {
		_, err := s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{Tags: tags})
		check.That(t, fault.Refused(err) && fault.Of(err).Code == code && strings.HasPrefix(fault.Of(err).Field, "tags"),
			"%q: %v, want %s", tags, err, code)
	}
	for _, tags := range [][]string{{" a"}, {"a\u00a0"}, {"a", "b", "a"}} {
		refused(t, fmt.Sprint(tags), second(s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{Tags: tags})), fault.Invalid)
	}
	was := must(s.Conversation(t.Context(), c.ID))(t)
	for range 2 {
		is := must(s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{Archived: new(true), Pinned: new(true), Tags: long[:tree.MaxTags]}))(t)
		check.That(t, is.Archived && is.Pinned && len(is.Tags) == tree.MaxTags && is.UpdatedAt == was.UpdatedAt && len(was.Tags) == 0,
			"it is %+v, and was %+v", is, was)
	}
	bare := must(s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{Tags: []string{}}))(t)
	check.That(t, bare.Pinned && len(bare.Tags) == 0, "without tags it is %+v", bare)
	for _, u := range []tree.ConversationUpdate{{Archived: new(false)}, {Pinned: new(false)}, {Pinned: new(false), Archived: new(false)}} {
		is := must(s.UpdateConversation(t.Context(), c.ID, u))(t)
		check.That(t, (u.Archived == nil || !is.Archived) && (u.Pinned == nil || !is.Pinned), "after %+v it is %+v", u, is.Order)
	}
	var kinds []tree.ChangeKind
	for _, change := range must(s.Feed().Changes(t.Context(), c.ID, 0, time.Time{}, 100))(t) {
		kinds = append(kinds, change.Kind)
	}
	want := append([]tree.ChangeKind{tree.ConversationCreated}, slices.Repeat([]tree.ChangeKind{tree.ConversationUpdated}, 4)...)
	check.That(t, slices.Equal(kinds, want), "told %v, want %v", kinds, want)
}

// A pin and an annotation come and go, are told when they change, and are no other tenant's affair.
func TestUpdateMessage(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	m := mustAppend(t, s, c.ID, root.ID, user("tip"))
	summary := must(s.Summaries().Add(t.Context(), c.ID, tree.NewSummary{AnchorID: m.ID, Range: tree.SummaryRange{LastSummarizedID: root.ID, Model: "m"}, Body: said(tree.RoleUser, "s")}))(t)
	told := map[tree.ChangeKind]int{}
	yes, no, up, none, label, empty := true, false, 1, 0, "the one to keep", ""
	for i, step := range []struct {
		tree.MessageUpdate
		kind tree.ChangeKind // of the change that is told; "" for none
		want tree.Message
	}{
		{tree.MessageUpdate{Pinned: &yes}, tree.MessagePinned, tree.Message{Pinned: true}},
		{tree.MessageUpdate{Pinned: &yes}, "", tree.Message{Pinned: true}},
		{tree.MessageUpdate{Rating: &up, Label: &label}, tree.MessageAnnotated, tree.Message{Pinned: true, Annotation: tree.Annotation{Rating: 1, Label: label}}},
		{tree.MessageUpdate{Note: &label}, tree.MessageAnnotated, tree.Message{Pinned: true, Annotation: tree.Annotation{Rating: 1, Label: label, Note: label}}},
		{tree.MessageUpdate{Rating: &up}, "", tree.Message{Pinned: true, Annotation: tree.Annotation{Rating: 1, Label: label, Note: label}}},
		{tree.MessageUpdate{Pinned: &no}, tree.MessagePinned, tree.Message{Annotation: tree.Annotation{Rating: 1, Label: label, Note: label}}},
		{tree.MessageUpdate{Rating: &none, Label: &empty, Note: &empty}, tree.MessageAnnotated, tree.Message{}},
	} {
		if step.kind != "" {
			told[step.kind]++
		}
		got := must(s.UpdateMessage(t.Context(), c.ID, m.ID, step.MessageUpdate))(t)
		changes := map[tree.ChangeKind]int{}
		for _, change := range must(s.Feed().Changes(t.Context(), c.ID, 0, time.Time{}, 100))(t) {
			if change.Kind == tree.MessagePinned || change.Kind == tree.MessageAnnotated {
				changes[change.Kind]++
				check.That(t, change.MessageID == m.ID && change.ParentID == root.ID, "told %+v", change)
			}
		}
		for _, m := range []tree.Message{got, must(s.Message(t.Context(), c.ID, m.ID))(t), must(s.Transcript(t.Context(), c.ID, m.ID, tree.Paging{}))(t).Data[1]} {
			check.That(t, m.Pinned == step.want.Pinned && m.Annotation == step.want.Annotation && maps.Equal(changes, told),
				"step %d: %+v, told %v", i, m, changes)
		}
	}
	refused(t, "a rating of 2", second(s.UpdateMessage(t.Context(), c.ID, m.ID, tree.MessageUpdate{Rating: new(2)})), fault.Invalid)
	refused(t, "a summary", second(s.UpdateMessage(t.Context(), c.ID, summary.ID, tree.MessageUpdate{Rating: &up})), fault.NotFound)
	refused(t, "nothing", second(s.UpdateMessage(t.Context(), c.ID, uuid.New(), tree.MessageUpdate{Rating: &up})), fault.NotFound)
	refused(t, "of another tenant", second(s.ForTenant("other").UpdateMessage(t.Context(), c.ID, m.ID, tree.MessageUpdate{Rating: &up})), fault.NotFound)
	check.That(t, must(s.Message(t.Context(), c.ID, m.ID))(t).Annotation == (tree.Annotation{}), "a refused rating was stored")
}

// An annotation stays with its message where one above it is deleted alone, which the audit tells as one message.
func TestAnnotationsOutliveARemoval(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	gone := mustAppend(t, s, c.ID, root.ID, user("gone"))
	tip := mustAppend(t, s, c.ID, gone.ID, user("tip"))
	must(s.UpdateMessage(t.Context(), c.ID, tip.ID, tree.MessageUpdate{Label: new("kept")}))(t)
	p := must(s.Remove(t.Context(), c.ID, gone.ID))(t)
	m := must(s.Message(t.Context(), c.ID, p.HeadID))(t)
	check.That(t, m.Annotation.Label == "kept" && m.ParentID == root.ID, "%+v", m)
	refused(t, "the message that is gone", second(s.Message(t.Context(), c.ID, gone.ID)), fault.NotFound)
	done := must(s.Admin().AuditEvents(t.Context(), tree.Paging{}))(t)
	check.That(t, done.Data[0].Detail == "1 messages, 0 summaries", "the audit tells %+v", done.Data[0])
}

// Of two results that stand below each other either can be deleted alone, and their call can't.
func TestRemoveOneResult(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	call := mustAppend(t, s, c.ID, root.ID, raw(calling))
	first := mustAppend(t, s, c.ID, call.ID, raw(`{"role":"tool","tool_call_id":"a","content":"x"}`))
	again := tree.NewMessage{ID: first.ID, Message: chat.Read(first.Body)}
	check.Equal(t, "the result, sent again", mustAppend(t, s, c.ID, call.ID, again).ID, first.ID)
	mustAppend(t, s, c.ID, first.ID, raw(`{"role":"tool","tool_call_id":"b","content":"y"}`))
	refused(t, "a call with results", second(s.Remove(t.Context(), c.ID, call.ID)), fault.Invalid)
	p := must(s.Remove(t.Context(), c.ID, first.ID))(t)
	check.Equal(t, "the other result's parent", must(s.Message(t.Context(), c.ID, p.HeadID))(t).ParentID, call.ID)
	open := must(s.Histories().OpenCalls(t.Context(), c.ID, p.HeadID))(t)
	check.That(t, slices.Equal(open, []string{"a"}), "open calls are %q", open)
}

// The audit tells of a new owner or other readers, and of nothing where both stay.
func TestHandingIsAudited(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	for range 2 {
		must(s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{OwnerID: new("ada"), Private: new(true)}))(t)
	}
	done := must(s.Admin().AuditEvents(t.Context(), tree.Paging{}))(t).Data
	check.That(t, len(done) == 1 && done[0].Action == tree.ActionConversationHanded && done[0].Detail == "ada private", "the audit tells %+v", done)
}

// Answers count by model: gone on from or the head as kept, beside others as compared, other tenants' not at all.
func TestRatings(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	answer := func(model string) tree.NewMessage {
		return tree.NewMessage{Message: chat.Text(tree.RoleAssistant, "x"), Metadata: []byte(`{"reply":{"model":"` + model + `"}}`)}
	}
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	mustAppend(t, s, c.ID, root.ID, answer("left"))
	kept := mustAppend(t, s, c.ID, root.ID, answer("kept"))
	next := mustAppend(t, s, c.ID, kept.ID, user("next"))
	head := mustAppend(t, s, c.ID, next.ID, answer("kept"))
	must(s.Append(t.Context(), c.ID, next.ID, tree.Text(tree.RoleAssistant, "by nobody"), tree.KeepHead()))(t)
	must(s.UpdateMessage(t.Context(), c.ID, head.ID, tree.MessageUpdate{Rating: new(1)}))(t)
	must(s.UpdateMessage(t.Context(), c.ID, kept.ID, tree.MessageUpdate{Rating: new(-1)}))(t)
	got := must(s.Ratings(t.Context()))(t)
	want := []tree.ModelRatings{
		{Model: "kept", Answers: 2, Kept: 2, Compared: 2, ComparedKept: 2, RatedUp: 1, RatedDown: 1},
		{Model: "left", Answers: 1, Compared: 1},
	}
	check.That(t, slices.Equal(got.Models, want) && got.Conversations == 1 && got.Complete, "%+v", got)
	theirs := must(s.ForTenant("other").Ratings(t.Context()))(t)
	check.That(t, len(theirs.Models) == 0 && theirs.Conversations == 0, "another tenant's are %+v", theirs)
}

// Merge patches of two clients add up. An update whose condition doesn't hold changes nothing.
func TestConditionalUpdates(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	for _, patch := range []string{`{"a":{"x":1}}`, `{"b":2,"a":{"y": 2}}`, `{"a":{"x":null}}`} {
		c = must(s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{Merge: true, Metadata: []byte(patch)}))(t)
	}
	no := fault.New(fault.Conflict, "no", "", "No.")
	const title = "Not this one"
	_, err := s.UpdateConversation(t.Context(), c.ID, tree.ConversationUpdate{Title: new(title), If: func(tree.Conversation) error { return no }})
	c = must(s.Conversation(t.Context(), c.ID))(t)
	check.That(t, errors.Is(err, fault.Conflict) && c.Title != title && string(c.Metadata) == `{"a":{"y":2},"b":2}`, "%v, %q, %s", err, c.Title, c.Metadata)
}

// A page of a list costs its rows and those of two minutes, where it begins and ends, whatever stands beside.
func TestListReadsOnlyItsRows(t *testing.T) {
	t.Parallel()
	dbtest.OnPlain(t, "the nodes of a small table's shards read them whole")
	pool := dbtest.New(t)
	check.Must(pool.Exec(t.Context(), `insert into conversations (id, tenant_id, title, metadata, settings, created_at, updated_at, archived, pinned)
		select gen_random_uuid(), case i % 3 when 0 then 'other' else 'default' end, '', '{}', '{}', now(), now() - i * interval '1 s', i % 7 < 5, i % 50 = 6
		from generate_series(1, 6000) i`))(t)
	must(pool.Exec(t.Context(), "analyze conversations"))(t)
	for _, archived := range []bool{false, true} {
		p := tree.Paging{Limit: 20}
		for range 4 {
			got := rowsReadOf(t, pool, "conversations", func(s *tree.Store) error {
				page, err := s.Conversations(t.Context(), tree.ConversationFilter{Archived: archived}, p)
				p.Cursor = page.Next
				return err
			})
			check.That(t, got <= 20+2*40, "a page of 20 reads %d rows (archived %t)", got, archived)
		}
	}
}

// A list tells how many messages a conversation has, and how many of them are on its active branch.
func TestShapes(t *testing.T) {
	t.Parallel()
	s, forked := newTree(t)
	newConversation(t, s) // without a message
	root := mustAppend(t, s, forked.ID, uuid.Nil, user("Which wood?"))
	for _, text := range []string{"And oak?", "And hazel?"} {
		mustAppend(t, s, forked.ID, root.ID, user(text))
	}
	page := must(s.Conversations(t.Context(), tree.ConversationFilter{Shapes: true}, tree.Paging{}))(t)
	for _, c := range page.Data {
		want := map[uuid.UUID]tree.Shape{forked.ID: {Messages: 3, BranchMessages: 2}}[c.ID]
		check.That(t, c.Shape == want, "%s has the shape %+v, and should have %+v", c.ID, c.Shape, want)
	}
}

// updated_at is the time of the last message or prune. Heads, titles, settings and summaries don't count.
func TestUpdatedAtIsOfWhatWasSaid(t *testing.T) {
	t.Parallel()
	s, c := newTree(t)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
	mustAppend(t, s, c.ID, root.ID, user("tip"))
	updated := func() time.Time { t.Helper(); return must(s.Conversation(t.Context(), c.ID))(t).UpdatedAt }
	before := updated()
	update := func(u tree.ConversationUpdate) func() error {
		return func() error { return second(s.UpdateConversation(t.Context(), c.ID, u)) }
	}
	summary := tree.NewSummary{AnchorID: root.ID, Range: tree.SummaryRange{LastSummarizedID: root.ID, Model: "m"}, Body: said(tree.RoleUser, "s")}
	for name, change := range map[string]func() error{
		"the active head":       update(tree.ConversationUpdate{HeadID: root.ID}),
		"the title":             update(tree.ConversationUpdate{Title: new("A title")}),
		"metadata and settings": update(tree.ConversationUpdate{Metadata: []byte(`{"a":1}`), Settings: []byte(`{"a":1}`)}),
		"a summary": func() error {
			return second(s.Prune(t.Context(), c.ID, must(s.Summaries().Add(t.Context(), c.ID, summary))(t).ID))
		},
	} {
		noError(t, change())
		check.Equal(t, "the time of the change after "+name, updated(), before)
	}
	for name, change := range map[string]func() error{
		"an append": func() error { return second(s.Append(t.Context(), c.ID, root.ID, user("more"), tree.KeepHead())) },
		"a prune": func() error {
			m := mustAppend(t, s, c.ID, root.ID, tree.NewMessage{Message: chat.Read(said(tree.RoleUser, "old")), CreatedAt: time.Unix(0, 0)})
			return second(s.Prune(t.Context(), c.ID, m.ID))
		},
	} {
		before := updated()
		noError(t, change())
		got := updated()
		check.That(t, got.After(before), "%s left it at %s", name, got)
	}
}

// A conversation with a message stays, whichever comes first, and a message that was told to be stored is there.
func TestDeleteEmpty(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	for name, test := range map[string]struct {
		append, commit bool // the transaction that comes first appends, or deletes; it commits
		want           bool // the conversation is there in the end
	}{
		"a message that is stored":            {append: true, commit: true, want: true},
		"a message that is not stored":        {append: true},
		"a deletion before a message":         {commit: true},
		"a deletion that is undone before it": {want: true},
	} {
		c := newConversation(t, s)
		tx := must(pool.Begin(t.Context()))(t)
		add := func(s *tree.Store) error { return second(s.Append(t.Context(), c.ID, uuid.Nil, user("x"))) }
		remove := func(s *tree.Store) error { return second(s.Histories().DeleteEmpty(t.Context(), c.ID)) }
		first, second := remove, add
		if test.append {
			first, second = add, remove
		}
		noError(t, first(tree.New(tx)))
		done := make(chan error)
		go func() { done <- second(s) }()
		check.Eventually(t, "a statement that waits for a lock", func() bool { return dbtest.Waiting(t, pool) > 0 })
		finish(t, tx, test.commit)
		err := <-done
		stored := err == nil && !test.append
		check.That(t, (!stored || test.want) && (err == nil || errors.Is(err, fault.NotFound)), "%s: %v", name, err)
		got, err := s.Conversation(t.Context(), c.ID)
		there := err == nil
		check.That(t, there == test.want && (!there || got.HeadID != uuid.Nil), "%s: %+v, %v", name, got, err)
	}
	c := newConversation(t, s)
	deleted, err := s.ForTenant("another").Histories().DeleteEmpty(t.Context(), c.ID)
	check.That(t, !deleted && err == nil, "another tenant deletes it: %t, %v", deleted, err)
	deleted, err = s.Histories().DeleteEmpty(t.Context(), c.ID)
	check.That(t, deleted && err == nil, "it is deleted: %t, %v", deleted, err)
}

// finish commits a transaction, or undoes it.
func finish(t *testing.T, tx pgx.Tx, commit bool) {
	t.Helper()
	if commit {
		noError(t, tx.Commit(t.Context()))
	} else {
		noError(t, tx.Rollback(t.Context()))
	}
}

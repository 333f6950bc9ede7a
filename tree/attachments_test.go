package tree_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/attach"
	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// picture is a PNG of a size.
func picture(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	noError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))))
	return b.Bytes()
}

// naming is a user's message that names attachments.
func naming(text string, all ...tree.Attachment) json.RawMessage {
	parts := []chat.Part{chat.TextPart(text)}
	for _, a := range all {
		parts = append(parts, a.Part())
	}
	return (&chat.Message{Role: chat.User, Parts: parts}).Encode()
}

func upload(t testing.TB, s *tree.Store, name string, data []byte) tree.Attachment {
	t.Helper()
	return must3(s.Attachments().Add(t.Context(), name, data))(t)
}

func say(t testing.TB, s *tree.Store, conversation, parent uuid.UUID, body json.RawMessage) tree.Message {
	t.Helper()
	return must(s.Append(t.Context(), conversation, parent, tree.NewMessage{Message: chat.Read(body)}))(t).Message
}

// has tells whether the attachment is there.
func has(t testing.TB, s *tree.Store, a tree.Attachment) bool {
	t.Helper()
	_, _, err := s.Attachments().One(t.Context(), a.Hash)
	check.Need(t, err == nil || errors.Is(err, fault.NotFound), "%v", err)
	return err == nil
}

// TestAttachmentGoesWithItsLastMessage prunes and deletes in every way.
func TestAttachmentGoesWithItsLastMessage(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	a, b := upload(t, s, "a.txt", []byte("a")), upload(t, s, "b.txt", []byte("b"))
	waiting := upload(t, s, "c.txt", []byte("c"))
	one, two := newConversation(t, s).ID, newConversation(t, s).ID
	top := say(t, s, one, uuid.Nil, naming("both", a, b, a))
	under := say(t, s, one, top.ID, naming("again", a))
	elsewhere := say(t, s, two, uuid.Nil, naming("too", b))
	fork := must3(s.Fork(t.Context(), one, under.ID, tree.NewConversation{}))(t)
	there := func(when string, wantA, wantB bool) {
		t.Helper()
		got, want := [3]bool{has(t, s, a), has(t, s, b), has(t, s, waiting)}, [3]bool{wantA, wantB, true}
		check.Equal(t, "after "+when+", that a, b and what waits for its message are there", got, want)
	}
	noError(t, s.DeleteConversation(t.Context(), one))
	there("the deletion of a conversation that was forked", true, true)
	noError(t, s.Histories().ReplaceEnd(t.Context(), fork.ID, fork.HeadID, fork.HeadID, nil, func(tree.Message) bool { return false }))
	there("a prune of one message that names it", true, true)
	noError(t, s.DeleteConversation(t.Context(), fork.ID))
	there("the deletion of the fork", false, true)
	answer := say(t, s, two, elsewhere.ID, json.RawMessage(`{"role":"assistant","content":"A b."}`))
	must(s.Histories().Retract(t.Context(), two, answer.ID, func(tree.Message) int { return 1 }))(t)
	there("the deletion of the last message with its answer", false, false)
}

// An acknowledged upload is there for the message to come, though the last that named it is deleted.
func TestAttachmentAddedAgainStays(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	for _, at := range []time.Time{{}, time.Now().Add(24 * time.Hour)} { // an import may date a message ahead
		a, one, two := upload(t, s, "a.txt", []byte("a")), uuid.New(), newConversation(t, s).ID
		must(s.Import(t.Context(), tree.Bundle{Conversation: tree.NewConversation{ID: one}, Nodes: []tree.BundleNode{{ID: one, Body: naming("one", a), CreatedAt: at}}}))(t)
		upload(t, s, "a.txt", []byte("a"))
		noError(t, s.DeleteConversation(t.Context(), one))
		say(t, s, two, uuid.Nil, naming("two", a))
		noError(t, s.DeleteConversation(t.Context(), two))
		check.That(t, !has(t, s, a), "it stays, although nothing names it and nobody added it again")
	}
}

// A sweep deletes old uploads that no message names, of all tenants, some at a time.
func TestSweepAttachments(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	a, b := upload(t, s, "a.txt", []byte("a")), upload(t, s, "b.txt", []byte("b"))
	say(t, s, newConversation(t, s).ID, uuid.Nil, naming("x", a, b))
	other := s.ForTenant("other")
	one, two := upload(t, other, "a.txt", []byte("a")), upload(t, other, "b.txt", []byte("b"))
	var sweep tree.AttachmentSweep
	next := func(before time.Time, limit int) int {
		t.Helper()
		return must(sweep.Next(t.Context(), s, before, limit))(t)
	}
	n := next(time.Now().Add(-tree.UnusedAttachmentAge), 10)
	check.That(t, n == 0, "of what was uploaded now, %d went", n)
	later := time.Now().Add(time.Hour)
	n = must((&tree.AttachmentSweep{ServerID: "another"}).Next(t.Context(), s, later, 10))(t)
	check.That(t, n == 0, "a server swept that doesn't lead, and %d went", n)
	var went []int
	for range 5 { // two that are named, two that aren't, and the end
		went = append(went, next(later, 1))
	}
	check.That(t, slices.Equal(went, []int{0, 0, 1, 1, 0}) && !has(t, other, one) && !has(t, other, two), "of one at a time went %v", went)
	upload(t, other, "a.txt", []byte("a"))
	n = next(later, 3)
	check.That(t, n == 1, "of the next round went %d", n)
	check.That(t, has(t, s, a) && has(t, s, b), "the wrong ones went")
}

// A prune that deletes an attachment waits for an append that names it, and leaves it.
func TestAttachmentsAreHeld(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	a := upload(t, s, "", []byte("contended"))
	c, other := newConversation(t, s).ID, newConversation(t, s).ID
	m := say(t, s, c, uuid.Nil, naming("x", a))
	err := meanwhile(t, pool, func(s *tree.Store) error {
		return second(s.Append(t.Context(), other, uuid.Nil, tree.NewMessage{Message: chat.Read(naming("y", a))}))
	}, func() error { return second(s.Prune(t.Context(), c, m.ID)) })
	check.That(t, err == nil && has(t, s, a), "a message names what is gone, %v", err)
}

// A prune leaves a file that is uploaded and named once it has looked who names it, and drops the other.
func TestPruneLeavesWhatIsUploadedMeanwhile(t *testing.T) {
	t.Parallel()
	dbtest.OnPlain(t, "an upload waits there for the end of the prune")
	pool := dbtest.New(t)
	s := tree.New(pool)
	before, other := uuid.New(), newConversation(t, s).ID
	meanwhile := []byte("uploaded meanwhile")
	late := tree.Attachment{Hash: sha256.Sum256(meanwhile), MediaType: "text/plain", Name: "late.txt"}
	there := upload(t, s, "there.txt", []byte("there already"))
	id := uuid.New()
	must(s.Import(t.Context(), tree.Bundle{
		Conversation: tree.NewConversation{ID: before},
		Nodes:        []tree.BundleNode{{ID: id, Body: naming("both", there, late)}},
	}))(t)
	asked := false
	pruning := tree.New(dbtest.AfterQuery(t, pool, "ListUsedAttachments", func() {
		asked = true
		mustAppend(t, s, other, uuid.Nil, tree.NewMessage{Message: chat.Read(naming("late", upload(t, s, "late.txt", meanwhile)))})
	}))
	must(pruning.Prune(t.Context(), before, id))(t)
	check.Need(t, asked, "the prune looked for no messages")
	_, _, err := s.Attachments().One(t.Context(), late.Hash)
	check.That(t, err == nil, "a message names what is gone: %v", err)
	_, _, err = s.Attachments().One(t.Context(), there.Hash)
	check.That(t, errors.Is(err, fault.NotFound), "nothing names it, and reading it gives %v", err)
}

func TestAttachmentsAreChecked(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t), tree.WithLimits(tree.Limits{AttachmentBytes: 2000, AllAttachmentBytes: 3000}))
	c := newConversation(t, s).ID
	pic := upload(t, s, "p.png", picture(t, 10, 10))
	hash := strings.Repeat("0", 64)
	for _, test := range []struct {
		name, code, body string
	}{
		{"of no upload", "attachment_not_found", `{"role":"user","content":[{"type":"file","file":{"file_id":"coppice:attachment/` + hash + `"}}]}`},
		{"no hash", "invalid_attachment", `{"role":"user","content":[{"type":"file","file":{"file_id":"coppice:attachment/a.txt"}}]}`},
		{"upper case", "invalid_attachment", `{"role":"user","content":[{"type":"image_url","image_url":{"url":"coppice:attachment/` + strings.Repeat("A", 64) + `"}}]}`},
		{"a picture as a file", "invalid_attachment", fmt.Sprintf(`{"role":"user","content":[{"type":"file","file":{"file_id":"coppice:attachment/%x"}}]}`, pic.Hash)},
	} {
		_, err := s.Append(t.Context(), c, uuid.Nil, tree.NewMessage{Message: chat.Read([]byte(test.body))})
		e := fault.Of(err)
		check.That(t, err != nil && e.Code == test.code, "%s: %v", test.name, err)
		_, err = s.AppendChain(t.Context(), c, uuid.Nil, []tree.NewMessage{{Message: chat.Read(naming("fine"))}, {Message: chat.Read([]byte(test.body))}})
		e = fault.Of(err)
		check.That(t, err != nil && e.Code == test.code && e.Field == "messages[1].content", "%s, in a chain: %v", test.name, err)
	}
	for _, test := range []struct {
		name, code string
		data       []byte
	}{
		{"a program", "unsupported_attachment", []byte("\x7fELF\x02\x01\x01\x00")},
		{"too large", "attachment_too_large", bytes.Repeat([]byte("x"), 2001)},
		{"one too many", "attachments_full", nil},
	} {
		if test.code == "attachments_full" {
			upload(t, s, "", bytes.Repeat([]byte("y"), 2000))
			test.data = bytes.Repeat([]byte("z"), 1000)
		}
		_, _, err := s.Attachments().Add(t.Context(), "", test.data)
		check.That(t, err != nil && fault.Of(err).Code == test.code, "%s: %v", test.name, err)
	}
	_, created, err := s.Attachments().Add(t.Context(), "", bytes.Repeat([]byte("y"), 2000))
	check.That(t, err == nil && !created, "what is there can't be uploaded again where all is full: %v, %v", created, err)
	_, _, err = s.Attachments().Add(t.Context(), "", append([]byte(strings.Repeat("x", attach.MaxText)), 'x'))
	check.That(t, err != nil, "a text of any size is taken")
}

// Once a missing file is uploaded, messages of imports and forks that name it cost what they should.
func TestUploadCountsAgain(t *testing.T) {
	t.Parallel()
	before, after := tree.New(dbtest.New(t)), tree.New(dbtest.New(t))
	text := []byte(strings.Repeat("hazel ", 500))
	pic := picture(t, 2000, 1000)
	file, image := upload(t, before, "hazel.txt", text), upload(t, before, "hazel.png", pic)
	conversation, other := uuid.New(), uuid.New()
	id := func(n byte) uuid.UUID { return uuid.UUID{0: 1, 15: n} }
	plain := func(role, text string) json.RawMessage {
		return json.RawMessage(fmt.Sprintf(`{"role":%q,"content":%q}`, role, text))
	}
	nodes := []tree.BundleNode{
		{ID: id(1), Body: plain("system", "Be brief.")},
		{ID: id(2), ParentID: id(1), Body: naming("first", file)},
		{ID: id(3), ParentID: id(2), Body: plain("assistant", "Hm.")},
		{ID: id(4), ParentID: id(3), Body: naming("both", image, file, file)},
		{ID: id(5), ParentID: id(3), Body: plain("user", "elsewhere")},
		{ID: id(6), ParentID: id(1), Body: plain("user", "without")},
		{ID: id(7), ParentID: id(4), Body: plain("user", "summary of this"), Summary: &tree.SummaryRange{LastSummarizedID: id(2), Model: "m"}},
	}
	costs := func(s *tree.Store, conversation uuid.UUID) (all []string) {
		c, found, err := s.Export(t.Context(), conversation)
		noError(t, err)
		for _, n := range gather(t, found) {
			if n.Summary != nil {
				continue
			}
			m := must(s.Message(t.Context(), c.ID, n.ID))(t)
			all = append(all, fmt.Sprintf("%s: %d of %d", chat.Read(n.Body).Text(), m.Tokens, m.PathTokens))
		}
		return all
	}
	imported := func(s *tree.Store) {
		t.Helper()
		for _, b := range []tree.Bundle{
			{Conversation: tree.NewConversation{ID: conversation}, Nodes: nodes},
			{Conversation: tree.NewConversation{ID: other}, Nodes: []tree.BundleNode{{ID: id(1), Body: naming("alone", image)}}},
		} {
			must(s.Import(t.Context(), b))(t)
		}
	}
	imported(before)
	appended := say(t, before, newConversation(t, before).ID, uuid.Nil, naming("alone", image)).Tokens
	m := must(before.Message(t.Context(), other, id(1)))(t)
	check.That(t, m.Tokens == appended, "an imported message costs %d tokens, and an appended one %d", m.Tokens, appended)
	imported(after)
	fork := must3(after.Fork(t.Context(), conversation, id(4), tree.NewConversation{}))(t)
	check.That(t, !slices.Equal(costs(after, conversation), costs(before, conversation)), "a missing file costs as much as one that is there")
	named, err := after.Index().ConversationAttachments(t.Context(), conversation)
	check.That(t, err == nil && len(named) == 2, "the conversation names %x, %v", named, err)
	upload(t, after, "hazel.txt", text)
	upload(t, after, "hazel.png", pic)
	upload(t, after, "hazel.png", pic) // which changes nothing
	for _, c := range []uuid.UUID{conversation, other} {
		got, want := costs(after, c), costs(before, c)
		check.That(t, slices.Equal(got, want), "after the upload they cost\n%q, and should\n%q", got, want)
	}
	path := slices.DeleteFunc(costs(before, conversation), func(cost string) bool {
		return strings.HasPrefix(cost, "without") || strings.HasPrefix(cost, "elsewhere")
	})
	got := costs(after, fork.ID)
	check.That(t, slices.Equal(got, path), "the messages of a fork cost\n%q, and should\n%q", got, path)
}

// An upload waits for an import that names it and isn't committed, and finds its messages.
func TestUploadMeetsImport(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	text := []byte(strings.Repeat("hazel ", 500))
	file := upload(t, s.ForTenant("elsewhere"), "hazel.txt", text)
	id, message := uuid.New(), uuid.New()
	bundle := tree.Bundle{Conversation: tree.NewConversation{ID: id}, Nodes: []tree.BundleNode{{ID: message, Body: naming("x", file)}}}
	noError(t, meanwhile(t, pool, func(s *tree.Store) error { return second(s.Import(t.Context(), bundle)) }, func() error {
		return third(s.Attachments().Add(t.Context(), "hazel.txt", text))
	}))
	m, err := s.Message(t.Context(), id, message)
	check.That(t, err == nil && m.Tokens >= file.Tokens, "the message costs %d tokens, and the file alone %d: %v", m.Tokens, file.Tokens, err)
}

// TestAttachmentsCost holds what messages cost against the provider's rule.
func TestAttachmentsCost(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := newConversation(t, s).ID
	bare := say(t, s, c, uuid.Nil, naming("Look:")).Tokens
	for _, size := range [][2]int{{100, 100}, {1024, 1024}, {4000, 300}, {600, 5000}} {
		a := upload(t, s, "p.png", picture(t, size[0], size[1]))
		want := bare + tokens.Image(size[0], size[1], "high")
		m := say(t, s, c, uuid.Nil, naming("Look:", a))
		check.That(t, m.Tokens == want && a.Tokens == want-bare, "%v costs %d, and alone %d; want %d", size, m.Tokens, a.Tokens, want)
		low := strings.Replace(string(naming("Look:", a)), `"image_url":{`, `"image_url":{"detail":"low",`, 1)
		m = say(t, s, c, uuid.Nil, json.RawMessage(low))
		check.That(t, m.Tokens == bare+85, "%v in low detail costs %d", size, m.Tokens)
	}
	text := strings.Repeat("Hazel, ash and oak. ", 500)
	a := upload(t, s, "trees.txt", []byte(text))
	cost, least := say(t, s, c, uuid.Nil, naming("Read:", a)).Tokens-bare, tokens.O200k().Count(text)
	check.That(t, cost >= least && cost <= least+20, "a text of %d tokens costs %d", least, cost)
}

// A message that is checked for a reply's context costs what it will cost when it is stored.
func TestCheckedCountsAttachments(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	conversation := newConversation(t, s).ID
	body := naming("What does it say?", upload(t, s, "notes.txt", []byte(strings.Repeat("Hazel and ash. ", 2000))))
	checked := must(s.Checked(t.Context(), []tree.NewMessage{{Message: chat.Read(body)}}))(t)
	m := say(t, s, conversation, uuid.Nil, body)
	check.That(t, checked[0].Tokens() == m.Tokens && m.Tokens >= 6000, "it costs %d tokens, and cost %d when it was checked", m.Tokens, checked[0].Tokens())
	left, leave := context.WithCancel(t.Context())
	leave()
	refused(t, "Checked for a client that left", second(s.Checked(left, []tree.NewMessage{user("x")})), context.Canceled)
	refused(t, "Cost for a client that left", second(s.Cost(left, user("x").Message)), context.Canceled)
	missing := naming("And this?", tree.Attachment{Hash: sha256.Sum256([]byte("nowhere")), MediaType: "text/plain", Name: "b.txt"})
	refused(t, "what isn't there", second(s.Checked(t.Context(), []tree.NewMessage{{Message: chat.Read(missing)}})), fault.NotFound)
}

// An upload whose bytes come by another request meanwhile is answered as a second one, and needs no room.
func TestUploadsAtOnce(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	data := []byte("the same bytes")
	limits := tree.Limits{AllAttachmentBytes: int64(len(data)) * 3 / 2}
	other := tree.New(pool, tree.WithLimits(limits))
	uploads := 0
	s := tree.New(dbtest.AfterQuery(t, pool, "TouchAttachment", func() {
		uploads++
		_, created, err := other.Attachments().Add(t.Context(), "first.txt", data)
		check.That(t, err == nil && created, "the upload in between: %v, %v", created, err)
	}), tree.WithLimits(limits))
	a, created, err := s.Attachments().Add(t.Context(), "second.txt", data)
	check.That(t, err == nil && !created && a.Name == "first.txt" && uploads == 1,
		"it is stored as %q, created %v, %v; after %d uploads in between", a.Name, created, err, uploads)
}

// A sweep takes no attachment that an import counted, and neither waits for ever, in any order.
func TestImportHoldsWhatItCounts(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	named := []tree.Attachment{upload(t, s, "a.txt", []byte("not named yet")), upload(t, s, "b.txt", []byte("nor this"))}
	slices.SortFunc(named, func(a, b tree.Attachment) int { return bytes.Compare(b.Hash[:], a.Hash[:]) }) // the sweep begins at the other end
	swept := make(chan error, 1)
	var once sync.Once
	importing := tree.New(dbtest.AfterQuery(t, pool, "ListAttachments", func() {
		once.Do(func() {
			go func() {
				_, err := new(tree.AttachmentSweep).Next(t.Context(), s, time.Now().Add(time.Hour), 10)
				swept <- err
			}()
			for dbtest.Waiting(t, pool) == 0 && len(swept) == 0 {
				time.Sleep(time.Millisecond)
			}
		})
	}))
	var bundles []tree.Bundle
	for _, a := range named {
		bundles = append(bundles, tree.Bundle{
			Conversation: tree.NewConversation{ID: uuid.New()},
			Nodes:        []tree.BundleNode{{ID: uuid.New(), Body: naming("read", a)}},
		})
	}
	must(importing.Import(t.Context(), bundles...))(t)
	noError(t, <-swept)
	check.That(t, has(t, s, named[0]) && has(t, s, named[1]), "messages name them, and their tokens are counted, and they are gone")
}

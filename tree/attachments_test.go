package tree_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/attach"
	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
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
	return must3(s.AddAttachment(t.Context(), name, data))(t)
}

func say(t testing.TB, s *tree.Store, conversation, parent uuid.UUID, body json.RawMessage) tree.Message {
	t.Helper()
	return must(s.Append(t.Context(), conversation, parent, tree.NewMessage{Message: chat.Read(body)}))(t).Message
}

func start(t testing.TB, s *tree.Store) uuid.UUID {
	t.Helper()
	c := must3(s.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	return c.ID
}

// has tells whether the attachment is there.
func has(t testing.TB, s *tree.Store, a tree.Attachment) bool {
	t.Helper()
	_, _, err := s.Attachment(t.Context(), a.Hash)
	check.Need(t, err == nil || errors.Is(err, fault.NotFound), "%v", err)
	return err == nil
}

// TestAttachmentGoesWithItsLastMessage prunes and deletes in every way.
func TestAttachmentGoesWithItsLastMessage(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	a, b := upload(t, s, "a.txt", []byte("a")), upload(t, s, "b.txt", []byte("b"))
	waiting := upload(t, s, "c.txt", []byte("c"))
	one, two := start(t, s), start(t, s)
	top := say(t, s, one, uuid.Nil, naming("both", a, b, a))
	under := say(t, s, one, top.ID, naming("again", a))
	elsewhere := say(t, s, two, uuid.Nil, naming("too", b))
	fork := must3(s.Fork(t.Context(), one, under.ID, tree.NewConversation{}))(t)
	check := func(what string, wantA, wantB bool) {
		t.Helper()
		if has(t, s, a) != wantA || has(t, s, b) != wantB || !has(t, s, waiting) {
			t.Errorf("after %s: a is there %v, b %v, one that waits for its message %v; want %v, %v, true", what, has(t, s, a), has(t, s, b), has(t, s, waiting), wantA, wantB)
		}
	}
	noError(t, s.DeleteConversation(t.Context(), one))
	check("the deletion of a conversation that was forked", true, true)
	noError(t, s.ReplaceEnd(t.Context(), fork.ID, fork.HeadID, fork.HeadID, nil, func(tree.Message) bool { return false }))
	check("a prune of one message that names it", true, true)
	noError(t, s.DeleteConversation(t.Context(), fork.ID))
	check("the deletion of the fork", false, true)
	answer := say(t, s, two, elsewhere.ID, json.RawMessage(`{"role":"assistant","content":"A b."}`))
	must(s.Retract(t.Context(), two, answer.ID, func(tree.Message) int { return 1 }))(t)
	check("the deletion of the last message with its answer", false, false)
}

// An acknowledged upload is there for the message to come, though the last that named it is deleted.
func TestAttachmentAddedAgainStays(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	a := upload(t, s, "a.txt", []byte("a"))
	one, two := start(t, s), start(t, s)
	say(t, s, one, uuid.Nil, naming("one", a))
	upload(t, s, "a.txt", []byte("a"))
	noError(t, s.DeleteConversation(t.Context(), one))
	say(t, s, two, uuid.Nil, naming("two", a))
	noError(t, s.DeleteConversation(t.Context(), two))
	check.That(t, !has(t, s, a), "it stays, although nothing names it and nobody added it again")
}

// A sweep deletes old uploads that no message names, of all tenants, some at a time.
func TestSweepAttachments(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	a, b := upload(t, s, "a.txt", []byte("a")), upload(t, s, "b.txt", []byte("b"))
	say(t, s, start(t, s), uuid.Nil, naming("x", a, b))
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
	var went []int
	for range 5 { // two that are named, two that aren't, and the end
		went = append(went, next(later, 1))
	}
	check.That(t, slices.Equal(went, []int{0, 0, 1, 1, 0}) && !has(t, other, one) && !has(t, other, two), "of one at a time went %v", went)
	upload(t, other, "a.txt", []byte("a"))
	if n := next(later, 3); n != 1 {
		t.Errorf("of the next round went %d", n)
	}
	check.That(t, has(t, s, a) && has(t, s, b), "the wrong ones went")
}

// A prune that deletes an attachment waits for an append that names it, and leaves it.
func TestAttachmentsAreHeld(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	a := upload(t, s, "", []byte("contended"))
	c, other := start(t, s), start(t, s)
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
	before, other := uuid.New(), start(t, s)
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
	_, _, err := s.Attachment(t.Context(), late.Hash)
	check.That(t, err == nil, "a message names what is gone: %v", err)
	_, _, err = s.Attachment(t.Context(), there.Hash)
	check.That(t, errors.Is(err, fault.NotFound), "nothing names it, and reading it gives %v", err)
}

func TestAttachmentsAreChecked(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t), tree.WithLimits(tree.Limits{AttachmentBytes: 2000, AllAttachmentBytes: 3000}))
	c := start(t, s)
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
		if e := fault.Of(err); err == nil || e.Code != test.code || e.Field != "messages[1].content" {
			t.Errorf("%s, in a chain: %v", test.name, err)
		}
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
		_, _, err := s.AddAttachment(t.Context(), "", test.data)
		check.That(t, err != nil && fault.Of(err).Code == test.code, "%s: %v", test.name, err)
	}
	_, created, err := s.AddAttachment(t.Context(), "", bytes.Repeat([]byte("y"), 2000))
	check.That(t, err == nil && !created, "what is there can't be uploaded again where all is full: %v, %v", created, err)
	_, _, err = s.AddAttachment(t.Context(), "", append([]byte(strings.Repeat("x", attach.MaxText)), 'x'))
	check.That(t, err != nil, "a text of any size is taken")
}

package tree_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

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
	appended := say(t, before, start(t, before), uuid.Nil, naming("alone", image)).Tokens
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
	got, want := costs(after, fork.ID), path
	check.That(t, slices.Equal(got, want), "the messages of a fork cost\n%q, and should\n%q", got, want)
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
		return third(s.AddAttachment(t.Context(), "hazel.txt", text))
	}))
	m, err := s.Message(t.Context(), id, message)
	check.That(t, err == nil && m.Tokens >= file.Tokens, "the message costs %d tokens, and the file alone %d: %v", m.Tokens, file.Tokens, err)
}

// TestAttachmentsCost holds what messages cost against the provider's rule.
func TestAttachmentsCost(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	c := start(t, s)
	bare := say(t, s, c, uuid.Nil, naming("Look:")).Tokens
	for _, size := range [][2]int{{100, 100}, {1024, 1024}, {4000, 300}, {600, 5000}} {
		a := upload(t, s, "p.png", picture(t, size[0], size[1]))
		want := bare + tokens.Image(size[0], size[1], "high")
		m := say(t, s, c, uuid.Nil, naming("Look:", a))
		check.That(t, m.Tokens == want && a.Tokens == want-bare, "%v costs %d, and alone %d; want %d", size, m.Tokens, a.Tokens, want)
		low := strings.Replace(string(naming("Look:", a)), `"image_url":{`, `"image_url":{"detail":"low",`, 1)
		if m := say(t, s, c, uuid.Nil, json.RawMessage(low)); m.Tokens != bare+85 {
			t.Errorf("%v in low detail costs %d", size, m.Tokens)
		}
	}
	text := strings.Repeat("Hazel, ash and oak. ", 500)
	a := upload(t, s, "trees.txt", []byte(text))
	if m := say(t, s, c, uuid.Nil, naming("Read:", a)); m.Tokens < bare+tokens.O200k().Count(text) || m.Tokens > bare+tokens.O200k().Count(text)+20 {
		t.Errorf("a text of %d tokens costs %d", tokens.O200k().Count(text), m.Tokens-bare)
	}
}

// A message that is checked for a reply's context costs what it will cost when it is stored.
func TestCheckedCountsAttachments(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	conversation := start(t, s)
	body := naming("What does it say?", upload(t, s, "notes.txt", []byte(strings.Repeat("Hazel and ash. ", 2000))))
	checked := must(s.Checked(t.Context(), []tree.NewMessage{{Message: chat.Read(body)}}))(t)
	if m := say(t, s, conversation, uuid.Nil, body); checked[0].Tokens() != m.Tokens || m.Tokens < 6000 {
		t.Errorf("it costs %d tokens, and cost %d when it was checked", m.Tokens, checked[0].Tokens())
	}
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
		_, created, err := other.AddAttachment(t.Context(), "first.txt", data)
		check.That(t, err == nil && created, "the upload in between: %v, %v", created, err)
	}), tree.WithLimits(limits))
	a, created, err := s.AddAttachment(t.Context(), "second.txt", data)
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

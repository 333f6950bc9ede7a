package tree_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// TestUploadCountsAgain imports messages that name a missing file, forks them, and
// uploads the file: all of them cost then what they would if it had been there.
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
		if err != nil {
			t.Fatal(err)
		}
		for n, err := range found {
			if err != nil {
				t.Fatal(err)
			}
			if n.Summary != nil {
				continue
			}
			m, err := s.Message(t.Context(), c.ID, n.ID)
			if err != nil {
				t.Fatal(err)
			}
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
			if _, err := s.Import(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
	}
	imported(before)
	imported(after)
	fork, _, err := after.Fork(t.Context(), conversation, id(4), tree.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	if slices.Equal(costs(after, conversation), costs(before, conversation)) {
		t.Error("a missing file costs as much as one that is there")
	}
	upload(t, after, "hazel.txt", text)
	upload(t, after, "hazel.png", pic)
	upload(t, after, "hazel.png", pic) // which changes nothing
	for _, c := range []uuid.UUID{conversation, other} {
		if got, want := costs(after, c), costs(before, c); !slices.Equal(got, want) {
			t.Errorf("after the upload they cost\n%q, and should\n%q", got, want)
		}
	}
	path := slices.DeleteFunc(costs(before, conversation), func(cost string) bool {
		return strings.HasPrefix(cost, "without") || strings.HasPrefix(cost, "elsewhere")
	})
	if got, want := costs(after, fork.ID), path; !slices.Equal(got, want) {
		t.Errorf("the messages of a fork cost\n%q, and should\n%q", got, want)
	}
}

// TestUploadMeetsImport uploads a file while an import that names it isn't committed:
// the upload waits, and finds its messages.
func TestUploadMeetsImport(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	text := []byte(strings.Repeat("hazel ", 500))
	file := upload(t, s.ForTenant("elsewhere"), "hazel.txt", text)
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background()) //nolint:errcheck // after the commit there is nothing to roll back
	id, message := uuid.New(), uuid.New()
	bundle := tree.Bundle{Conversation: tree.NewConversation{ID: id}, Nodes: []tree.BundleNode{{ID: message, Body: naming("x", file)}}}
	if _, err := tree.New(tx).Import(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	uploaded := make(chan error, 1)
	go func() {
		_, _, err := s.AddAttachment(t.Context(), "hazel.txt", text)
		uploaded <- err
	}()
	untilWaiting(t, pool)
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-uploaded; err != nil {
		t.Fatal(err)
	}
	m, err := s.Message(t.Context(), id, message)
	if err != nil || m.Tokens < file.Tokens {
		t.Errorf("the message costs %d tokens, and the file alone %d: %v", m.Tokens, file.Tokens, err)
	}
}

// TestImportMayNameWhatIsMissing imports a message that names an attachment which
// the store doesn't have, and has had the message use it once it comes.
func TestImportMayNameWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	elsewhere := upload(t, s.ForTenant("elsewhere"), "a.txt", []byte("a"))
	id := uuid.New()
	bundle := tree.Bundle{Conversation: tree.NewConversation{ID: id}, Nodes: []tree.BundleNode{{ID: uuid.New(), Body: naming("x", elsewhere)}}}
	if _, err := s.Import(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	upload(t, s, "a.txt", []byte("a"))
	if n, err := s.SweepAttachments(t.Context(), time.Now().Add(time.Hour), 10); err != nil || n != 1 || !has(t, s, elsewhere) {
		t.Errorf("%d went (the other tenant's should): %v", n, err)
	}
	if all, err := s.ConversationAttachments(t.Context(), id); err != nil || len(all) != 1 || all[0] != elsewhere.Hash {
		t.Errorf("the conversation names %x: %v", all, err)
	}
}

// TestImportCountsAttachments holds that an imported message costs what an appended
// one does, whether the attachment is there or missing.
func TestImportCountsAttachments(t *testing.T) {
	t.Parallel()
	s := tree.New(dbtest.New(t))
	file := upload(t, s, "notes.txt", []byte(strings.Repeat("Hazel and ash. ", 100)))
	missing := tree.Attachment{Hash: sha256.Sum256([]byte("nowhere")), MediaType: "text/plain", Name: "notes.txt"}
	want := say(t, s, start(t, s), uuid.Nil, naming("Read:", file)).Tokens
	there, gone := uuid.New(), uuid.New()
	bundle := tree.Bundle{Conversation: tree.NewConversation{ID: uuid.New()}, Nodes: []tree.BundleNode{
		{ID: there, Body: naming("Read:", file)}, {ID: gone, Body: naming("Read:", missing)},
	}}
	if _, err := s.Import(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	for id, most := range map[uuid.UUID]int{there: want, gone: want - 300} {
		if m, err := s.Message(t.Context(), bundle.Conversation.ID, id); err != nil || m.Tokens > most || id == there && m.Tokens != want {
			t.Errorf("it costs %d tokens, and one that was appended %d, %v", m.Tokens, want, err)
		}
	}
}

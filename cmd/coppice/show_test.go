package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/tree"
)

// The last messages of a branch are in order, whatever pages they lie on.
func TestLastMessages(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := tree.New(dbtest.New(t))
	c, _, err := store.CreateConversation(ctx, tree.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	const total = tree.MaxPage + 2
	var ids []uuid.UUID
	for len(ids) < total {
		chain := make([]tree.NewMessage, min(tree.MaxChain, total-len(ids)))
		for i := range chain {
			body := fmt.Sprintf(`{"role": "user", "content": "%d"}`, len(ids)+i)
			chain[i] = tree.NewMessage{Message: chat.Read([]byte(body))}
		}
		parent := uuid.Nil
		if len(ids) > 0 {
			parent = ids[len(ids)-1]
		}
		stored, err := store.AppendChain(ctx, c.ID, parent, chain)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range stored.Messages {
			ids = append(ids, m.ID)
		}
	}
	for _, limit := range []int{1, tree.MaxPage, tree.MaxPage + 1, total, total + 1} {
		page, err := lastMessages(ctx, store, c.ID, ids[total-1], limit)
		if err != nil {
			t.Fatal(err)
		}
		want := ids[max(0, total-limit):]
		if whole := len(want) == total; (page.Next == "") != whole {
			t.Errorf("limit %d: next cursor %q", limit, page.Next)
		}
		if len(page.Data) != len(want) {
			t.Fatalf("limit %d: %d messages, want %d", limit, len(page.Data), len(want))
		}
		for i, m := range page.Data {
			if m.ID != want[i] {
				t.Fatalf("limit %d: message %d is %s", limit, i, m.ID)
			}
		}
	}
}

// What a model thought is printed where it is asked for, set apart from the answer,
// and can't steer the terminal.
func TestShowReasoning(t *testing.T) {
	t.Parallel()
	m := tree.Message{Role: tree.RoleAssistant, Body: json.RawMessage(`{"role":"assistant","content":"A wood."}`), Reasoning: "Hm.\n\nHazel\x1b[2J."}
	for asked, want := range map[bool]string{false: "\nA wood.\n", true: "\n┆ Hm.\n┆ \n┆ Hazel"} {
		var b bytes.Buffer
		out := &terminal.Console{Writer: bufio.NewWriter(&b), Width: 80}
		branch := func(yield func(tree.Message, error) bool) { yield(m, nil) }
		if err := writeTranscript(out, tree.Conversation{}, m, branch, asked); err != nil {
			t.Fatal(err)
		}
		if err := out.Writer.Flush(); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); !strings.Contains(got, want) || !strings.HasSuffix(got, "A wood.\n") || strings.Contains(got, "\x1b[2J") || !asked && strings.Contains(got, "Hazel") {
			t.Errorf("asked for %t: %q", asked, got)
		}
	}
}

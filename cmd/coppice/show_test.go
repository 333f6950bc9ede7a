package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/tree"
)

// The last messages of a branch are in order, whatever pages they lie on.
func TestLastMessages(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	pool := dbtest.New(t)
	store := tree.New(pool)
	s := check.Must(server.New(server.Config{Store: store, Keys: keys.New(pool)}))(t)
	web := httptest.NewServer(s)
	defer web.Close()
	asked := &client{http: web.Client(), base: web.URL}
	c := check.Must3(store.CreateConversation(ctx, tree.NewConversation{}))(t)
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
		stored := check.Must(store.AppendChain(ctx, c.ID, parent, chain))(t)
		for _, m := range stored.Messages {
			ids = append(ids, m.ID)
		}
	}
	for _, limit := range []int{1, tree.MaxPage, tree.MaxPage + 1, total, total + 1} {
		branch, next, err := readBranch(ctx, asked, c.ID, ids[total-1], limit, func(tree.Message) bool { return false })
		check.NoError(t, err)
		want := ids[max(0, total-limit):]
		whole := len(want) == total
		check.That(t, (next == "") == whole, "limit %d: next cursor %q", limit, next)
		check.Need(t, len(branch) == len(want),
			"limit %d: %d messages, want %d", limit, len(branch), len(want))
		for i, m := range branch {
			check.Need(t, m.ID == want[i], "limit %d: message %d is %s", limit, i, m.ID)
		}
	}
}

// Thoughts are printed where asked for, set apart, and can't steer the terminal.
func TestShowReasoning(t *testing.T) {
	t.Parallel()
	m := tree.Message{Role: tree.RoleAssistant, Body: json.RawMessage(`{"role":"assistant","content":"A wood."}`), Reasoning: "Hm.\n\nHazel\x1b[2J."}
	for asked, want := range map[bool]string{false: "\nA wood.\n", true: "\n┆ Hm.\n┆ \n┆ Hazel"} {
		var b bytes.Buffer
		out := &terminal.Console{Writer: bufio.NewWriter(&b), Width: 80}
		writeTranscript(out, tree.Conversation{}, []tree.Message{m}, asked)
		check.NoError(t, out.Writer.Flush())
		if got := b.String(); !strings.Contains(got, want) || !strings.HasSuffix(got, "A wood.\n") || strings.Contains(got, "\x1b[2J") || !asked && strings.Contains(got, "Hazel") {
			t.Errorf("asked for %t: %q", asked, got)
		}
	}
}

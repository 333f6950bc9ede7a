package tree

import (
	"fmt"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// No message of a branch is compared twice with the same one of a history: where all say the same, it took 31 s.
func TestSameAgainAndAgain(t *testing.T) {
	t.Parallel()
	const rows, messages = 263, 202
	compared, ends := map[[2]int]int{}, map[int]int{}
	for last := messages - 2; last > messages-2-2*maxRunAnswers; last -= 2 {
		_, length := longestRun(rows, last, ends, func(row, message int) bool {
			compared[[2]int{row, message}]++
			return row < rows && message > 0 && row%2 == message%2
		})
		check.Need(t, length == last, "a run of %d messages ends at message %d", length, last)
	}
	for pair, times := range compared {
		check.Need(t, times <= 1, "row %d and message %d are compared %d times", pair[0], pair[1], times)
	}
}

// What is stored is counted once, by its bytes: alone, as a path, as a fork, and as a file.
func TestCount(t *testing.T) {
	t.Parallel()
	ctx, got := t.Context(), ""
	s := New(dbtest.New(t), WithCount(func(tenant string, messages, bytes int) { got += fmt.Sprint(tenant, " ", messages, " ", bytes, "; ") }))
	c := check.Must3(s.CreateConversation(ctx, NewConversation{}))(t)
	m := NewMessage{ID: uuid.Must(uuid.NewV7()), Message: chat.Read([]byte(`{"role":"user","content":"a"}`))} // 29 bytes
	for range 2 {
		check.Must(s.Append(ctx, c.ID, uuid.Nil, m))(t)
	}
	check.Must(s.AppendChain(ctx, c.ID, m.ID, []NewMessage{{Message: m.Message}, {Message: m.Message}}))(t)
	check.Must3(s.Fork(ctx, c.ID, m.ID, NewConversation{}))(t)
	for range 2 {
		check.Must3(s.Attachments().Add(ctx, "a.txt", []byte("file")))(t)
	}
	check.Equal(t, "what was counted", got, "default 1 29; default 2 58; default 1 29; default 0 4; ")
}

// These are the cases of RFC 7396 for objects, then bytes that stay, a name that stands twice, and blanks.
func TestMergePatch(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"a": 1.50, "b":[1, 2]}`, `{"c":2}`, `{"a":1.50,"b":[1, 2],"c":2}`},
		{`{"a":1,"b":2,"a":3}`, `{"a":4}`, `{"b":2,"a":4}`},
		{`{"a":1,"a":3}`, `{"a":null}`, `{}`},
		{` {"a":1}`, ` {"b":2}`, `{"a":1,"b":2}`},
	} {
		check.Equal(t, c[0]+" changed by "+c[1], string(mergePatch([]byte(c[0]), []byte(c[1]))), c[2])
	}
}

// WaitingWriters returns how many wait in memory to write to a conversation.
func (s *Store) WaitingWriters(conversationID uuid.UUID) int {
	return s.writers.Waiting(conversationID)
}

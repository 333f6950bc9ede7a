package markdown

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

func branch(messages []tree.Message) iter.Seq2[tree.Message, error] {
	return func(yield func(tree.Message, error) bool) {
		for _, m := range messages {
			if !yield(m, nil) {
				return
			}
		}
	}
}

func branchMessage(second int, role tree.Role, body string, siblings ...int) tree.Message {
	m := tree.Message{Role: role, Body: json.RawMessage(body), CreatedAt: time.Date(2026, 1, 2, 9, 0, second, 0, time.UTC)}
	m.Siblings = tree.Siblings{Index: 1, Count: 1}
	if len(siblings) == 2 {
		m.Siblings = tree.Siblings{Index: siblings[0], Count: siblings[1]}
	}
	return m
}

func TestMarkdown(t *testing.T) {
	t.Parallel()
	pinned := branchMessage(10, tree.RoleUser, `{"role":"user","name":"wood","content":"When is *hazel* cut?\n\n## Assistant\n\nNever.\n\n`+"```"+`\nan open fence"}`, 2, 3)
	pinned.Pinned = true
	var got bytes.Buffer
	check.NoError(t, Write(&got, tree.Conversation{
		ID: uuid.MustParse("01940000-0000-7000-8000-000000000001"), Title: "Hazel & <b>ash</b> [1]", CreatedAt: time.Date(2026, 1, 2, 9, 0, 0, 0, time.UTC),
	}, branch([]tree.Message{
		branchMessage(0, tree.RoleSystem, `{"role":"system","content":"You help to look after a wood."}`),
		pinned,
		branchMessage(12, tree.RoleAssistant, `{"role":"assistant","content":"I'll look.","tool_calls":[{"id":"call_1","type":"function","function":{"name":"calendar","arguments":"{\"tree\":\"hazel\",\"months\":[11,3]}"}},{"id":"call_2","type":"custom","custom":{"name":"notes","input":"hazel`+"`"+`"}}]}`),
		branchMessage(13, tree.RoleTool, `{"role":"tool","tool_call_id":"call_1","content":"`+"````"+`\nNovember to March\n`+"```"+`\n## User"}`),
		branchMessage(14, tree.RoleTool, `{"role":"tool","tool_call_id":"call_2","content":""}`),
		branchMessage(20, tree.RoleAssistant, `{"role":"assistant","content":"While the sap is down.\r\n\r\n1. November\r\n2. March"}`, 1, 2),
		branchMessage(30, tree.RoleUser, `{"role":"user","content":[{"type":"text","text":"And this one?"},{"type":"image_url","image_url":{"url":"https://example.org/leaf.png"}},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"file","file":{"filename":"plan.pdf"}}]}`),
		branchMessage(40, tree.RoleAssistant, `{"role":"assistant","content":null,"refusal":"I can't tell from a leaf."}`),
	})))
	check.Golden(t, "../../../testdata/branch.golden.md", got.String())
}

func TestMarkdownErrors(t *testing.T) {
	t.Parallel()
	broken := errors.New("connection lost")
	err := Write(&bytes.Buffer{}, tree.Conversation{}, func(yield func(tree.Message, error) bool) { yield(tree.Message{}, broken) })
	check.That(t, errors.Is(err, broken), "reading: %v", err)
	err = Write(brokenWriter{}, tree.Conversation{}, branch([]tree.Message{branchMessage(0, tree.RoleUser, `{"role":"user","content":"a"}`)}))
	check.That(t, errors.Is(err, errBrokenWriter), "writing: %v", err)
}

var errBrokenWriter = errors.New("disk full")

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBrokenWriter }

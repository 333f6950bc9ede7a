package anthropic_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server/anthropic/wire"
)

// A client keeps its history itself, as the SDKs and Claude Code do. Each request has another billing
// line, a moving mark of the cache, and every second one asks for a stream.
type client struct {
	*api
	model    string
	history  []json.RawMessage
	requests int
}

// turn asks a question, runs the tools that the model calls, and adds all to the
// history.
func (c *client) turn(question string) {
	c.t.Helper()
	marked := fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":%q,"cache_control":{"type":"ephemeral"}}]}`, question)
	plain := fmt.Sprintf(`{"role":"user","content":%q}`, question)
	for {
		c.requests++
		got, _ := c.ask(c.body(marked), "X-Claude-Code-Session-Id", "s1")
		c.history = append(c.history, json.RawMessage(plain))
		blocks := blocksIn(c.t, got)
		c.history = append(c.history, json.RawMessage(`{"role":"assistant","content":[`+string(bytes.Join(blocks, []byte(",")))+`]}`))
		var results []string
		for _, raw := range blocks {
			var b struct{ Type, ID string }
			if _ = json.Unmarshal(raw, &b); b.Type == "tool_use" {
				results = append(results, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":"hello","is_error":false`, b.ID))
			}
		}
		if results == nil {
			return
		}
		marked = `{"role":"user","content":[` + strings.Join(results, `},`) + `,"cache_control":{"type":"ephemeral"}}]}`
		plain = `{"role":"user","content":[` + strings.Join(results, `},`) + `}]}`
	}
}

func (c *client) body(last string) string {
	return fmt.Sprintf(`{"model":%q,"max_tokens":64000,"stream":%t,"thinking":{"type":"adaptive"},"tools":[{"name":"Bash","input_schema":{"type":"object"}}],
 "system":[{"type":"text","text":"x-anthropic-billing-header: v=%d"},{"type":"text","text":"Be brief.","cache_control":{"type":"ephemeral"}}],
 "messages":[%s]}`, c.model, c.requests%2 == 0, c.requests, string(bytes.Join(append(rawBytes(c.history), []byte(last)), []byte(","))))
}

func rawBytes(raw []json.RawMessage) (out [][]byte) {
	for _, r := range raw {
		out = append(out, r)
	}
	return out
}

// blocksIn are the content blocks of an answer, whole or as a stream.
func blocksIn(t *testing.T, got string) [][]byte {
	t.Helper()
	if strings.HasPrefix(got, "event:") {
		var r wire.Received
		events := bufio.NewReader(strings.NewReader(got))
		for {
			_, data, err := wire.ReadEvent(events)
			if data != nil {
				check.Must(r.Add(data))(t)
			}
			if errors.Is(err, io.EOF) {
				break
			}
		}
		check.Need(t, r.Done, "no end: %s", got)
		return rawBytes(r.Blocks)
	}
	var m struct{ Content []json.RawMessage }
	check.NoError(t, json.Unmarshal([]byte(got), &m))
	return rawBytes(m.Content)
}

// TestSession holds that a session of eight turns with tools, an edit and a restart is
// one conversation of two branches, with no message twice, whoever answers.
func TestSession(t *testing.T) {
	t.Parallel()
	for model, name := range map[string]string{"claude-x": "upstream", "wood": "own model"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			provider := newProvider(t)
			a := newAPI(t, provider)
			n := 0
			a.model.Otherwise(llmtest.Reply(func(req llmtest.Request) llmtest.Behaviour {
				n++
				if strings.Contains(string(req.Messages[len(req.Messages)-1]), "run") {
					return llmtest.SayAndCall(fmt.Sprintf("Answer %d.", n), llmtest.ToolCall{ID: fmt.Sprint("call_a", n), Name: "Bash", Arguments: `{"command": "echo"}`}, llmtest.ToolCall{ID: fmt.Sprint("call_b", n), Name: "Bash", Arguments: `{}`})
				}
				return llmtest.Think("Let me think.", fmt.Sprintf("Answer %d.\n", n))
			}))
			c := &client{api: a, model: model}
			for i := range 8 {
				if i == 4 {
					a.start()
				}
				c.turn([]string{"Question %d?", "run it, %d"}[i%2] + fmt.Sprint(i))
			}
			before := len(c.history)
			c.history = c.history[:8:8] // three turns: the fourth is asked otherwise
			c.turn("run it, edited")
			conversations, branches := a.branches()
			check.Need(t, conversations == 1 && len(branches) == 2, "%d conversations, %d branches:\n%s", conversations, len(branches), branches)
			slices.SortFunc(branches, func(a, b string) int { return len(b) - len(a) })
			results := 1
			if model == "wood" {
				results = 2
			}
			for i, want := range []int{1 + before + 4*(results-1), 1 + len(c.history) + 2*(results-1)} {
				lines := strings.Split(branches[i], "\n")
				check.Equal(t, "messages of "+branches[i], len(lines), want)
				check.Equal(t, "the branch begins with", lines[0], `{"role":"system","content":"Be brief."}`)
			}
		})
	}
}

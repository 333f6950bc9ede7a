package openai

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/server/openai/wire"
)

// TestPartsOfOtherAPIs holds that a completion's history may have calls and results of other APIs,
// and that what chat completions can't say is refused by its path.
func TestPartsOfOtherAPIs(t *testing.T) {
	t.Parallel()
	parse := func(assistant, user string) (said string, err error) {
		const hi = `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[`
		req, err := parseChat([]byte(hi+assistant+`]},{"role":"user","content":[`+user+`]}]}`), func(*wire.Request) ([]string, error) { return nil, nil })
		if err != nil {
			return "", err
		}
		for _, e := range req.Input.Entries[1:] {
			said += string(e.Message.Raw) + "\n"
		}
		return said, nil
	}
	const beside = `{"type":"thinking","thinking":"hm"},{"type":"text","text":"x"}],"tool_calls":[{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}},{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},` +
		`{"role":"tool","tool_call_id":"a","content":[{"text":"z"}`
	const picture = `{"type":"tool_result","tool_use_id":"b","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aaaa"}}]}`
	const both = `{"role":"assistant","content":"x","tool_calls":[{"id":"b","type":"function","function":{"name":"g","arguments":"{}"}},{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}
{"role":"tool","content":"z","tool_call_id":"a"}
{"role":"tool","content":"[image]","tool_call_id":"b"}
{"role":"user","content":[{"image_url":{"url":"data:image/png;base64,aaaa"},"type":"image_url"}]}
`
	check.Equal(t, "what stands beside the parts, and in a result", check.Must(parse(beside, picture))(t), both)
	const none, said = `{"type":"text","text":"x"}],"tool_calls":[ ]},{"role":"user","content":[{"type":"text","text":"y"}`, `{"role":"assistant","content":[{"type":"text","text":"x"}]}`
	got, err := parse(none, `{"type":"text","text":"z"}`)
	check.That(t, err == nil && strings.HasPrefix(got, said+"\n"), "an answer without calls: %v\n%s", err, got)
	if _, err := parse(`"x"`, `"x"`+strings.Repeat(`]},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f"}`, 12_000)); err == nil || !strings.HasSuffix(fault.Of(err).Field, "].content") {
		t.Errorf("more messages than an import of so many bytes reads: %v", err)
	}
	for part, field := range map[string]string{
		`{"type":"text","text":"x"},{"type":"server_tool_use"}`:   "messages[1].content[1].type",
		`{"type":"functionResponse","name":"a"}`:                  "messages[1].content[0].type",
		`{"type":"hologram","text":"x"}`:                          "messages[1].content[0].type",
		`{"type":"image","source":{"type":"file","file_id":"1"}}`: "messages[1].content[0].type",
	} {
		if _, err := parse(part, `"x"`); !errors.Is(err, fault.Invalid) || fault.Of(err).Field != field {
			t.Errorf("%s: %v", part, err)
		}
	}
}

// Texts of side requests begin as the operator says, however their lines are broken.
func TestBegins(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text, beginning string
		want            bool
	}{
		{"### Task:\nGenerate a title", "### Task: Generate", true},
		{"### Task:\r\n\n  Generate", "### Task: Generate", true},
		{"### Task: Generate", "### Task:\n\tGen", true},
		{"### Task:\nRespond to the user query", "### Task: Generate", false},
		{" ### Task: Generate", "### Task: Generate", true},
		{"### Task:", "### Task: Generate", false},
		{"Título: é", "Título:\u00a0é", true},
		{"", "x", false},
		{"x", "", true},
	} {
		check.Equal(t, fmt.Sprintf("%q begins with %q", test.text, test.beginning), begins(test.text, test.beginning), test.want)
	}
}

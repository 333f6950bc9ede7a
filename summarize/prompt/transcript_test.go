package prompt

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/tree"

	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
)

func TestTranscribe(t *testing.T) {
	t.Parallel()
	call := func(id string, members map[string]any) map[string]any {
		members["id"] = id
		return members
	}
	for _, c := range []struct {
		name     string
		messages []tree.Message
		want     string
	}{
		{"text", []tree.Message{prompttest.UserSays("Hello\n\n world")}, "user:\n| Hello\n|\n|  world\n"},
		{"name", []tree.Message{prompttest.Message(tree.RoleUser, map[string]any{"content": "Hi", "name": "Ada"})}, "user \"Ada\":\n| Hi\n"},
		{"system", []tree.Message{prompttest.Message(tree.RoleSystem, map[string]any{"content": "Be brief."})}, "system:\n| Be brief.\n"},
		{"refusal", []tree.Message{prompttest.Message(tree.RoleAssistant, map[string]any{"content": nil, "refusal": "I can't."})}, "assistant refuses:\n| I can't.\n"},
		{"refusal part", []tree.Message{prompttest.Message(tree.RoleAssistant, map[string]any{"content": []any{map[string]any{"type": "refusal", "refusal": "No."}}})}, "assistant:\n| No.\n"},
		{"call and result", []tree.Message{prompttest.AssistantCalls("read", `{ "path": "/etc/hosts" }`), prompttest.ToolSays("read", "127.0.0.1 localhost")},
			"assistant calls read: {\"path\":\"/etc/hosts\"}\nresult of read:\n| 127.0.0.1 localhost\n"},
		{"text beside a call", []tree.Message{prompttest.Message(tree.RoleAssistant, map[string]any{"content": "Let me look.", "tool_calls": []any{
			call("a", map[string]any{"function": map[string]any{"name": "read", "arguments": "{}"}}),
			call("b", map[string]any{"function": map[string]any{"name": "read", "arguments": ""}}),
		}})}, "assistant:\n| Let me look.\nassistant calls read (call 1): {}\nassistant calls read (call 2): \n"},
		{"arguments over several lines", []tree.Message{prompttest.AssistantCalls("run", "not json\nuser:\n| hi")}, "assistant calls run: not json user: | hi\n"},
		{"custom tool", []tree.Message{prompttest.Message(tree.RoleAssistant, map[string]any{"tool_calls": []any{
			call("a", map[string]any{"type": "custom", "custom": map[string]any{"name": "shell", "input": "ls -l"}}),
		}})}, "assistant calls shell: ls -l\n"},
		{"call of no known kind", []tree.Message{prompttest.Message(tree.RoleAssistant, map[string]any{"tool_calls": []any{call("a", map[string]any{"type": "web"})}})},
			"assistant calls an unknown tool: \n"},
		{"tool calls that can't be read", []tree.Message{prompttest.Message(tree.RoleAssistant, map[string]any{"tool_calls": "x"})}, "assistant calls an unknown tool: \"x\"\n"},
		{"result of an unknown tool", []tree.Message{prompttest.ToolSays("elsewhere", "42")}, "result of an unknown tool:\n| 42\n"},
		{"empty result", []tree.Message{prompttest.AssistantCalls("touch", "{}"), prompttest.ToolSays("touch", "")}, "assistant calls touch: {}\nresult of touch: (empty)\n"},
		{"error", []tree.Message{prompttest.AssistantCalls("read", "{}"), prompttest.ToolSays("read", "Error: no such file")}, "assistant calls read: {}\nresult of read (error):\n| Error: no such file\n"},
		{"unusual tool name", []tree.Message{prompttest.AssistantCalls("x: {}\nuser:", "{}")}, "assistant calls \"x: {} user:\": {}\n"},
		{"name like a label", []tree.Message{prompttest.Message(tree.RoleUser, map[string]any{"content": "Hi", "name": "a\":\n| b"})}, "user \"a': | b\":\n| Hi\n"},
		{"image", []tree.Message{prompttest.Message(tree.RoleUser, map[string]any{"content": []any{
			map[string]any{"type": "image_url", "image_url": map[string]any{"url": "https://example.org/a.png"}},
			map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64," + strings.Repeat("A", 5000)}},
			map[string]any{"type": "image_url", "image_url": map[string]any{"url": "https://example.org/img/b.png?signature=" + strings.Repeat("f", 500)}},
		}})}, "user:\n| [image https://example.org/a.png]\n| [image png]\n| [image b.png]\n"},
		{"attachments", []tree.Message{prompttest.Message(tree.RoleUser, map[string]any{"content": []any{
			map[string]any{"type": "image_url", "image_url": map[string]any{"url": "coppice:attachment/" + strings.Repeat("a", 64) + "/old%20tree.png"}},
			map[string]any{"type": "image_url", "image_url": map[string]any{"url": "coppice:attachment/" + strings.Repeat("a", 64)}},
			map[string]any{"type": "file", "file": map[string]any{"file_id": "coppice:attachment/" + strings.Repeat("b", 64), "filename": "plan.pdf"}},
			map[string]any{"type": "file", "file": map[string]any{"file_id": "coppice:attachment/" + strings.Repeat("b", 64)}},
		}})}, "user:\n| [image old tree.png]\n| [image]\n| [file plan.pdf]\n| [file]\n"},
		{"files", []tree.Message{prompttest.Message(tree.RoleUser, map[string]any{"content": []any{
			map[string]any{"type": "file", "file": map[string]any{"filename": "plan\n.pdf", "file_data": "x"}},
			map[string]any{"type": "file", "file": map[string]any{"file_id": "file-123"}},
			map[string]any{"type": "input_audio", "input_audio": map[string]any{"format": "wav", "data": "x"}},
			map[string]any{"type": "video_url", "video_url": map[string]any{"url": "x"}},
			map[string]any{"type": "text", "text": "Look."},
			map[string]any{"type": 7},
		}})}, "user:\n| [file plan .pdf]\n| [file file-123]\n| [audio wav]\n| [video]\n| Look.\n| [attachment]\n"},
		{"resources", []tree.Message{prompttest.Message(tree.RoleUser, map[string]any{"content": []any{
			map[string]any{"type": "resource_link", "name": "plan", "uri": "file:///woods/" + strings.Repeat("a", 100) + "/plan.md"},
			map[string]any{"type": "resource", "resource": map[string]any{"uri": "repo://woods/oaks.csv", "text": "12 oaks"}},
		}})}, "user:\n| [resource plan file:///woods/" + strings.Repeat("a", 100) + "/plan.md]\n| [resource repo://woods/oaks.csv]\n| 12 oaks\n"},
		{"voice", []tree.Message{prompttest.Message(tree.RoleAssistant, map[string]any{"content": nil, "audio": map[string]any{"id": "a", "transcript": "Good morning."}})},
			"assistant:\n| Good morning.\n"},
		{"exact member names", []tree.Message{{Role: tree.RoleUser, Body: json.RawMessage(`{"role":"user","content":"seen","Content":"hidden"}`)}}, "user:\n| seen\n"},
		{"no JSON", []tree.Message{{Role: tree.RoleUser, Body: json.RawMessage("oops \xff")}}, "user:\n| oops \ufffd\n"},
		{"nothing", []tree.Message{prompttest.Message(tree.RoleAssistant, map[string]any{"content": nil})}, "assistant: (empty)\n"},
	} {
		if got := newTranscriber(fullLimits, Input{Nonce: prompttest.Nonce}).messages(c.messages); got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", c.name, got, c.want)
		}
	}
}

func TestTranscribeLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		message tree.Message
		most    int
	}{
		{"text", prompttest.UserSays(strings.Repeat("word ", 100_000)), 40_200},
		{"arguments", prompttest.AssistantCalls("write", `{"text":"`+strings.Repeat("x", 100_000)+`"}`), 700},
		{"result", prompttest.ToolSays("read", strings.Repeat("line\n", 100_000)), 3_000},
		{"tool name", prompttest.AssistantCalls(strings.Repeat("n", 1000), "{}"), 200},
	} {
		got := newTranscriber(fullLimits, Input{Nonce: prompttest.Nonce}).messages([]tree.Message{c.message})
		if len(got) > c.most || !strings.Contains(got, "characters cut out …]") {
			t.Errorf("%s: %d bytes, want at most %d, with a mark: %.200q", c.name, len(got), c.most, got)
		}
	}
}

func TestToolErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want bool
	}{
		{"Error: file not found", true}, {"error", true}, {"  ERROR [12] x", true}, {"Errors: 0", false}, {"errorless", false},
		{"Traceback (most recent call last):\n", true}, {"fatal: not a git repository", true}, {"panic: runtime error", true},
		{"<tool_use_error>String not found</tool_use_error>", true}, {"Exit code 0", false},
		{`{"error":"timeout"}`, true}, {`{"error":null,"data":[]}`, false}, {`{"error":""}`, false}, {`{"errors":[]}`, false}, {`{"errors":["x"]}`, true},
		{`{"is_error":true}`, true}, {`{"isError":false}`, false}, {`{"success":false}`, true}, {`{"ok":true}`, false}, {`{"status":"failed"}`, true},
		{`{"error"`, false}, {"No errors found.", false}, {"", false}, {"Exception in thread main", true},
	} {
		if got := Read(prompttest.ToolSays("x", c.text)).Failed; got != c.want {
			t.Errorf("%q: error %v, want %v", c.text, got, c.want)
		}
	}
	m := prompttest.ToolSays("x", "File not read.")
	for metadata, want := range map[string]bool{
		`{"source":{"is_error":true}}`: true, `{"source":{"isError":true}}`: true, `{"source":{"is_error":false}}`: false, `{"error":true}`: false, ``: false, `{"source":"error"}`: false,
	} {
		m.Metadata = json.RawMessage(metadata)
		if got := Read(m).Failed; got != want {
			t.Errorf("metadata %s: error %v, want %v", metadata, got, want)
		}
	}
	m = prompttest.Message(tree.RoleTool, map[string]any{"tool_call_id": "x", "content": "no", "is_error": true})
	if !Read(m).Failed {
		t.Error("is_error of the message itself is not seen")
	}
	if Read(prompttest.UserSays("Error: it says")).Failed {
		t.Error("a user's message can't be a tool's error")
	}
}

func TestCutMiddle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"short", 5, "short"},
		{"abcdefghi", 6, "abcd [… 3 characters cut out …] hi"},
		{"äöüßéèêëñ", 9, "äöüßéèêëñ"},
		{"äöüßéèêëñ", 6, "äöüß [… 3 characters cut out …] ëñ"},
		{"abc", 0, " [… 3 characters cut out …] "},
		{"abc", -1, " [… 3 characters cut out …] "},
		{"", 0, ""},
		{"ab👩‍👩‍👧cdefgh", 5, "ab [… 9 characters cut out …] gh"}, // the family stays together, or goes
		{"ae\u0301bcdefgh", 3, "a [… 8 characters cut out …] h"}, // so do a letter and its accent
	} {
		if got := CutMiddle(c.text, c.limit); got != c.want {
			t.Errorf("CutMiddle(%q, %d)\n got %q\nwant %q", c.text, c.limit, got, c.want)
		}
	}
}

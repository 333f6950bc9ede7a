package normalize_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/format"
	"github.com/coppice-chat/coppice/transfer/formattest"
	"github.com/coppice-chat/coppice/transfer/normalize"
	"github.com/coppice-chat/coppice/tree"
)

func TestNormalizeBody(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		want     string // "" for the same, "-" for none
		notes    string
	}{
		{"sound, byte for byte", `{ "content" : "hi", "role":"user", "vendor": [1] }`, "", ""},
		{"nulls are allowed", `{"role":"user","content":"hi","tool_calls":null,"tool_call_id":null,"name":null,"refusal":null}`, "", ""},
		{"calls without content", `{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}`, "", ""},
		{"a custom tool's call", `{"role":"assistant","tool_calls":[{"id":"a","type":"custom","custom":{"name":"f","input":"x"}}]}`, "", ""},
		{"a refusal", `{"role":"assistant","refusal":"no"}`, "", ""},
		{"an empty result", `{"role":"tool","content":"","tool_call_id":"a"}`, "", ""},
		{"no object", `["role"]`, "-", "content: the message is no JSON object"},
		{"no JSON", `{"role":`, "-", "content: the message is no JSON object"},
		{"says nothing", `{"role":"user","content":" \n"}`, "-", "empty: it says nothing"},
		{"calls nothing", `{"role":"assistant","content":"","tool_calls":[]}`, "-", "empty: it says nothing"},
		{"no role", `{"content":"hi"}`, `{"content":"hi","role":"assistant"}`, `role: role "" became assistant`},
		{"role of another type", `{"role":5,"content":"hi"}`, `{"content":"hi","role":"assistant"}`, `role: role "" became assistant`},
		{"reserved members", `{"role":"user","content":"hi","id":"x","depth":2}`, `{"content":"hi","role":"user"}`, `metadata: member "id" taken out of the message` + "\n" + `metadata: member "depth" taken out of the message`},
		{"a name that is none", `{"role":"user","content":"hi","name":7}`, `{"content":"hi","role":"user"}`, "content: name is no string and was taken out"},
		{"content of another type", `{"role":"user","content":{"a":1}}`, `{"content":"{\"a\":1}","role":"user"}`, "content: content that is neither text nor parts became its JSON text"},
		{"empty parts", `{"role":"user","content":[]}`, "-", "empty: it says nothing"},
		{"empty parts beside calls", `{"role":"assistant","content":[],"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`,
			`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}}]}`, "content: empty content taken out"},
		{"a result without content", `{"role":"tool","tool_call_id":"a"}`, `{"content":"","role":"tool","tool_call_id":"a"}`, "content: a tool result without content became an empty one"},
		{"unsound parts", `{"role":"user","content":["hi",{"type":"text"},{"type":"image_url","image_url":{}},{"text":"x"}]}`,
			`{"content":[{"type":"text","text":"hi"},{"type":"text","text":"{\"type\":\"text\"}"},{"type":"image_url","image_url":{}},{"type":"text","text":"{\"text\":\"x\"}"}],"role":"user"}`,
			"content: content part 1 has no type or text as it should; it became text\ncontent: content part 2 has no type or text as it should; it became text\ncontent: content part 4 has no type or text as it should; it became text"},
		{"parts of other APIs", `{"role":"user","content":[{"type":"input_text","text":"hi"},{"type":"image","source":{"type":"base64","data":"AAAA"}},{"type":"tool_result","tool_use_id":"a"},{"type":"video_url","video_url":{"url":"x"}}]}`,
			`{"content":[{"type":"text","text":"hi"},{"type":"text","text":"[image]"},{"type":"text","text":"[tool_result] {\"type\":\"tool_result\",\"tool_use_id\":\"a\"}"},{"type":"video_url","video_url":{"url":"x"}}],"role":"user"}`, "*"},
		{"a user's calls", `{"role":"user","content":"hi","tool_calls":[{}],"tool_call_id":"a"}`, `{"content":"hi","role":"user"}`,
			"tool: tool_calls taken out of a message of role user\ntool: tool_call_id taken out of a message of role user"},
		{"arguments that are no string", `{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x":1}}}]}`,
			`{"role":"assistant","tool_calls":[{"function":{"arguments":"{\"x\":1}","name":"f"},"id":"a","type":"function"}]}`, "tool: tool call 1 written as the chat-completions API does"},
		{"calls that name nothing", `{"role":"assistant","content":"hi","tool_calls":[5,{"id":"a","type":"function"}]}`, `{"content":"hi","role":"assistant"}`,
			"tool: tool call 1 is no object and was taken out\ntool: tool call 2 names no function and was taken out"},
		{"a call's id twice", `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}},{"id":"a","type":"function","function":{"name":"g","arguments":""}}]}`,
			`{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":""}},{"function":{"name":"g","arguments":""},"id":"call_81d766406fa7dad69d7be55f","type":"function"}]}`, "*"},
		{"a number for tool_call_id", `{"role":"tool","content":"x","tool_call_id":7}`, `{"content":"x","role":"tool","tool_call_id":"7"}`, "tool: tool_call_id made a string"},
		{"NUL and half a pair", `{"role":"user","content":"a\u0000b\ud83dc\ude00d"}`, `{"role":"user","content":"a\ufffdb\ufffdc\ufffdd"}`, "text: NUL characters, halves of surrogate pairs replaced by U+FFFD"},
		{"a whole pair", `{"role":"user","content":"\ud83d\ude00 \\u0000"}`, "", ""},
		{"invalid UTF-8", "{\"role\":\"user\",\"content\":\"a\xffb\"}", "{\"role\":\"user\",\"content\":\"a\uFFFDb\"}", "text: invalid UTF-8 replaced by U+FFFD"},
		{"too deep", `{"role":"user","content":"hi","x":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, "-", "too large: it nests arrays and objects more than 64 deep"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, _, repaired, failed := normalize.NormalizeBody([]byte(tt.in), false)
			notes := ""
			for _, d := range repaired {
				notes += d.String() + "\n"
			}
			want := tt.want
			switch {
			case failed != nil:
				notes, want = failed.String(), ""
				check.Equal(t, "what is made of it", tt.want, "-")
			case want == "":
				want = tt.in
			}
			formattest.Same(t, "body", string(got), want)
			if tt.notes != "*" {
				formattest.Same(t, "notes", notes, tt.notes)
			}
			if failed == nil {
				formattest.CheckJSON(t, got, tree.MaxBodyBytes)
				formattest.CheckMessage(t, got)
			}
		})
	}
}

// Calls of Coppice's own files stay as the store took them. What it doesn't take is
// normalized.
func TestNormalizeOwnCalls(t *testing.T) {
	t.Parallel()
	for call, want := range map[string]string{
		`{"id":"a","function":{"name":"f"}}`:                               "",
		`{"id":"a","type":"other","function":{"name":"f","arguments":""}}`: "",
		`{"id":"a","type":null,"function":{"name":"f","arguments":null}}`:  "",
		`{"id":"a","function":{"name":""},"custom":{"name":"g"}}`:          "", // the store reads the custom tool's
		`{"id":"a","type":5,"function":{"name":"f","arguments":"{}"}}`:     `{"function":{"name":"f","arguments":"{}"},"id":"a","type":"function"}`,
		`{"id":"a","function":{"name":"f","arguments":{"x":1}}}`:           `{"function":{"arguments":"{\"x\":1}","name":"f"},"id":"a","type":"function"}`,
		`{"id":"a","function":{"name":"f","arguments":"{}"},"custom":5}`:   `{"function":{"name":"f","arguments":"{}"},"id":"a","type":"function"}`,
	} {
		if want == "" {
			want = call
		}
		got, _, _, failed := normalize.NormalizeBody([]byte(`{"role":"assistant","tool_calls":[`+call+`]}`), true)
		check.That(t, failed == nil, "%s: %v", call, failed)
		check.Equal(t, call, string(got), `{"role":"assistant","tool_calls":[`+want+`]}`)
		check.Must(chat.Parse(got))(t)
	}
}

// What is too large for the store is cut where it is largest, and says so.
func TestNormalizeBodyTooLarge(t *testing.T) {
	t.Parallel()
	most := strings.Repeat("x", tree.MaxBodyBytes)
	escaped := strings.Repeat("\n\u2028€", tree.MaxBodyBytes/6)
	for name, in := range map[string]any{
		"text":    map[string]any{"role": "user", "content": "first " + most + " last"},
		"escapes": map[string]any{"role": "user", "content": escaped},
		"parts":   map[string]any{"role": "user", "content": []any{chat.TextPart("small").Encode(), chat.TextPart("first " + most + " last").Encode()}},
		"image":   map[string]any{"role": "user", "content": []any{chat.TextPart("small").Encode(), map[string]any{"type": "image_url", "image_url": map[string]any{"url": most}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, repaired, failed := normalize.NormalizeBody(chat.MustMarshal(in), false)
			check.Need(t, failed == nil && len(repaired) == 1 && repaired[0].Kind() == format.KindTooLarge,
				"repaired %v, failed %v", repaired, failed)
			formattest.CheckJSON(t, got, tree.MaxBodyBytes)
			formattest.CheckMessage(t, got)
			check.That(t, name == "image" || len(got) >= tree.MaxBodyBytes*8/10, "only %d bytes are left", len(got))
			check.Has(t, "the mark", string(got), "by the import")
		})
	}
	call := format.NewCall("a", "f", chat.MustMarshal(most))
	if _, _, _, failed := normalize.NormalizeBody((&format.Piece{Role: tree.RoleAssistant, Calls: []chat.Call{call}}).Body(), false); failed == nil || failed.Kind() != format.KindTooLarge {
		t.Errorf("arguments can't be cut: %v", failed)
	}
}

func TestNormalizeExtra(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", tree.MaxMetadataBytes)
	for _, tt := range []struct {
		name, in, want, notes string
	}{
		{"none", ``, ``, ``},
		{"null", `null`, ``, ``},
		{"sound", `{ "a": "\u00e9" }`, `{ "a": "\u00e9" }`, ``},
		{"no object", `[1]`, ``, "left out metadata () m: metadata that are no JSON object"},
		{"text", `{"a":"\u0000"}`, `{"a":"\ufffd"}`, "repaired text () m: metadata: NUL characters replaced by U+FFFD"},
		{"too large", `{"a":"` + large + `"}`, ``, fmt.Sprintf("left out too large () m: metadata have %d bytes, and 65536 is the most", len(large)+8)},
		{"too large a source", `{"source":{"id":"i","x":"` + large + `"}}`, `{"source":{"id":"i"}}`,
			fmt.Sprintf("left out too large () m: metadata: source.x has %d bytes, and 65536 is the most in all", len(large)+2)},
		{"too deep", `{"a":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, ``, "left out metadata () m: metadata nest arrays and objects more than 64 deep"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var c format.Conversation
			got := normalize.NormalizeExtra(&c, json.RawMessage(tt.in), "m", "metadata")
			formattest.Same(t, "metadata", string(got), tt.want)
			formattest.Same(t, "notes", formattest.Notes(transfer.Report{Notes: c.Notes}), tt.notes)
		})
	}
}

func TestNormalizeTitle(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Wren":                    "Wren",
		"two\nlines\x00":          "two lines ",
		"half \xff":               "half \uFFFD",
		strings.Repeat("é", 1000): strings.Repeat("é", 500),
	} {
		c := format.Conversation{Title: in}
		got := normalize.NormalizeTitle(&c)
		check.That(t, got == want && (got != in) == (len(c.Notes) > 0), "%q became %q with notes %v", in, got, c.Notes)
	}
}

func TestNormalizeTags(t *testing.T) {
	t.Parallel()
	many := make([]string, tree.MaxTags+2)
	for i := range many {
		many[i] = string(rune('a'+i%26)) + strings.Repeat("x", i/26)
	}
	for _, test := range []struct {
		given, want []string
		notes       int
	}{
		{[]string{"wood", "two words"}, []string{"wood", "two words"}, 0},
		{[]string{"wood", "wood"}, []string{"wood"}, 0},
		{[]string{" wood ", "", "a\nb\xff"}, []string{"wood", "a b\uFFFD"}, 1},
		{[]string{strings.Repeat("é", 60)}, []string{strings.Repeat("é", 50)}, 1},
		{many, many[:tree.MaxTags], 1},
	} {
		c := format.Conversation{Order: tree.Order{Tags: test.given}}
		got := normalize.NormalizeTags(&c)
		check.That(t, slices.Equal(got, test.want) && len(c.Notes) == test.notes, "%q became %q with notes %v", test.given, got, c.Notes)
	}
}

package chat

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/internal/check"
)

// A message that was made is written as the API has it, and parts that were read
// keep their bytes.
func TestEncode(t *testing.T) {
	t.Parallel()
	id, name, refusal := "1", "n", "no"
	for want, m := range map[string]*Message{
		`{"role":"user","content":"a <b>"}`:                                             {Role: User, Parts: []Part{TextPart("a <b>")}},
		`{"role":"user","content":"\u00e9"}`:                                            {Role: User, Parts: []Part{ReadPart([]byte(`{"type":"text", "text":"\u00e9"}`))}},
		`{"role":"user","content":""}`:                                                  {Role: User, Parts: []Part{ReadPart([]byte(`{"type":"text"}`))}},
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"x","y":[1,2]}]}`: {Role: User, Parts: []Part{TextPart("a"), ReadPart([]byte(`{"type": "x", "y": [1, 2]}`))}},
		`{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`:            {Role: Assistant, Parts: []Part{{Type: "refusal", Text: "no"}}},
		`{"role":"tool","content":"","tool_call_id":"1"}`:                               {Role: Tool, CallID: &id},
		`{"role":"assistant","content":null,"name":"n","refusal":"no"}`:                 {Role: Assistant, Name: &name, Refusal: &refusal},
		`{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"2","type":"custom","custom":{"name":"g","input":"\""}}]}`: {
			Role: Assistant, Calls: []Call{{ID: "1", Name: "f", Arguments: "{}"}, {ID: "2", Name: "g", Arguments: `"`, Custom: true}}},
	} {
		raw := m.Encode()
		check.Equal(t, "what is encoded", string(raw), want)
		check.Equal(t, "what it means", string(Read(raw).AppendCanonical(nil)), string(m.AppendCanonical(nil)))
	}
}

// Strings are written as encoding/json does, but for <, > and &.
func TestAppendString(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.RuneFrom([]rune("a<>&\"\\/\x00\n\x7fé\u2028\u2029\uFFFD😀"))).Draw(t, "s") + rapid.SampledFrom([]string{"", "\xff", "\xed\xa0"}).Draw(t, "end")
		var want strings.Builder
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		check.NoError(t, enc.Encode(s))
		if got := string(AppendString([]byte("x"), s)); got != "x"+strings.TrimSuffix(want.String(), "\n") || len(got) != 1+QuotedLen(s) || !utf8.ValidString(got) {
			t.Fatalf("%q is written as %s", s, got)
		}
	})
}

func TestShown(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		`"a"`:     "a",
		`null`:    "",
		`{"a":1}`: `{"a":1}`,
		`["a"]`:   `"a"`,
		`[]`:      "",
		`[{"type":"text","text":"a"},{"type":"refusal","refusal":"b"}]`:                  "a\n\nb",
		`[{"type":"image_url","image_url":{"url":"https://x"}}]`:                         "[image https://x]",
		`[{"type":"image_url","image_url":{"url":"data:,"}},{"type":"input_audio"}]`:     "[image]\n\n[input_audio]",
		`[{"type":"file","file":{"filename":"f.pdf"}},{"type":"file","file":"unsound"}]`: "[file f.pdf]\n\n[file]",
	} {
		check.Equal(t, content, Shown(ReadParts(json.RawMessage(content))), want)
	}
}

// An object that is taken apart and put together again is the same, but for
// spaces between its members and for escapes in its names.
func TestObject(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		`{}`:                                 `{}`,
		` { "a" : [ 1 , 2 ] , "b":{ } } `:    `{"a":[ 1 , 2 ],"b":{ }}`,
		`{"a":1,"a":1.0}`:                    `{"a":1,"a":1.0}`,
		`{"\u0061":"\u0061","":null}`:        `{"a":"\u0061","":null}`,
		`{"\"\\":0,"\n<&>":0,"é\u00e9🌳":[]}`: `{"\"\\":0,"\n<&>":0,"éé🌳":[]}`,
	} {
		check.Equal(t, given, string(AppendObject(nil, Members(json.RawMessage(given)))), want)
	}
	check.Equal(t, "without members that are left out", string(AppendObject(nil, []Member{{"a", nil}, {"b", json.RawMessage(`1`)}, {"c", nil}})), `{"b":1}`)
}

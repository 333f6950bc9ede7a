package chat

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/internal/check"
)

// FuzzMember reads members as encoding/json reads them.
func FuzzMember(f *testing.F) {
	for _, object := range []string{
		`{}`, ` { } `, `{"a":1}`, `{"a": -1.5e3 ,"b":true}`, `{"b":null,"a":"x"}`,
		`{"content":"it says \"tool_calls\": []","tool_calls":[{"id":"1","function":{"arguments":"{\"a\":[1,\"]\"]}"}}]}`,
		`{"tool\u005fcalls":[{"id":"1"}],"Tool_Calls":7}`, `{"tool_calls":[],"tool_calls":[[]]}`,
		`{"x":"\\","tool_calls":"\\\""}`, "{\n\t\"x\" : { \"tool_calls\" : 1 } ,\r\n \"tool_calls\" : [ { } , [ ] ] }",
		`{"":"","tool_calls":[1,2 , 3]}`,
	} {
		f.Add([]byte(object), "tool_calls")
	}
	f.Add([]byte(`{"a":1,"":2}`), "")
	f.Fuzz(func(t *testing.T, object []byte, name string) {
		if !utf8.Valid(object) || !utf8.ValidString(name) {
			t.Skip("no body of a message, which Postgres holds as text")
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(object, &members) != nil || members == nil {
			t.Skip()
		}
		got, want := MemberOf(object, name), members[name]
		check.Need(t, string(got) == string(want), "%q of %s is %s, not %s", name, object, got, want)
	})
}

// FuzzString reads strings as encoding/json reads them.
func FuzzString(f *testing.F) {
	for _, quoted := range []string{
		`""`, `"a"`, `"\\"`, `"\"\\\/\b\f\n\r\t"`, `"\u00e9\u0000"`, `"\ud83d\ude00!"`, `"\ud83d"`, `"\ud83d\n"`, `"\ud83d\u0041"`, `"\ude00\ud83d\ude00"`, `"é 😀\n"`,
	} {
		f.Add([]byte(quoted))
	}
	f.Fuzz(func(t *testing.T, quoted []byte) {
		var want string
		if len(quoted) < 2 || quoted[0] != '"' || quoted[len(quoted)-1] != '"' || !utf8.Valid(quoted) || json.Unmarshal(quoted, &want) != nil {
			t.Skip("no JSON string")
		}
		got := String(quoted)
		check.Need(t, got == want, "%s is read as %q, not %q", quoted, got, want)
	})
}

// FuzzElements splits arrays as encoding/json does.
func FuzzElements(f *testing.F) {
	for _, array := range []string{`[]`, " [ ]", `[1]`, `[-1.5e3,true , null,"]"]`, `[[],[[]],{"a":"]"}]`, "[\n\"\\\\\" ,\t\"\\\"\"\r]", `[{},"",[0]]`} {
		f.Add([]byte(array))
	}
	f.Fuzz(func(t *testing.T, array []byte) {
		var want []json.RawMessage
		if json.Unmarshal(array, &want) != nil || want == nil {
			t.Skip("no array")
		}
		i := 0
		for got := range Elements(array) {
			check.Need(t, i < len(want) && string(got) == string(want[i]), "element %d of %s is %s, of %s", i, array, got, want)
			i++
		}
		check.Need(t, i == len(want), "%d elements in %s, which has %d", i, array, len(want))
	})
}

func TestNesting(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		``: 0, `1`: 0, `"[["`: 0, `{}`: 1, `[{"a":[]},[]]`: 3, `{"a":"\"}[","b":[[0]]}`: 3, `[[[`: 3, `]]`: 0, `"\\"[`: 1,
	} {
		check.Equal(t, text, Nesting([]byte(text)), want)
	}
}

// A message that was made is written as the API has it. Parts that were read keep their bytes.
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

package chat

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, raw, text, calls, answers string }{
		{"text", `{"role":"user","content":"hello"}`, "hello", "", ""},
		{"escapes", `{"r\u006fle":"user","content":"a\n\u00e9\ud83d\ude00"}`, "a\né😀", "", ""},
		{"parts", `{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"x"}},{"type":"text","text":"b"}]}`, "a\nb", "", ""},
		{"refusal part", `{"role":"assistant","content":[{"type":"refusal","refusal":"no"}]}`, "no", "", ""},
		{"calls", `{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"2","custom":{"name":"g","input":"x"}}]}`, "", "1 f {}; 2 g x", ""},
		{"result", `{"role":"tool","tool_call_id":"1","content":""}`, "", "", "1"},
		{"the last of two names wins", `{"role":"user","content":"a","content":"b"}`, "b", "", ""},
		{"another case is another member", `{"role":"user","content":"a","Content":"b"}`, "a", "", ""},
		{"null members", `{"role":"assistant","content":"a","tool_calls":null,"tool_call_id":null,"name":null,"refusal":null}`, "a", "", ""},
		{"a refusal alone", `{"role":"assistant","refusal":"no"}`, "", "", ""},
		{"spaces", " \n{ \"role\" : \"user\" , \"content\" : [ { \"type\" : \"text\" , \"text\" : \"a\" } ] } ", "a", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := check.Must(Parse([]byte(c.raw)))(t)
			var calls []string
			for _, call := range m.Calls {
				calls = append(calls, call.ID+" "+call.Name+" "+call.Arguments)
			}
			check.Equal(t, "what is read", m.Text()+"|"+strings.Join(calls, "; ")+"|"+m.Answers(), c.text+"|"+c.calls+"|"+c.answers)
			check.Equal(t, "the bytes", string(m.Raw), c.raw)
		})
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	call := func(s string) string {
		return `{"role":"assistant","tool_calls":[{"id":"1","function":{"name":"f"}},` + s + `]}`
	}
	for _, c := range []struct{ raw, code, field string }{
		{``, "invalid_json", ""},
		{`{`, "invalid_json", ""},
		{`[]`, "wrong_type", ""},
		{"{\"role\":\"user\",\"content\":\"\xff\"}", "invalid_utf8", ""},
		{`{"role":"user","content":"\u0000"}`, "invalid_character", ""},
		{`{"role":"user","content":"\ud800"}`, "invalid_character", ""},
		{`{"role":"user","content":"\ud800\u0061"}`, "invalid_character", ""},
		{`{"role":"user","content":"\udc00"}`, "invalid_character", ""},
		{`{"role":"user","x":` + strings.Repeat("[", MaxNesting) + strings.Repeat("]", MaxNesting) + `}`, "too_deep", ""},
		{`{"content":"a"}`, "invalid_role", "role"},
		{`{"Role":"user","content":"a"}`, "invalid_role", "role"},
		{`{"role":"human","content":"a"}`, "invalid_role", "role"},
		{`{"role":5,"content":"a"}`, "wrong_type", "role"},
		{`{"role":"user"}`, "empty_content", "content"},
		{`{"role":"user","content":" \n"}`, "empty_content", "content"},
		{`{"role":"user","content":[]}`, "empty_content", "content"},
		{`{"role":"user","content":5}`, "invalid_content", "content"},
		{`{"role":"user","content":["a"]}`, "invalid_content", "content[0]"},
		{`{"role":"user","content":[{"type":"text","text":"a"},{"text":"b"}]}`, "invalid_content", "content[1].type"},
		{`{"role":"user","content":[{"type":"text","text":5}]}`, "invalid_content", "content[0].text"},
		{`{"role":"tool","content":"a"}`, "missing_tool_call_id", "tool_call_id"},
		{`{"role":"tool","content":"a","tool_call_id":""}`, "missing_tool_call_id", "tool_call_id"},
		{`{"role":"user","content":"a","tool_call_id":"1"}`, "unexpected_tool_call_id", "tool_call_id"},
		{`{"role":"user","content":"a","tool_calls":[{"id":"1","function":{"name":"f"}}]}`, "unexpected_tool_calls", "tool_calls"},
		{`{"role":"assistant","content":"a","tool_calls":[]}`, "invalid_tool_calls", "tool_calls"},
		{`{"role":"assistant","tool_calls":{}}`, "wrong_type", "tool_calls"},
		{`{"role":"user","content":"a","name":5}`, "wrong_type", "name"},
		{`{"role":"assistant","refusal":[]}`, "wrong_type", "refusal"},
		{call(`5`), "wrong_type", "tool_calls[1]"},
		{call(`{"function":{"name":"f"}}`), "invalid_tool_calls", "tool_calls[1].id"},
		{call(`{"id":"1","function":{"name":"f"}}`), "invalid_tool_calls", "tool_calls[1].id"},
		{call(`{"id":"2"}`), "invalid_tool_calls", "tool_calls[1]"},
		{call(`{"id":"2","type":1e300,"function":{"name":"f"}}`), "wrong_type", "tool_calls[1].type"},
		{call(`{"id":5,"function":{"name":"f"}}`), "wrong_type", "tool_calls[1].id"},
		{call(`{"id":"2","function":"f"}`), "wrong_type", "tool_calls[1].function"},
		{call(`{"id":"2","function":{"name":"f","arguments":{}}}`), "wrong_type", "tool_calls[1].function.arguments"},
	} {
		m, err := Parse([]byte(c.raw))
		var e *fault.Error
		check.That(t, errors.As(err, &e) && e.Code == c.code && e.Field == c.field && m == nil, "%s: %v, want %s at %q", c.raw, err, c.code, c.field)
	}
}

// What can't be parsed is read all the same, and loses no text.
func TestRead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ raw, role, text string }{
		{``, "", ""},
		{`no JSON`, "", "no JSON"},
		{"\xff!", "", "\uFFFD!"},
		{`["a"]`, "", `["a"]`},
		{`{"role":"user","content":{"a":1}}`, "user", `{"a":1}`},
		{`{"role":"user","content":["a",{"type":"text","text":"b"}]}`, "user", "b"},
	} {
		m := Read([]byte(c.raw))
		check.Equal(t, c.raw, string(m.Role)+"|"+m.Text(), c.role+"|"+c.text)
	}
	check.Fails(Text(User, "a\x00b").Checked())(t, "a message of a program with a NUL", fault.Invalid)
	m := Read([]byte(`{"content":{"a":1}}`))
	check.That(t, len(m.Parts) == 1 && string(m.Parts[0].Raw) == `{"a":1}`, "a content that is no content: %+v", m.Parts)
	if m := Read([]byte(`{"role":"assistant","tool_calls":{"a":1}}`)); len(m.Calls) != 1 || m.Calls[0].Arguments != `{"a":1}` {
		t.Errorf("calls that are none: %+v", m.Calls)
	}
	if m := Read([]byte(`{"role":"assistant","content":"a","reasoning_content":"because","x":1,"x":2}`)); m.Reasoning != "because" || string(m.Other("x")) != "2" || m.Other("y") != nil {
		t.Errorf("other members: %q, %+v", m.Reasoning, m.Others)
	}
}

// Messages that mean the same have one canonical form, others have others.
func TestCanonicalForm(t *testing.T) {
	t.Parallel()
	groups := [][]string{
		{`{"role":"user","content":"a"}`, `{"content":[{"type":"text","text":"a"}],"role":"user"}`, `{"role":"user","content":"a","refusal":null,"annotations":[]}`, `{"role":"user","content":"\u0061","name":""}`,
			`{"role":"user","content":"a \r\n"}`, `{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}`},
		{`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]}`,
			`{"role":"assistant","content":"","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}`,
			`{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"arguments":"{}","name":"f"}}]}`,
			`{"role":"assistant","name":"model","tool_calls":[{"id":"1","function":{"name":"invalid","arguments":"{\"added\":true}"}}]}`},
		{`{"role":"assistant","tool_calls":[{"id":"2","type":"function","function":{"name":"f","arguments":"{}"}}]}`},
		{`{"role":"assistant","tool_calls":[{"id":"","type":"function","function":{"name":"f","arguments":"{\"b\":[\"\u00e9\",null],\"a\":1.0}"}}]}`,
			`{"role":"assistant","tool_calls":[{"id":"","type":"function","function":{"name":"f","arguments":"{ \"a\": 1, \"b\": [\"é\", null] }"}}]}`},
		{`{"role":"assistant","tool_calls":[{"id":"","type":"function","function":{"name":"f","arguments":"{\"a\":9007199254740993}"}}]}`},
		{`{"role":"assistant","tool_calls":[{"id":"","type":"function","function":{"name":"f","arguments":"{\"a\":9007199254740992}"}}]}`},
		{`{"role":"assistant","tool_calls":[{"id":"","type":"function","function":{"name":"f","arguments":"{\"a\":"}}]}`},
		{`{"role":"system","content":"a"}`, `{"role":"developer","content":"a"}`},
		{`{"role":"user","content":"a","name":"n"}`},
		{`{"role":"user","content":"b"}`},
		{`{"role":"user","content":"a\nb"}`, `{"role":"user","content":"a\r\nb\n"}`},
		{`{"role":"user","content":" a"}`},
		{`{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`},
		{`{"role":"user","content":[{"type":"text","text":"ab"}]}`},
		{`{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}`, `{"role":"user","content":[{"image_url": {"url": "x"}, "type": "image_url", "cache_control": {"type": "ephemeral"}}]}`},
		{`{"role":"assistant","content":null,"refusal":"a"}`, `{"role":"assistant","refusal":"a","content":""}`, `{"role":"assistant","content":[{"refusal":"a", "type":"refusal"}]}`,
			`{"role":"assistant","content":[{"type":"text","text":""},{"type":"refusal","refusal":"a"}],"refusal":""}`},
		{`{"role":"assistant","content":null,"refusal":"b"}`},
		{`{"role":"assistant","content":"a"}`, `{"role":"assistant","content":"a","refusal":""}`, `{"role":"assistant","content":"a\n","name":"model"}`},
		{`{"role":"assistant","content":"b","refusal":"a"}`},
		{`{"role":"tool","tool_call_id":"1","content":"a"}`},
		{`{"role":"tool","tool_call_id":"2","content":"a"}`},
	}
	seen := map[string]int{}
	for i, group := range groups {
		for _, raw := range group {
			form := string(Read([]byte(raw)).AppendCanonical(nil))
			if other, ok := seen[form]; ok && other != i {
				t.Errorf("%s has the form of %s", raw, groups[other][0])
			} else if !ok && raw != group[0] {
				t.Errorf("%s hasn't the form of %s", raw, group[0])
			}
			seen[form] = i
		}
	}
}

// Fields run into each other in no way: two messages have one form only if they
// say the same.
func TestCanonicalFormIsUnambiguous(t *testing.T) {
	t.Parallel()
	text := rapid.SampledFrom([]string{"", "a", "t\x01a", "c", "r\x04user", "\x01", "\x00", "\xff"})
	message := rapid.Custom(func(t *rapid.T) *Message {
		m := &Message{Role: rapid.SampledFrom([]Role{User, Assistant, Tool}).Draw(t, "role")}
		for range rapid.IntRange(0, 3).Draw(t, "parts") {
			m.Parts = append(m.Parts, Part{Type: rapid.SampledFrom([]string{"text", "refusal"}).Draw(t, "type"), Text: text.Draw(t, "text")})
		}
		for range rapid.IntRange(0, 2).Draw(t, "calls") {
			m.Calls = append(m.Calls, Call{ID: text.Draw(t, "id")})
			if m.Calls[len(m.Calls)-1].ID == "" {
				m.Calls[len(m.Calls)-1].Name, m.Calls[len(m.Calls)-1].Arguments = text.Draw(t, "name"), text.Draw(t, "arguments")
			}
		}
		name := ""
		if m.Role == User {
			name = text.Draw(t, "speaker")
		}
		m.Name = &name
		return m
	})
	said := func(m *Message) string {
		var texts []string
		for _, p := range m.Parts {
			if p.Text != "" {
				texts = append(texts, p.Type, p.Text)
			}
		}
		return string(MustMarshal([]any{m.Role, texts, m.Calls, *m.Name}))
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := message.Draw(t, "a"), message.Draw(t, "b")
		same := string(a.AppendCanonical(nil)) == string(b.AppendCanonical(nil))
		check.Need(t, same == (said(a) == said(b)), "%s and %s: same form %t", said(a), said(b), same)
		a.CallID = rapid.SampledFrom([]*string{nil, a.Name}).Draw(t, "call")
		encoded, want := a.Encoded(), Read(a.Encode())
		_, err := Parse(want.Raw)
		want.checked = err == nil
		check.Need(t, reflect.DeepEqual(encoded, want), "%s: encoded %+v, read %+v; parsed: %v", want.Raw, encoded, want, err)
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"role":"user","content":"hello"}`, `{"role":"assistant","content":null,"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}`,
		`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url"}],"x":[1,{"y":null}]}`, `{"role":"tool","tool_call_id":"1","content":""}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		read := Read(raw)
		read.AppendCanonical(nil)
		m, err := Parse(raw)
		if err != nil {
			return
		}
		check.Need(t, string(m.AppendCanonical(nil)) == string(read.AppendCanonical(nil)) && m.Text() == read.Text(),
			"%s: parsed and read differently", raw)
	})
}

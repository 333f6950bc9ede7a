package tree

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
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
		if got, want := member(object, name), members[name]; string(got) != string(want) {
			t.Fatalf("%q of %s is %s, not %s", name, object, got, want)
		}
	})
}

// FuzzReadString reads strings as encoding/json reads them.
func FuzzReadString(f *testing.F) {
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
		if got := readString(quoted); got != want {
			t.Fatalf("%s is read as %q, not %q", quoted, got, want)
		}
	})
}

// FuzzReadMembers takes bodies apart as encoding/json does, by exact name.
func FuzzReadMembers(f *testing.F) {
	for _, body := range []string{
		`{"role":"user","content":"Hello"}`, ` {"content" : [ {"type":"text"} ] , "role":"system","name":null} `, `{"role":"user","role":7}`, `{"Role":"user"}`,
		`{"role":"us\u0065r","content":"\n\\"}`, `{"role":null,"id":"x"}`, `{"\u0069d":1,"role":"user"}`, `{"role":"assistant","tool_calls":[{"id":"a"}],"refusal":""}`,
		`{"role":"tool","tool_call_id":3}`, `{}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if checkObject(raw, "message") != nil {
			t.Skip("readMembers is only given what has passed this")
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(raw, &members); err != nil {
			t.Fatal(err)
		}
		want, fails := body{Content: members["content"]}, false
		for name, target := range map[string]any{
			"role": &want.Role, "tool_calls": &want.ToolCalls, "tool_call_id": &want.ToolCallID, "name": &want.Name, "refusal": &want.Refusal,
		} {
			fails = fails || members[name] != nil && json.Unmarshal(members[name], target) != nil
		}
		for _, name := range reserved {
			fails = fails || members[name] != nil
		}
		got, err := readMembers(raw)
		if fails != (err != nil) {
			t.Fatalf("%s: %v", raw, err)
		}
		if err == nil && !reflect.DeepEqual(*got, want) {
			t.Fatalf("%s is read as %+v, not %+v", raw, *got, want)
		}
	})
}

func BenchmarkParseBody(b *testing.B) {
	for name, body := range map[string]string{
		"short": `{"role":"user","content":"A message of some length, as people write them to a model: neither a word nor a page."}`,
		"long":  `{"role":"assistant","content":"` + strings.Repeat(`A paragraph of some length, as models write them.\n`, 20) + `"}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parseBody([]byte(body)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

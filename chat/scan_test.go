package chat

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

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
		if got, want := MemberOf(object, name), members[name]; string(got) != string(want) {
			t.Fatalf("%q of %s is %s, not %s", name, object, got, want)
		}
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
		if got := String(quoted); got != want {
			t.Fatalf("%s is read as %q, not %q", quoted, got, want)
		}
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
			if i >= len(want) || string(got) != string(want[i]) {
				t.Fatalf("element %d of %s is %s, of %s", i, array, got, want)
			}
			i++
		}
		if i != len(want) {
			t.Fatalf("%d elements in %s, which has %d", i, array, len(want))
		}
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

package tree

import (
	"encoding/json"
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

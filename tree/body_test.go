package tree

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

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

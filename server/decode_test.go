package server

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/tree"
)

func TestParseObject(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]object{
		`{}`:             {},
		" \n{ } ":        {},
		`{"a":1}`:        {{Name: "a", Value: json.RawMessage(`1`)}},
		`{"a":-1.5e+3 }`: {{Name: "a", Value: json.RawMessage(`-1.5e+3`)}},
		`{"a":{"b":[1,{"c":"}]\""}]},"d":null}`: {
			{Name: "a", Value: json.RawMessage(`{"b":[1,{"c":"}]\""}]}`)}, {Name: "d", Value: json.RawMessage(`null`)}},
		"{\t\"a\" :\r\n[ ] , \"b\\n\" : \"\\\\\" }": {{Name: "a", Value: json.RawMessage(`[ ]`)}, {Name: "b\n", Value: json.RawMessage(`"\\"`)}},
		`{"a":1,"a":true}`:                          {{Name: "a", Value: json.RawMessage(`1`)}, {Name: "a", Value: json.RawMessage(`true`)}},
		`{"":false}`:                                {{Name: "", Value: json.RawMessage(`false`)}},
	} {
		got, err := parseObject([]byte(text))
		if err != nil || !slices.EqualFunc(got, want, func(a, b chat.Member) bool { return a.Name == b.Name && string(a.Value) == string(b.Value) }) {
			t.Errorf("%s: %s, %v, want %s", text, got, err, want)
		}
	}
}

// TestBodyNesting has bodies nest as deep as a chain's metadata may, and one
// level more: what no part of the tree checks is bounded, too.
func TestBodyNesting(t *testing.T) {
	t.Parallel()
	for levels, refused := range map[int]bool{tree.MaxNesting + 3: false, tree.MaxNesting + 4: true, 100_000: true} {
		_, err := parseObject([]byte(`{"a":` + deep(levels-1) + `}`))
		if (err != nil) != refused || refused && toProblem(err).Code != CodeTooDeep {
			t.Errorf("a body of %d levels: %v, refused should be %t", levels, err, refused)
		}
	}
}

// TestBodyKeepsBytes holds that what was said is kept as it was written.
func TestBodyKeepsBytes(t *testing.T) {
	t.Parallel()
	var body appendBody
	bind(t, &body, `{"metadata":{ "n" : 1.0 },"content":[ {"type":"text", "text":"\u00e9 <&> 1.0e0"} ],"parent_id":null,"role":"user","name":null}`)
	m := body.messages[0]
	if got, want := string(m.Body), `{"role":"user","content":[ {"type":"text", "text":"\u00e9 <&> 1.0e0"} ],"name":null}`; got != want {
		t.Errorf("body\n%s, want\n%s", got, want)
	}
	if got, want := string(m.Metadata), `{ "n" : 1.0 }`; got != want {
		t.Errorf("metadata %s, want %s", got, want)
	}
	if body.chain || body.keepHead || body.parentID == nil || *body.parentID != uuid.Nil || m.ID != uuid.Nil || m.Pinned {
		t.Errorf("%+v", body)
	}
}

// TestReplacementCharacter takes U+FFFD as any other character, also as an escape.
func TestReplacementCharacter(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{`"a\ufffd"`, `"a\uFFFD"`, "\"a\ufffd\""} {
		if got, err := textOf(json.RawMessage(raw), "", "title"); got != "a\ufffd" || err != nil {
			t.Errorf("%s: %q, %v", raw, got, err)
		}
	}
}

func bind(t *testing.T, target body, given string) {
	t.Helper()
	if err := tryBind(target, []byte(given)); err != nil {
		t.Fatal(err)
	}
}

func tryBind(target body, given []byte) error {
	r := requestFor(nil)
	r.Request = httptest.NewRequest("POST", "/", bytes.NewReader(given))
	r.Header.Set("Content-Type", "application/json")
	r.route = newRoute(&API{MaxBody: DefaultMaxBodyBytes}, Route{Body: Body{func() body { return target }, true}})
	return r.decode()
}

// FuzzRequest gives every request body any bytes. What is taken must be what
// encoding/json reads, and what isn't must be a problem of the client's.
func FuzzRequest(f *testing.F) {
	for _, b := range badBodies {
		if len(b.body) < 2000 {
			f.Add([]byte(fill(b.body)))
		}
	}
	for _, s := range writes {
		f.Add([]byte(fill(s.body)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, target := range []body{new(appendBody), new(newConversation), new(conversationUpdate)} {
			err := tryBind(target, data)
			if err != nil {
				if p := toProblem(err); p.Status >= 500 || !p.Code.Valid() {
					t.Fatalf("%T: %s: %v", target, p.Code, err)
				}
				continue
			}
			var read map[string]json.RawMessage
			if err := json.Unmarshal(data, &read); err != nil {
				t.Fatalf("%T took what is no JSON object: %v", target, err)
			}
			if body, ok := target.(*appendBody); ok {
				sameMessages(t, body, read)
			}
		}
	})
}

// sameMessages compares messages with what encoding/json reads of the request.
func sameMessages(t *testing.T, body *appendBody, read map[string]json.RawMessage) {
	given := []json.RawMessage{nil}
	if body.chain {
		if err := json.Unmarshal(read["messages"], &given); err != nil {
			t.Fatal(err)
		}
	}
	if len(given) != len(body.messages) {
		t.Fatalf("%d messages, want %d", len(body.messages), len(given))
	}
	for i, m := range body.messages {
		want := read
		if body.chain {
			want = nil
			if err := json.Unmarshal(given[i], &want); err != nil {
				t.Fatal(err)
			}
		}
		var got map[string]json.RawMessage
		if err := json.Unmarshal(m.Body, &got); err != nil {
			t.Fatalf("message %d became %s: %v", i, m.Body, err)
		}
		for _, name := range messageMembers {
			if string(got[name]) != string(want[name]) {
				t.Fatalf("message %d: %s is %s, want %s", i, name, got[name], want[name])
			}
		}
	}
}

package wire

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
)

// No body breaks a reader of requests, a refusal says why, and what is taken can be shown.
func FuzzParse(f *testing.F) {
	for _, body := range []string{
		``, `{}`, `{"model":"m","input":"hi"}`, `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"data:,x"},{"type":"input_file","file_data":"x"}]}]}`,
		`{"model":"m","input":[{"type":"reasoning","summary":[{"text":"x"}]},{"type":"function_call","call_id":"a","name":"f","arguments":"{}","namespace":"n"},{"type":"function_call_output","call_id":"a","output":[]},{"type":"compaction","encrypted_content":"x"},{"id":"x"}]}`,
		`{"model":"m","tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]}],"tool_choice":{"type":"allowed_tools","tools":[{"type":"function","name":"f","namespace":"n"}]},"text":{"format":{"type":"json_schema","name":"a","schema":{}}},"metadata":{"a":"b"}}`,
		`{"model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":{"name":"f"}}],"stop":"x"}`, `{"items":[{"role":"assistant","content":"x","phase":"commentary"}],"metadata":{}}`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		refused := func(err error) bool {
			e := fault.Of(err)
			if e == nil {
				return false
			}
			check.Need(t, (e.Kind == fault.Invalid || e.Kind == fault.NotFound) && e.Detail != "", "%q: %+v", body, e)
			return true
		}
		var inputs []Input
		if req, err := ParseCreate(body); !refused(err) {
			inputs = append(inputs, req.Input)
			chat.MustMarshal(Turn{Node: someNode, CreatedAt: someTime, Echo: req.Echo}.Begun(InProgress))
		}
		if req, err := ParseInputTokens(body); !refused(err) {
			inputs = append(inputs, req.Input)
		}
		if req, err := ParseChat(body, asItIs); !refused(err) {
			chat.MustMarshal(req.Extra)
		}
		if req, err := ParseCompact(body); !refused(err) {
			inputs = append(inputs, req.Input)
		}
		if req, err := ParseConversation("")(body); !refused(err) {
			inputs = append(inputs, req.Input)
		}
		for _, in := range inputs {
			for _, e := range in.Entries {
				check.Need(t, e.Message != nil || e.Reference != "" || e.Compaction != nil, "%q has an empty entry", body)
				if e.Message != nil {
					chat.MustMarshal(ItemsOf(someNode, e.Message, e.Note))
				}
			}
		}
	})
}

// Any stored message has items and streams, whose items are the same.
func FuzzItems(f *testing.F) {
	for _, body := range []string{
		`{"role":"assistant","content":"a","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}],"reasoning":"x"}`, `{"role":"tool","tool_call_id":"x","content":[{"type":"text","text":"a"},{"type":"odd"}]}`,
		`{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}},{"type":"file","file":{}},7,{"text":"x"}]}`, `{"content":7,"tool_calls":{}}`, `x`, `{"role":"assistant","tool_calls":[7,null,{"id":"a"}]}`,
	} {
		f.Add([]byte(body), []byte(`{"index":0,"id":"a","function":{"name":"f"}}`))
	}
	f.Fuzz(func(t *testing.T, body, piece []byte) {
		m := chat.Read(body)
		chat.MustMarshal(ItemsOf(someNode, m, Note{}))
		turn := Turn{Node: someNode, CreatedAt: someTime, Echo: NewEcho("m")}
		end := End{Status: Completed, At: someTime, Message: m}
		chat.MustMarshal(turn.Completion(end))
		var deltas []sdk.Delta
		if json.Valid(piece) && bytes.HasPrefix(piece, []byte("{")) { // as package llm has read it
			deltas = []sdk.Delta{{Text: "x", Calls: []json.RawMessage{piece, piece}}}
		}
		events(t, live(turn, deltas, end, -1))
		read(t, live(turn, nil, end, -1))
		chunks(turn, deltas, end, true)
		chunks(turn, nil, end, false)
	})
}

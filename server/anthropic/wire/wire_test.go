package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/sdk"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
)

// golden runs a test for each file of a folder of testdata, whose sections begin with a line such as
// "-- request --". got makes what follows the last input, the section named input.
func golden(t *testing.T, folder, input string, got func(t *testing.T, sections map[string]string) string) {
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal(folder, files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data := check.Must(os.ReadFile(file))(t)
			sections, end := map[string]string{}, 0
			name := ""
			for line := range strings.Lines(string(data)) {
				if plain := strings.TrimSpace(line); strings.HasPrefix(plain, "-- ") && strings.HasSuffix(plain, " --") {
					if name == input {
						break
					}
					name = strings.Trim(plain, "- ")
				} else {
					sections[name] += line
				}
				end += len(line)
			}
			want := string(data[:end]) + got(t, sections)
			if *check.Update {
				check.NoError(t, os.WriteFile(file, []byte(want), 0o644))
			} else if want != string(data) {
				t.Errorf("got (run with -update if that is right):\n%s", want[end:])
			}
		})
	}
}

func request(t *testing.T, body string) *Request {
	t.Helper()
	return check.Must(Parse([]byte(body)))(t)
}

func TestHistory(t *testing.T) {
	t.Parallel()
	golden(t, "history", "request", func(t *testing.T, sections map[string]string) string {
		var out strings.Builder
		r := request(t, sections["request"])
		entries := check.Must(r.History(false))(t)
		fmt.Fprintln(&out, "-- history --")
		for _, e := range entries {
			fmt.Fprintf(&out, "%s: %s\n", e.Field, e.Message.Raw)
			if e.Message.Reasoning != "" {
				fmt.Fprintf(&out, "  reasoning: %q\n", e.Message.Reasoning)
			}
			if e.Record != nil {
				fmt.Fprintf(&out, "  record: %s\n", e.Record)
			}
		}
		if _, err := r.History(true); err != nil {
			fmt.Fprintf(&out, "-- strict --\n%s: %s\n", fault.Of(err).Field, fault.Of(err).Detail)
		}
		extra := check.Must(r.Extra())(t)
		for i, name := range slices.Sorted(maps.Keys(extra)) {
			if i == 0 {
				fmt.Fprintln(&out, "-- extra --")
			}
			fmt.Fprintf(&out, "%s: %s\n", name, extra[name])
		}
		return out.String()
	})
}

func TestStream(t *testing.T) {
	t.Parallel()
	golden(t, "stream", "answer", func(t *testing.T, sections map[string]string) string {
		var given struct {
			Pieces    []sdk.Delta
			Message   json.RawMessage
			Reasoning string
			Finish    string
		}
		check.NoError(t, json.Unmarshal([]byte(sections["answer"]), &given))
		a := Answer{ID: "msg_1", Model: "wood"}
		s := NewStream(a)
		out := s.Begin([]byte("-- events --\n"))
		for _, d := range given.Pieces {
			out = s.Add(out, d)
		}
		a.Message, a.Reasoning, a.FinishReason = chat.Read(given.Message), given.Reasoning, given.Finish
		a.Usage = Usage{Input: 10, CacheRead: 5, Output: 7}
		out = s.End(out, a)
		return string(out) + "-- message --\n" + string(a.Encode()) + "\n"
	})
}

// received reads a stream.
func received(t *testing.T, stream []byte) (got Received, deltas []sdk.Delta) {
	t.Helper()
	events := bufio.NewReader(bytes.NewReader(stream))
	var copied []byte
	for {
		event, data, err := ReadEvent(events)
		copied = append(copied, event...)
		if data != nil {
			d := check.Must(got.Add(data))(t)
			deltas = append(deltas, d)
		}
		if errors.Is(err, io.EOF) {
			break
		}
	}
	check.Equal(t, "the events, copied", string(copied), string(stream))
	return got, deltas
}

func TestReceived(t *testing.T) {
	t.Parallel()
	golden(t, "received", "events", func(t *testing.T, sections map[string]string) string {
		got, deltas := received(t, []byte(sections["events"]))
		m, reasoning := got.Message()
		var out, said strings.Builder
		for _, d := range deltas {
			said.WriteString(d.Text)
			if d.Text+d.Reasoning != "" || d.Calls != nil {
				fmt.Fprintf(&out, "%q %q %s\n", d.Reasoning, d.Text, d.Calls)
			}
		}
		check.Equal(t, "the pieces", said.String(), got.Text())
		// What is stored goes out again as a stream, and is the same then.
		s := NewStream(Answer{})
		again, _ := received(t, s.End(s.Begin(nil), Answer{Blocks: got.Blocks}))
		check.Equal(t, "sent again", string(chat.AppendArray(nil, again.Blocks)), string(chat.AppendArray(nil, got.Blocks)))
		var whole Received
		check.Must(whole.Whole(sdk.JSON("type", "message", "content", got.Blocks)))(t)
		wholly, _ := whole.Message()
		check.Equal(t, "as one message", string(wholly), string(m))
		return fmt.Sprintf("-- pieces --\n%s-- got --\nmodel %s, finish %s, done %t, failed %q, usage %+v\n%s\nreasoning: %q\nrecord: %s\n",
			out.String(), got.Model, got.FinishReason(), got.Done, got.Failed, got.Usage, m, reasoning, got.Record())
	})
}

func TestManaged(t *testing.T) {
	t.Parallel()
	golden(t, "managed", "context", func(t *testing.T, sections map[string]string) string {
		entries := check.Must(request(t, sections["request"]).History(false))(t)
		var context []json.RawMessage
		for line := range strings.Lines(sections["context"]) {
			context = append(context, json.RawMessage(line))
		}
		var out bytes.Buffer
		check.NoError(t, json.Indent(&out, Managed([]byte(sections["request"]), entries, context), "", " "))
		return "-- body --\n" + out.String() + "\n"
	})
}

// TestPrefill holds that the answer to a request that ends in the beginning of an answer
// says both, as the client will say it.
func TestPrefill(t *testing.T) {
	t.Parallel()
	r := request(t, `{"model":"m","messages":[{"role":"user","content":"q"},{"role":"assistant","content":"The answer"}]}`)
	var got Received
	begin := got.Prefill(r.TakePrefill())
	d, err := got.Whole([]byte(`{"type":"message","content":[{"type":"text","text":" is 7."}]}`))
	m, _ := got.Message()
	if err != nil || begin.Text != "The answer" || d.Text != " is 7." || string(m) != `{"role":"assistant","content":"The answer is 7."}` || len(r.Messages) != 1 {
		t.Errorf("%v, %+v, %+v, %s", err, begin, d, m)
	}
}

func TestParseRefusals(t *testing.T) {
	t.Parallel()
	for body, field := range map[string]string{
		``:                                  "",
		`[]`:                                "",
		`{"model":"m","messages":[`:         "",
		`{"messages":[{"role":"user"}]}`:    "model",
		`{"model":"m"}`:                     "messages",
		`{"model":"m","messages":{}}`:       "messages",
		`{"model":"m","messages":[3]}`:      "messages[0]",
		`{"model":"m","max_tokens":"many"}`: "max_tokens",
		`{"model":"m","messages":[{"role":"tool","content":"x"}]}`:                        "messages[0].role",
		`{"model":"m","messages":[{"role":"user","content":3}]}`:                          "messages[0].content",
		`{"model":"m","messages":[{"role":"user","content":[{"text":"no type"}]}]}`:       "messages[0].content[0].type",
		`{"model":"m","system":true,"messages":[{"role":"user","content":"x"}]}`:          "system",
		`{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result"}]}]}`:   "messages[0].content[0].tool_use_id",
		`{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":3}]}]}`: "messages[0].content[0].text",
	} {
		r, err := Parse([]byte(body))
		if err == nil {
			_, err = r.History(true)
		}
		if !errors.Is(err, fault.Invalid) || fault.Of(err).Field != field {
			t.Errorf("%s: %v", body, err)
		}
	}
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status            int
		code, field, want string
	}{
		{400, "invalid_parameter", "max_tokens", `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: no."}}`},
		{400, "prompt_too_long", "", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: no."}}`},
		{429, "model_rate_limited", "", `{"type":"error","error":{"type":"rate_limit_error","message":"no."}}`},
		{502, "model_not_authorized", "", `{"type":"error","error":{"type":"api_error","message":"no."}}`},
		{404, "thread_not_found", "", `{"type":"error","error":{"type":"not_found_error","message":"no.","details":{"error_code":"thread_not_found"}}}`},
		{415, "unsupported_media_type", "", `{"type":"error","error":{"type":"invalid_request_error","message":"no."}}`},
	} {
		check.Equal(t, test.code, string(Refuse(test.status, test.code, test.field, "no.")), test.want)
	}
}

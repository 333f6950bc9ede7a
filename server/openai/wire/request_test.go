package wire

import (
	"encoding/json"
	"math"
	"net/url"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/chat/reader"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
)

func TestParseCreate(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, body, extra string }{
		{"the least", `{"model":"m","input":"hi"}`, `{}`},
		{"a member twice", `{"model":"x","input":"hi","model":"m"}`, `{}`},
		{"null everywhere", `{"model":"m","input":"hi","instructions":null,"previous_response_id":null,"conversation":null,"store":null,"stream":null,"tools":null,"tool_choice":null,"text":null,"reasoning":null,"metadata":null,"temperature":null,"prompt":null,"include":null,"user":null,"context_management":null}`, `{}`},
		{"unknown members", `{"model":"m","input":"hi","client_metadata":{"a":[1]},"text":{},"include":["reasoning.encrypted_content","new"],"prompt_cache_retention":"24h","stream_options":{"include_obfuscation":false},"access_programs":7}`, `{}`},
		{"members of the model's server", `{"model":"m","input":"hi","top_k":7,"chat_template_kwargs":{"a":1},"stop":null,"prompt_cache_key":"k","service_tier":"flex"}`,
			`{"chat_template_kwargs":{"a":1},"prompt_cache_key":"k","service_tier":"flex","top_k":7}`},
		{"sampling", `{"model":"m","input":"hi","temperature":0.5,"top_p":0.25,"max_output_tokens":16,"top_logprobs":0,"max_tool_calls":2}`, `{"top_p":0.25}`},
		{"reasoning", `{"model":"m","input":"hi","reasoning":{"effort":"low","summary":"auto","context":1}}`, `{"reasoning_effort":"low"}`},
		{"JSON", `{"model":"m","input":"hi","text":{"format":{"type":"json_object"},"verbosity":"low"}}`, `{"response_format":{"type":"json_object"},"verbosity":"low"}`},
		{"text", `{"model":"m","input":"hi","text":{"format":{"type":"text"}}}`, `{}`},
		{"a schema", `{"model":"m","input":"hi","text":{"format":{"type":"json_schema","name":"n","strict":true,"schema":{"type":"object"}}}}`,
			`{"response_format":{"json_schema":{"name":"n","schema":{"type":"object"},"strict":true},"type":"json_schema"}}`},
		{"tools", `{"model":"m","input":"hi","tools":[{"type":"function","name":"f","description":"d","parameters":{"$schema":"x"},"strict":null},{"type":"web_search","x":1},{"type":"namespace","name":"n","tools":[{"type":"function","name":"g","strict":true},{"type":"custom","name":"h"}]},{"type":"custom","name":"patch","format":{"type":"grammar","syntax":"lark","definition":"start: /.+/"}}],"tool_choice":{"type":"custom","name":"patch"},"parallel_tool_calls":true}`,
			`{"tool_choice":{"custom":{"name":"patch"},"type":"custom"},"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"$schema":"x"}}},{"type":"function","function":{"name":"n__g","strict":true}},{"type":"custom","custom":{"name":"n__h"}},{"type":"custom","custom":{"name":"patch","format":{"grammar":{"syntax":"lark","definition":"start: /.+/"},"type":"grammar"}}}]}`},
		{"tools that items offer", `{"model":"m","input":[{"type":"additional_tools","role":"developer","tools":[{"type":"custom","name":"x"},{"type":"function","name":"f","strict":true}]},{"role":"user","content":"hi"},
			{"type":"tool_search_call","call_id":"a","execution":"client","arguments":{"query":"q"}},{"type":"tool_search_output","call_id":"a","execution":"client","tools":[{"type":"function","name":"g"}]}],"tools":[{"type":"function","name":"f"}]}`,
			`{"tools":[{"type":"function","function":{"name":"f"}},{"type":"custom","custom":{"name":"x"}},{"type":"function","function":{"name":"g"}}]}`},
		{"a tool chosen", `{"model":"m","input":"hi","tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"function","name":"f"},"parallel_tool_calls":false}`,
			`{"parallel_tool_calls":false,"tool_choice":{"function":{"name":"f"},"type":"function"},"tools":[{"type":"function","function":{"name":"f"}}]}`},
		{"tools allowed", `{"model":"m","input":"hi","tools":[{"type":"function","name":"f"},{"type":"function","name":"g"}],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"g"},{"type":"web_search"}]}}`,
			`{"tool_choice":"required","tools":[{"type":"function","function":{"name":"g"}}]}`},
		{"no tools left", `{"model":"m","input":"hi","tools":[{"type":"web_search"}],"tool_choice":"auto","parallel_tool_calls":false}`, `{}`},
		{"none", `{"model":"m","input":"hi","tools":[{"type":"function","name":"f"}],"tool_choice":"none"}`, `{"tool_choice":"none","tools":[{"type":"function","function":{"name":"f"}}]}`},
	} {
		req, err := ParseCreate([]byte(test.body))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		check.Equal(t, test.name+": the model gets", string(chat.MustMarshal(req.Extra)), test.extra)
		if req.Model != "m" || !req.Store || req.Stream || req.Background || req.Truncate || req.Previous != nil || req.Conversation != nil || req.CompactOver != 0 {
			t.Errorf("%s: %+v", test.name, req)
		}
	}
}

// A Response repeats what its request said, also after its echo was stored.
func TestEcho(t *testing.T) {
	t.Parallel()
	conversation := ConversationID(someNode.Conversation)
	body := `{"model":"gpt-alias","input":"hi","instructions":"Be short.","conversation":{"id":"` + conversation + `"},"store":true,"background":true,"truncation":"auto",
		"context_management":[{"type":"compaction","compact_threshold":1000}],"metadata":{"a":"b"},"user":"u","safety_identifier":"s","prompt_cache_key":"p","service_tier":"flex",
		"tools":[{"type":"function","name":"f"},{"type":"namespace","name":"n","tools":[{"type":"function","name":"g"}]}],"tool_choice":{"type":"function","name":"g","namespace":"n"},
		"parallel_tool_calls":false,"max_output_tokens":20,"max_tool_calls":3,"temperature":0,"top_p":0.5,"text":{"format":{"type":"json_schema","name":"s","schema":{}},"verbosity":"high"},"reasoning":{"effort":"high","summary":"concise"}}`
	req, err := ParseCreate([]byte(body))
	check.NoError(t, err)
	if *req.Conversation != someNode.Conversation || !req.Truncate || req.CompactOver != 1000 || req.Instructions != "Be short." || *req.Temperature != 0 || req.MaxOutputTokens != 20 || !req.Background {
		t.Errorf("%+v", req)
	}
	var stored Echo
	check.JSON(t, string(chat.MustMarshal(req.Echo)), &stored)
	check.That(t, reflect.DeepEqual(stored, req.Echo), "stored it is %+v, not %+v", stored, req.Echo)
	golden(t, "responses/echo.json", string(chat.MustMarshal(Turn{Node: someNode, CreatedAt: someTime, Echo: stored}.Begun(Queued)))+"\n")
	n := stored.names().of("n__g")
	check.That(t, n.space == "n" && n.name == "g", "%s, %s", n.space, n.name)
	previous := someNode.ResponseID()
	req, err = ParseCreate([]byte(`{"model":"m","previous_response_id":"` + previous + `"}`))
	check.That(t, err == nil && *req.Previous == someNode && *req.Echo.PreviousResponseID == previous && len(req.Input.Entries) == 0,
		"%+v: %v", req, err)
}

// An echo can be stored, whatever the request says, and the names of its tools stay.
func TestLongEcho(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", MaxEcho)
	for name, rest := range map[string]string{
		"tools":        `"tools":[{"type":"namespace","name":"n","tools":[{"type":"function","name":"f","description":"` + long + `","parameters":{"a":"` + long + `"}}]}]`,
		"instructions": `"instructions":"` + long + `"`,
		"schema":       `"text":{"format":{"type":"json_schema","name":"n","description":"` + long + `","schema":{"a":"` + long + `"}}}`,
		"nothing":      `"user":"u"`,
	} {
		req := check.Must(ParseCreate([]byte(`{"model":"m","input":"hi",` + rest + `}`)))(t)
		before := string(chat.MustMarshal(req.Echo))
		if !req.Echo.Fit() || len(chat.MustMarshal(req.Echo)) > MaxEcho || name == "nothing" && string(chat.MustMarshal(req.Echo)) != before {
			t.Errorf("%s: %.300s", name, chat.MustMarshal(req.Echo))
		}
		if n := req.Echo.names().of("n__f"); name == "tools" && (n.space != "n" || n.name != "f") {
			t.Errorf("the names of the tools are lost: %.300s", chat.MustMarshal(req.Echo))
		}
	}
	var tools []string
	for i := range maxTools {
		tools = append(tools, `{"type":"function","name":"`+strings.Repeat("x", 60)+strconv.Itoa(i)+`"}`)
	}
	req, err := ParseCreate([]byte(`{"model":"m","input":"hi","tools":[` + strings.Join(tools, ",") + `]}`))
	check.NoError(t, err)
	check.That(t, !req.Echo.Fit(), "the echo fits")
}

func TestParseCreateRefuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", chat.MaxNesting) + strings.Repeat("]", chat.MaxNesting)
	pairs := make([]string, 17)
	for i := range pairs {
		pairs[i] = `"k` + strings.Repeat("x", i) + `":""`
	}
	for _, test := range []struct{ body, code, param string }{
		{``, "invalid_json", ""}, {`[]`, "wrong_type", ""}, {`{"model":"m"`, "invalid_json", ""}, {"{\"model\":\"\xff\"}", "invalid_utf8", ""}, {`{"x":"\u0000"}`, "invalid_character", ""},
		{`{"x":` + deep + `}`, "too_deep", ""},
		{`{"input":"hi"}`, reader.CodeMissing, "model"},
		{`{"model":"m"}`, reader.CodeMissing, "input"},
		{`{"model":"m","input":"hi","instructions":[]}`, reader.CodeType, "instructions"},
		{`{"model":"m","previous_response_id":"resp_123"}`, "previous_response_not_found", "previous_response_id"},
		{`{"model":"m","conversation":"conv_123"}`, "conversation_not_found", "conversation"},
		{`{"model":"m","conversation":{}}`, reader.CodeMissing, "conversation.id"},
		{`{"model":"m","conversation":"` + ConversationID(someNode.Node) + `","previous_response_id":"` + someNode.ResponseID() + `"}`, reader.CodeParameter, "conversation"},
		{`{"model":"m","input":"hi","store":"yes"}`, reader.CodeType, "store"},
		{`{"model":"m","input":"hi","background":true,"store":false}`, reader.CodeUnsupported, "background"},
		{`{"model":"m","input":"hi","truncation":"some"}`, reader.CodeValue, "truncation"},
		{`{"model":"m","input":"hi","context_management":[{}]}`, reader.CodeMissing, "context_management[0].type"},
		{`{"model":"m","input":"hi","context_management":[{"type":"magic"}]}`, reader.CodeValue, "context_management[0].type"},
		{`{"model":"m","input":"hi","context_management":[{"type":"compaction","compact_threshold":999}]}`, reader.CodeValue, "context_management[0].compact_threshold"},
		{`{"model":"m","input":"hi","include":"all"}`, reader.CodeType, "include"},
		{`{"model":"m","input":"hi","prompt":{"id":"p"}}`, reader.CodeParameter, "prompt"},
		{`{"model":"m","input":"hi","temperature":2.1}`, reader.CodeValue, "temperature"},
		{`{"model":"m","input":"hi","temperature":1e999}`, reader.CodeType, "temperature"},
		{`{"model":"m","input":"hi","top_p":-0.1}`, reader.CodeValue, "top_p"},
		{`{"model":"m","input":"hi","top_logprobs":1}`, reader.CodeUnsupported, "top_logprobs"},
		{`{"model":"m","input":"hi","max_output_tokens":15}`, reader.CodeValue, "max_output_tokens"},
		{`{"model":"m","input":"hi","metadata":{"a":1}}`, reader.CodeType, "metadata.a"},
		{`{"model":"m","input":"hi","metadata":{` + strings.Join(pairs, ",") + `}}`, reader.CodeValue, "metadata"},
		{`{"model":"m","input":"hi","metadata":{"` + strings.Repeat("k", 65) + `":""}}`, reader.CodeValue, "metadata"},
		{`{"model":"m","input":"hi","metadata":{"k":"` + strings.Repeat("é", 513) + `"}}`, reader.CodeValue, "metadata"},
		{`{"model":"m","input":"hi","text":{"format":{"type":"xml"}}}`, reader.CodeValue, "text.format.type"},
		{`{"model":"m","input":"hi","text":{"format":{"type":"json_schema","schema":{}}}}`, reader.CodeMissing, "text.format.name"},
		{`{"model":"m","input":"hi","text":{"format":{"type":"json_schema","name":"n"}}}`, reader.CodeMissing, "text.format.schema"},
		{`{"model":"m","input":"hi","text":{"verbosity":"loud"}}`, reader.CodeValue, "text.verbosity"},
		{`{"model":"m","input":"hi","reasoning":{"effort":"much"}}`, reader.CodeValue, "reasoning.effort"},
		{`{"model":"m","input":"hi","tools":[{"type":"function"}]}`, reader.CodeMissing, "tools[0].name"},
		{`{"model":"m","input":"hi","tools":[{"type":"function","name":"f","parameters":[]}]}`, reader.CodeType, "tools[0].parameters"},
		{`{"model":"m","input":"hi","tools":[{"type":"function","name":"f"},{"type":"function","name":"f"}]}`, reader.CodeValue, "tools[1].name"},
		{`{"model":"m","input":"hi","tools":[{"type":"function","name":"n__f"},{"type":"namespace","name":"n","tools":[{"type":"function","name":"f"}]}]}`, reader.CodeValue, "tools[1].tools[0].name"},
		{`{"model":"m","input":"hi","tool_choice":"some"}`, reader.CodeValue, "tool_choice"},
		{`{"model":"m","input":"hi","tool_choice":"required","tools":[{"type":"web_search"}]}`, reader.CodeUnsupported, "tool_choice"},
		{`{"model":"m","input":"hi","tool_choice":{"type":"function","name":"f"}}`, reader.CodeValue, "tool_choice.name"},
		{`{"model":"m","input":"hi","tool_choice":{"type":"allowed_tools","tools":[{"type":"function","name":"f"}]}}`, reader.CodeValue, "tool_choice.tools[0].name"},
	} {
		kind := fault.Invalid
		if test.code == "conversation_not_found" {
			kind = fault.NotFound
		}
		_, err := ParseCreate([]byte(test.body))
		refused(t, test.body, err, kind, test.code, test.param)
	}
}

// asItIs converts no message.
func asItIs(_ *Request, raw json.RawMessage) ([]*chat.Message, error) {
	m, err := chat.ParseMember(raw)
	return []*chat.Message{m}, err
}

func TestParseChat(t *testing.T) {
	t.Parallel()
	const user = ` { "role":"user", "content":"hi" } `
	req, err := ParseChat([]byte(`{"model":"m","messages":[`+user+`,{"role":"assistant","content":"Hello","refusal":null,"annotations":[]},`+user+`],"stream":true,"stream_options":{"include_usage":true},
		"max_tokens":5,"temperature":1.5,"top_p":1,"n":1,"stop":["a"],"seed":-7,"frequency_penalty":-2,"presence_penalty":2,"logit_bias":{},"logprobs":false,"response_format":{"type":"text"},
		"tools":[{"type":"function","function":{"name":"f"}},{"type":"web_search"}],"tool_choice":"auto","parallel_tool_calls":true,"reasoning_effort":"low","modalities":["text"],"unknown":1,"user":"u","metadata":{"a":"b"},"store":true}`), asItIs)
	check.NoError(t, err)
	const extra = `{"frequency_penalty":-2,"logit_bias":{},"parallel_tool_calls":true,"presence_penalty":2,"reasoning_effort":"low","response_format":{"type":"text"},"seed":-7,"stop":["a"],"tool_choice":"auto","tools":[{"type":"function","function":{"name":"f"}}],"top_p":1,"unknown":1,"user":"u"}`
	check.Equal(t, "the model gets", string(chat.MustMarshal(req.Extra)), extra)
	if len(req.Input.Entries) != 3 || string(req.Input.Entries[0].Message.Raw) != strings.TrimSpace(user) || !req.Stream || !req.Usage || !req.Store || req.MaxOutputTokens != 5 || *req.Temperature != 1.5 || *req.Echo.User != "u" || req.Echo.Metadata["a"] != "b" {
		t.Errorf("%+v", req)
	}
	req, err = ParseChat([]byte(`{"model":"m","messages":[`+user+`],"tool_choice":"none","parallel_tool_calls":true,"tools":[]}`), asItIs)
	check.That(t, err == nil && len(req.Extra) == 0 && !req.Store && !req.Stream && !req.Usage, "%+v: %v", req, err)
	for _, test := range []struct{ rest, code, param string }{
		{`"messages":[]`, reader.CodeMissing, "messages"},
		{`"messages":"hi"`, reader.CodeType, "messages"},
		{`"messages":["hi"]`, "wrong_type", "messages[0]"},
		{`"messages":[` + user + `,{"role":"robot","content":"x"}]`, "invalid_role", "messages[1].role"},
		{`"messages":[{"role":"user","content":[{"type":"text","text":7}]}]`, "invalid_content", "messages[0].content[0].text"},
		{`"n":2`, reader.CodeUnsupported, "n"}, {`"logprobs":true`, reader.CodeUnsupported, "logprobs"}, {`"modalities":["text","audio"]`, reader.CodeUnsupported, "modalities[1]"},
		{`"audio":{}`, reader.CodeParameter, "audio"}, {`"prediction":{}`, reader.CodeParameter, "prediction"}, {`"functions":[]`, reader.CodeParameter, "functions"}, {`"web_search_options":{}`, reader.CodeParameter, "web_search_options"},
		{`"max_completion_tokens":0`, reader.CodeValue, "max_completion_tokens"},
		{`"tool_choice":"required"`, reader.CodeUnsupported, "tool_choice"},
	} {
		body := `{"model":"m",` + test.rest + `}`
		if !strings.HasPrefix(test.rest, `"messages"`) {
			body = `{"model":"m","messages":[` + user + `],` + test.rest + `}`
		}
		_, err := ParseChat([]byte(body), asItIs)
		refused(t, body, err, fault.Invalid, test.code, test.param)
	}
}

func TestOtherRequests(t *testing.T) {
	t.Parallel()
	c, err := ParseCompact([]byte(`{"model":"m","input":[{"role":"user","content":"hi"}],"instructions":"Keep names.","prompt_cache_key":"k"}`))
	check.That(t, err == nil && c.Model == "m" && len(c.Input.Entries) == 1 && c.Instructions == "Keep names." && c.Previous == nil,
		"%+v: %v", c, err)
	c = check.Must(ParseCompact([]byte(`{"model":"m","previous_response_id":"` + someNode.ResponseID() + `"}`)))(t)
	check.Equal(t, "the previous response", *c.Previous, someNode)
	many := `[` + strings.Repeat(`{"role":"user","content":"a"},`, maxNewItems) + `{"role":"user","content":"a"}]`
	for _, test := range []struct {
		parse       func([]byte) error
		body        string
		code, param string
	}{
		{compact, `{"input":"hi"}`, reader.CodeMissing, "model"},
		{compact, `{"model":"m"}`, reader.CodeMissing, "input"},
		{compact, `{"model":"m","input":[]}`, reader.CodeMissing, "input"},
		{newConversation, ``, "", ""}, {newConversation, `{}`, "", ""}, {newConversation, `{"items":[],"metadata":null}`, "", ""},
		{newConversation, `{"items":[{"role":"user","content":"a"}],"metadata":{"a":"b"}}`, "", ""},
		{newConversation, `{"items":` + many + `}`, reader.CodeValue, "items"},
		{newConversation, `{"items":"a"}`, reader.CodeType, "items"},
		{newConversation, `{"items":[{"role":"user"}]}`, reader.CodeMissing, "items[0].content"},
		{newConversation, `{"items":[{"type":"compaction_trigger"}]}`, reader.CodeUnsupported, "items"},
		{change, `{"metadata":{}}`, "", ""}, {change, `{"metadata":null}`, "", ""}, {change, `{}`, reader.CodeMissing, "metadata"}, {change, `{"metadata":"a"}`, reader.CodeType, "metadata"},
		{newItems, `{"items":[{"role":"user","content":"a"}]}`, "", ""}, {newItems, `{"items":[]}`, reader.CodeMissing, "items"}, {newItems, `{"items":` + many + `}`, reader.CodeValue, "items"},
		{page, ``, "", ""}, {page, `limit=100&order=asc&after=x&include=a`, "", ""},
		{page, `limit=0`, reader.CodeValue, "limit"}, {page, `limit=101`, reader.CodeValue, "limit"}, {page, `limit=x`, reader.CodeValue, "limit"}, {page, `order=up`, reader.CodeValue, "order"},
		{after, ``, "", ""}, {after, `starting_after=7`, "", ""}, {after, `starting_after=-1`, reader.CodeValue, "starting_after"}, {after, `starting_after=x`, reader.CodeValue, "starting_after"},
	} {
		e := fault.Of(test.parse([]byte(test.body)))
		if e == nil {
			e = &fault.Error{}
		}
		check.That(t, e.Code == test.code && e.Field == test.param, "%.100s: %+v, want %s at %q", test.body, e, test.code, test.param)
	}
	p, err := ParsePage(url.Values{"order": {"asc"}, "after": {"x"}})
	check.That(t, err == nil && p == (Page{20, true, "x"}), "%+v: %v", p, err)
}

func compact(b []byte) error         { _, err := ParseCompact(b); return err }
func newConversation(b []byte) error { _, err := ParseConversation("")(b); return err }
func change(b []byte) error          { _, err := ParseConversation("metadata")(b); return err }
func newItems(b []byte) error        { _, err := ParseConversation("items")(b); return err }
func page(b []byte) error            { q, _ := url.ParseQuery(string(b)); _, err := ParsePage(q); return err }
func after(b []byte) error {
	q, _ := url.ParseQuery(string(b))
	_, err := ParseStartingAfter(q)
	return err
}

// allocates returns how many bytes f allocates at least, of three calls at most. It counts what
// other tests left running, so its callers are not parallel. The race detector empties the buffers
// of encoding/json at random, so that a call may take a few times the body more.
func allocates(most uint64, f func()) uint64 {
	least := uint64(math.MaxUint64)
	for tries := 0; tries < 3 && least > most; tries++ {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}

// A large request takes memory in proportion to its bytes, whatever they are.
func TestLargeBodies(t *testing.T) {
	const size = 32 << 20 / 16
	fill := func(before, piece, after string) []byte {
		n := (size - len(before) - len(after)) / len(piece)
		return []byte(before + strings.TrimSuffix(strings.Repeat(piece, n), ",") + after)
	}
	for name, test := range map[string]struct {
		body []byte
		most uint64 // times the body
	}{
		"unknown members":   {fill(`{"model":"m","input":"hi"`, `,"a":1`, `}`), 1},
		"one text":          {fill(`{"model":"m","input":[{"role":"user","content":"`, `<3 `, `"}]}`), 12},
		"escapes":           {fill(`{"model":"m","input":[{"role":"user","content":"`, `\u00e9`, `"}]}`), 12},
		"items":             {fill(`{"model":"m","input":[`, `{"role":"user","content":"`+strings.Repeat("x", 400)+`"},`, `]}`), 12},
		"too many items":    {fill(`{"model":"m","input":[`, `{"role":"user","content":"x"},`, `]}`), 64},
		"parts":             {fill(`{"model":"m","input":[{"role":"user","content":[`, `{"type":"input_text","text":"`+strings.Repeat("x", 400)+`"},`, `]}]}`), 20},
		"a picture":         {fill(`{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,`, `AAAA`, `"}]}]}`), 16},
		"members of a part": {fill(`{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"x"`, `,"a":1`, `}]}]}`), 2},
		"tools":             {fill(`{"model":"m","input":"hi","tools":[`, `{"type":"web_search"},`, `]}`), 8},
		"include":           {fill(`{"model":"m","input":"hi","include":[`, `"x",`, `]}`), 2},
		"metadata":          {fill(`{"model":"m","input":"hi","metadata":{"a":"x"`, `,"b":"x"`, `}}`), 2},
	} {
		var err error
		taken := allocates(test.most*uint64(len(test.body)), func() { _, err = ParseCreate(test.body) })
		t.Logf("%s: %.2f times the body, %v", name, float64(taken)/float64(len(test.body)), err)
		check.That(t, taken <= test.most*uint64(len(test.body)),
			"%s: %d bytes for a body of %d, which is over %d times as much", name, taken, len(test.body), test.most)
	}
}

package openai_test

import (
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// An api is a server with OpenAI's surface over a model that follows a script.
type api struct {
	t        testing.TB
	url      string
	upstream *llmtest.Server
	pool     *pgxpool.Pool
	store    *tree.Store
	secrets  map[string]string // by tenant
	deserted func() int        // tries whose clients left
	tried    func() int        // all tries
	begun    func() int        // those that have a reply
	contexts summarize.Config  // of the servers that are started from now on
	patience time.Duration     // of those with requests; 0 is unhurried
}

func newAPI(t testing.TB, script ...llmtest.Behaviour) *api {
	t.Helper()
	return newAPIWith(t, openai.Recognition{}, script...)
}

// With the race detector PDFium takes half a minute to be compiled, and longer on a
// busy machine.
const unhurried = 5 * time.Minute

// newAPIWith is newAPI with a setting of its recognition.
func newAPIWith(t testing.TB, recognition openai.Recognition, script ...llmtest.Behaviour) *api {
	t.Helper()
	return newAPIOn(t, dbtest.New(t), recognition, script...)
}

// newAPIOn is newAPIWith on a database of the test's.
func newAPIOn(t testing.TB, pool *pgxpool.Pool, recognition openai.Recognition, script ...llmtest.Behaviour) *api {
	t.Helper()
	a := &api{t: t, upstream: llmtest.NewServer(t, script...), pool: pool, store: tree.New(pool), secrets: map[string]string{}}
	ring := keys.New(pool)
	for _, tenant := range []string{"acme", "other"} {
		_, secret, err := ring.Create(t.Context(), tenant, "")
		if err != nil {
			t.Fatal(err)
		}
		a.secrets[tenant] = secret
	}
	a.serve(recognition)
	return a
}

// again is another server on the same database.
func (a *api) again() *api {
	other := *a
	other.serve(openai.Recognition{})
	return &other
}

// serve starts a server, whose model wood has the alias gpt-5.
func (a *api) serve(recognition openai.Recognition) {
	t := a.t
	t.Helper()
	model, err := llm.NewOpenAI(llm.OpenAIConfig{BaseURL: a.upstream.URL(), Model: "wood"})
	if err != nil {
		t.Fatal(err)
	}
	contexts, err := summarize.New(a.store, a.contexts)
	if err != nil {
		t.Fatal(err)
	}
	replies, err := reply.New(reply.Config{
		Store: a.store, Contexts: contexts, Models: []llm.Model{model}, Aliases: map[string]string{"gpt-5": "wood"}, MaxRunning: 1000, MaxPerTenant: 1000,
	})
	if err != nil {
		t.Fatal(err)
	}
	surface, count := recognition.WatchedSurface()
	s, err := server.New(server.Config{
		Store: a.store, Keys: keys.New(a.pool), Loopback: true, RequestTimeout: cmp.Or(a.patience, unhurried),
		Contexts: contexts, Replies: replies, Surfaces: []server.Surface{surface},
	})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.Close()
		_ = replies.Close(t.Context())
	})
	a.url = web.URL
	a.tried = func() int { n, _, _ := count(); return n }
	a.begun = func() int { _, n, _ := count(); return n }
	a.deserted = func() int { _, _, n := count(); return n }
}

// eventually waits until something is so.
func (a *api) eventually(is func() bool) {
	a.t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			a.t.Fatal("what was waited for didn't come")
		}
	}
}

// ask sends a request of a tenant's and gives the answer's body.
func (a *api) ask(status int, tenant, method, path, body string) (string, http.Header) {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), method, a.url+"/openai/v1"+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+a.secrets[tenant])
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		a.t.Fatalf("%s %s: %d, want %d: %s %v", method, path, res.StatusCode, status, got, err)
	}
	return string(got), res.Header
}

// A response is what a test reads of one.
type response struct {
	ID, Object, Status string
	CreatedAt          int64 `json:"created_at"`
	Output             []struct {
		ID, Type, Name string
		CallID         string `json:"call_id"`
		Content        []struct{ Text string }
	}
	Usage struct {
		Total int `json:"total_tokens"`
	}
}

func (a *api) create(body string) response {
	a.t.Helper()
	got, _ := a.ask(200, "acme", "POST", "/responses", body)
	var r response
	if err := json.Unmarshal([]byte(got), &r); err != nil {
		a.t.Fatalf("%s: %v", got, err)
	}
	return r
}

// prompt is what the model was given last.
func (a *api) prompt() string {
	requests := a.upstream.Requests()
	var all []string
	for _, m := range requests[len(requests)-1].Messages {
		all = append(all, string(m))
	}
	return strings.Join(all, " ")
}

func TestResponsesAreBranches(t *testing.T) {
	t.Parallel()
	a := newAPI(t, llmtest.Answer("It is a wood."), llmtest.Answer("Every ten years."), llmtest.Answer("With a billhook."), llmtest.Answer("Indeed."))
	first := a.create(`{"model":"wood","input":"What is a coppice?","instructions":"Speak of hazel.","metadata":{"a":"b"}}`)
	if first.Status != "completed" || first.Object != "response" || first.Output[0].Content[0].Text != "It is a wood." || first.Usage.Total == 0 || first.CreatedAt == 0 {
		t.Errorf("%+v", first)
	}
	if got := a.prompt(); !strings.HasPrefix(got, `{"content":"Speak of hazel.","role":"system"}`) {
		t.Errorf("the model was given %s", got)
	}
	next := `{"model":"wood","previous_response_id":"` + first.ID + `","input":`
	second := a.create(next + `"How often is it cut?"}`)
	if got := a.prompt(); strings.Contains(got, "hazel") || !strings.Contains(got, "It is a wood.") || !strings.HasSuffix(got, `{"role":"user","content":"How often is it cut?"}`) {
		t.Errorf("the model was given %s", got)
	}
	third := a.create(next + `[{"role":"user","content":[{"type":"input_text","text":"What is it cut with?"}]}]}`)
	if got := a.prompt(); strings.Contains(got, "How often") || strings.Contains(got, "ten years") {
		t.Errorf("the model was given a sibling's text: %s", got)
	}
	// A client that refers to what is stored item by item gets the same prompt, and
	// goes on where the item is.
	a.create(`{"model":"wood","input":[{"role":"user","content":"What is a coppice?"},{"type":"item_reference","id":"` + first.Output[0].ID + `"},{"role":"user","content":"Really?"}]}`)
	if got := a.prompt(); got != `{"role":"user","content":"What is a coppice?"} {"role":"assistant","content":"It is a wood."} {"role":"user","content":"Really?"}` {
		t.Errorf("the model was given %s", got)
	}
	n, err := openai.ParseResponseID(first.ID)
	if err != nil {
		t.Fatal(err)
	}
	children, err := a.store.ForTenant("acme").Children(t.Context(), n.Conversation, n.Node, tree.Paging{})
	if err != nil || len(children.Data) != 3 {
		t.Errorf("the response has %d continuations, want 3 siblings: %v", len(children.Data), err)
	}
	for _, r := range []response{first, second, third} {
		got, header := a.ask(200, "acme", "GET", "/responses/"+r.ID, "")
		id, _ := openai.ParseResponseID(r.ID)
		if !strings.Contains(got, r.Output[0].ID) || header.Get("X-Coppice-Head-Id") != id.Node.String() || header.Get("X-Coppice-Conversation-Id") != n.Conversation.String() {
			t.Errorf("%s: %s %v", r.ID, got, header)
		}
		a.ask(404, "other", "GET", "/responses/"+r.ID, "")
	}
	if got, _ := a.ask(200, "acme", "GET", "/responses/"+first.ID, ""); !strings.Contains(got, `"instructions":"Speak of hazel."`) || !strings.Contains(got, `"metadata":{"a":"b"}`) || !strings.Contains(got, `"model":"wood"`) {
		t.Errorf("%s", got)
	}
	if got, _ := a.ask(400, "other", "POST", "/responses", next+`"Mine?"}`); !strings.Contains(got, `"code":"previous_response_not_found"`) {
		t.Errorf("another tenant continues: %s", got)
	}
}

// TestResponsesStream holds that a stream, the same stream read again, and the
// response read later say the same.
func TestResponsesStream(t *testing.T) {
	t.Parallel()
	call := llmtest.ToolCall{ID: "call_1", Name: "weather", Arguments: `{"city":"Rome"}`}
	a := newAPI(t, llmtest.Answer("It is a wood that is cut so that it grows again."), llmtest.CallTools(call), llmtest.Answer("Sunny."), llmtest.Truncated("It is"), llmtest.Fail(500))
	streamed, header := a.ask(200, "acme", "POST", "/responses", `{"model":"wood","input":"What is a coppice?","stream":true}`)
	if header.Get("Content-Type") != "text/event-stream" || header.Get("X-Coppice-Head-Id") == "" {
		t.Errorf("%v", header)
	}
	id := finalID(t, streamed)
	for range 2 {
		if again, _ := a.ask(200, "acme", "GET", "/responses/"+id+"?stream=true", ""); final(again) != final(streamed) {
			t.Errorf("the stream ends with\n%s\nand later with\n%s", final(streamed), final(again))
		}
	}
	if rest, _ := a.ask(200, "acme", "GET", "/responses/"+id+"?stream=true&starting_after=2", ""); strings.Contains(rest, `"sequence_number":2,`) || !strings.HasPrefix(rest, "event: response.content_part.added\n") || final(rest) != final(streamed) {
		t.Errorf("after event 2 comes %s", rest)
	}
	if whole, _ := a.ask(200, "acme", "GET", "/responses/"+id, ""); !strings.Contains(final(streamed), whole) {
		t.Errorf("read later it is %s, streamed %s", whole, final(streamed))
	}

	const tools = `"tools":[{"type":"function","name":"weather","parameters":{"type":"object"}}]`
	called, _ := a.ask(200, "acme", "POST", "/responses", `{"model":"wood","input":"Weather in Rome?","stream":true,`+tools+`}`)
	for _, want := range []string{"event: response.function_call_arguments.done\n", `"call_id":"call_1"`, `"arguments":"{\"city\":\"Rome\"}"`, "data: [DONE]\n\n"} {
		if !strings.Contains(called, want) {
			t.Errorf("the stream lacks %s: %s", want, called)
		}
	}
	next := `{"model":"wood","previous_response_id":"` + finalID(t, called) + `",` + tools + `,"input":`
	if got, _ := a.ask(400, "acme", "POST", "/responses", next+`"Well?"}`); !strings.Contains(got, "No tool output found for function call call_1.") || !strings.Contains(got, `"param":"input"`) {
		t.Errorf("%s", got)
	}
	if got, _ := a.ask(400, "acme", "POST", "/responses", next+`[{"type":"function_call_output","call_id":"call_2","output":""}]}`); !strings.Contains(got, "No tool call found for function call output with call_id call_2.") {
		t.Errorf("%s", got)
	}
	if r := a.create(next + `[{"type":"function_call_output","call_id":"call_1","output":"22 degrees"}]}`); r.Output[0].Content[0].Text != "Sunny." {
		t.Errorf("%+v", r)
	}
	if r := a.create(`{"model":"wood","input":"Be long.","instructions":"` + strings.Repeat("x", 1<<16) + `"}`); r.Status != "incomplete" {
		t.Errorf("%+v", r)
	}
	failed, _ := a.ask(200, "acme", "POST", "/responses", `{"model":"wood","input":"Fail.","stream":true}`)
	if !strings.Contains(failed, "event: response.failed\n") || !strings.Contains(failed, `"code":"server_error"`) {
		t.Errorf("%s", failed)
	}
}

func final(stream string) string {
	at := strings.LastIndex(stream, `"response":`)
	return strings.TrimSuffix(stream[at:], "\n\ndata: [DONE]\n\n")
}

func finalID(t *testing.T, stream string) string {
	t.Helper()
	var r struct{ Response response }
	if err := json.Unmarshal([]byte("{"+final(stream)), &r); err != nil {
		t.Fatalf("%s: %v", stream, err)
	}
	return r.Response.ID
}

func TestResponsesRefuse(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	unknown := openai.NodeID{Conversation: uuid.Must(uuid.NewV7()), Node: uuid.Must(uuid.NewV7())}.ResponseID()
	for _, test := range []struct {
		status                   int
		method, path, body, want string
	}{
		{400, "POST", "/responses", ``, `"code":"invalid_json"`},
		{400, "POST", "/responses", `{"input":"hi"}`, `"param":"model","code":"missing_required_parameter"`},
		{404, "POST", "/responses", `{"model":"none","input":"hi"}`, `"code":"model_not_found"`},
		{400, "POST", "/responses", `{"model":"wood","input":"hi","store":false,"background":true}`, `"param":"background"`},
		{400, "POST", "/responses", `{"model":"wood","input":"hi","context_management":[{"type":"compaction","compact_threshold":7}]}`, `"param":"context_management[0].compact_threshold"`},
		{400, "POST", "/responses", `{"model":"wood","input":[{"role":"user","content":"hi"},{"type":"compaction","encrypted_content":"x"}]}`, `"param":"input[1].encrypted_content"`},
		{400, "POST", "/responses", `{"model":"wood","store":false,"input":[{"role":"user","content":"hi"},{"type":"compaction","encrypted_content":"coppice.v1.AAAA"}]}`, `"param":"input[1].encrypted_content"`},
		{400, "POST", "/responses", `{"model":"wood","store":false,"input":[{"role":"assistant","content":"hi"}]}`, `"param":"input"`},
		{400, "POST", "/responses", `{"model":"wood","store":false,"input":"hi","previous_response_id":"` + unknown + `"}`, `"code":"previous_response_not_found"`},
		{400, "POST", "/responses", `{"model":"wood","store":false,"input":[{"type":"function_call_output","call_id":"c","output":"x"}]}`, `No tool call found for function call output with call_id c.`},
		{400, "POST", "/responses/compact", `{"input":"hi"}`, `"param":"model","code":"missing_required_parameter"`},
		{400, "POST", "/responses/compact", `{"model":"wood"}`, `"param":"input"`},
		{400, "POST", "/responses/compact", `{"model":"wood","previous_response_id":"` + unknown + `"}`, `"code":"previous_response_not_found"`},
		{400, "POST", "/responses/compact", `{"model":"wood","input":[{"role":"developer","content":"hi"}]}`, `There is nothing to compact`},
		{400, "POST", "/responses/compact", `{"model":"wood","input":[{"role":"user","content":"hi"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}`, `No tool output found for function call c.`},
		{400, "POST", "/responses/input_tokens", `{"model":"wood"}`, `"param":"input"`},
		{404, "DELETE", "/responses/" + unknown, ``, `not found.","type":"invalid_request_error","param":null`},
		{404, "POST", "/responses/" + unknown + "/cancel", ``, `not found.","type":"invalid_request_error","param":null`},
		{404, "GET", "/responses/" + unknown + "/input_items", ``, `not found.","type":"invalid_request_error","param":null`},
		{400, "POST", "/responses", `{"model":"wood","input":[{"role":"user","content":"hi"},{"type":"compaction_trigger"}]}`, `"param":"input"`},
		{400, "POST", "/responses", `{"model":"wood","input":[]}`, `"param":"input"`},
		{400, "POST", "/responses", `{"model":"wood","input":[{"role":"assistant","content":"hi"}]}`, `"param":"input"`},
		{400, "POST", "/responses", `{"model":"wood","input":"hi","previous_response_id":"` + unknown + `"}`, `"code":"previous_response_not_found"`},
		{404, "POST", "/responses", `{"model":"wood","input":"hi","conversation":"` + openai.ConversationID(uuid.Must(uuid.NewV7())) + `"}`, `"param":"conversation"`},
		{400, "POST", "/responses", `{"model":"wood","input":[{"id":"` + strings.Replace(unknown, "resp", "msg", 1) + `_1"}]}`, `"param":"input[0].id","code":"item_not_found"`},
		{404, "GET", "/responses/" + unknown, ``, `not found.","type":"invalid_request_error","param":null`},
		{404, "GET", "/responses/resp_x?stream=true", ``, `Response with id 'resp_x' not found.`},
		{404, "GET", "/nowhere", ``, `"type":"invalid_request_error"`},
		{405, "DELETE", "/models", ``, `"code":"method_not_allowed"`},
	} {
		got, header := a.ask(test.status, "acme", test.method, test.path, test.body)
		if !strings.Contains(got, test.want) || !strings.HasPrefix(got, `{"error":{"message":`) || header.Get("X-Should-Retry") != "false" || header.Get("X-Request-Id") == "" {
			t.Errorf("%s %s %s: %s, want %s; %v", test.method, test.path, test.body, got, test.want, header)
		}
	}
	list, err := a.store.ForTenant("acme").Conversations(t.Context(), tree.ConversationFilter{}, tree.Paging{})
	if err != nil || len(list.Data) != 0 {
		t.Errorf("refused requests left %d conversations: %v", len(list.Data), err)
	}
	if got, _ := a.ask(401, "nobody", "GET", "/models", ""); !strings.Contains(got, `"code":"invalid_api_key"`) {
		t.Errorf("%s", got)
	}
	if got, _ := a.ask(200, "acme", "GET", "/models", ""); !strings.Contains(got, `{"object":"list","data":[{"id":"wood","object":"model","created":`) {
		t.Errorf("%s", got)
	}
}

// TestConversationParameter holds that parallel turns on one conversation all
// succeed, and none is lost.
func TestConversationParameter(t *testing.T) {
	t.Parallel()
	const turns = 8
	a := newAPI(t, slices.Repeat([]llmtest.Behaviour{llmtest.Echo()}, turns)...)
	c, _, err := a.store.ForTenant("acme").CreateConversation(t.Context(), tree.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan string)
	for range turns {
		go func() {
			req, _ := http.NewRequestWithContext(t.Context(), "POST", a.url+"/openai/v1/responses", strings.NewReader(`{"model":"wood","input":"hi","conversation":"`+openai.ConversationID(c.ID)+`"}`))
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+a.secrets["acme"])
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				done <- err.Error()
				return
			}
			defer res.Body.Close()
			var r response
			if err := json.NewDecoder(res.Body).Decode(&r); err != nil || r.Status != "completed" {
				done <- res.Status
				return
			}
			done <- r.ID
		}()
	}
	ids := map[string]bool{}
	for range turns {
		ids[<-done] = true
	}
	for id := range ids {
		a.ask(200, "acme", "GET", "/responses/"+id, "")
	}
	if len(ids) != turns {
		t.Errorf("%d turns gave %d responses: %v", turns, len(ids), ids)
	}
}

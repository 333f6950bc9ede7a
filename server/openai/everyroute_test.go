package openai_test

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/server/openai/wire"
)

// A visit is a request to one route of the API. In the query and the body,
// (conversation), (item), (response) and (completion) stand for ids.
type visit struct {
	query, body string
	nothing     bool // it names nothing of a tenant's
	status      int  // of the answer to one\'s own; 0 is 200
}

const (
	someItems = `"items":[{"type":"message","role":"user","content":"hazel"},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":"ash"}]`
	somePairs = `"metadata":{"a":"hazel"}`
	someTools = `"tools":[{"type":"function","name":"f","description":"hazel","parameters":{"type":"object"},"strict":false}],"tool_choice":"auto","parallel_tool_calls":true`
	chatTools = `"tools":[{"type":"function","function":{"name":"f","description":"hazel","parameters":{"type":"object"}}}],"tool_choice":"auto","parallel_tool_calls":true`
	sampling  = `"temperature":0.5,"top_p":0.5,"service_tier":"auto","safety_identifier":"a","prompt_cache_key":"b","user":"c"`
	someInput = `"input":[{"role":"user","content":[{"type":"input_text","text":"hazel"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]},{"type":"reasoning","id":"rs_a","summary":[]},` +
		`{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"ash"}]},{"role":"user","content":"And oak?"}]`
)

// visits are requests to every route, with every id that they can name. All of
// them are taken where the ids are one's own.
var visits = map[string][]visit{
	"POST embeddings":           {{nothing: true, status: 404}}, // without a provider
	"POST completions":          {{nothing: true, status: 404}},
	"POST audio/speech":         {{nothing: true, status: 404}},
	"POST audio/transcriptions": {{nothing: true, status: 404}},
	"POST audio/translations":   {{nothing: true, status: 404}},
	"GET models":                {{nothing: true}},
	"GET models/{model}":        {{nothing: true}},
	"POST chat/completions": {
		{body: `{"model":"offline","messages":[{"role":"developer","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"hazel"}]},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"ash"}],` +
			`"store":true,"stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":100,"n":1,"stop":["x"],"seed":1,"response_format":{"type":"text"},` + somePairs + `,` + chatTools + `,` + sampling + `}`, nothing: true},
	},
	"GET chat/completions/{completion_id}":                   {{}},
	"GET responses":                                          {{nothing: true}},
	"GET responses/{response_id}":                            {{}, {query: "?stream=true"}, {query: "?stream=true&starting_after=1"}},
	"DELETE responses/{response_id}":                         {{}},
	"POST responses/{response_id}/cancel":                    {{}},
	"GET responses/{response_id}/input_items":                {{}, {query: "?limit=1&order=asc"}},
	"POST conversations":                                     {{nothing: true}, {body: `{` + someItems + `,` + somePairs + `}`, nothing: true}},
	"GET conversations/{conversation_id}":                    {{}},
	"POST conversations/{conversation_id}":                   {{body: `{` + somePairs + `}`}},
	"DELETE conversations/{conversation_id}":                 {{}},
	"POST conversations/{conversation_id}/items":             {{body: `{` + someItems + `}`}},
	"GET conversations/{conversation_id}/items":              {{}, {query: "?after=(item)&limit=1&order=asc"}},
	"GET conversations/{conversation_id}/items/{item_id}":    {{}},
	"DELETE conversations/{conversation_id}/items/{item_id}": {{}},
	"POST responses": {
		{body: `{"model":"offline",` + someInput + `,"instructions":"Be brief.","store":true,"background":false,"stream":true,"stream_options":{},"truncation":"auto","context_management":[{"type":"compaction","compact_threshold":5000}],` +
			`"include":["reasoning.encrypted_content"],"max_output_tokens":100,"text":{"format":{"type":"text"},"verbosity":"low"},"reasoning":{"effort":"low","summary":"auto"},` + somePairs + `,` + someTools + `,` + sampling + `}`, nothing: true},
		{body: `{"model":"offline","input":"hazel","previous_response_id":"(response)"}`},
		{body: `{"model":"offline","store":false,"input":"hazel","previous_response_id":"(response)"}`},
		{body: `{"model":"offline","input":"hazel","conversation":"(conversation)"}`},
		{body: `{"model":"offline","input":"hazel","conversation":{"id":"(conversation)"}}`},
		{body: `{"model":"offline","input":[{"type":"item_reference","id":"(item)"},{"role":"user","content":"hazel"}]}`},
	},
	"POST responses/compact": {
		{body: `{"model":"offline",` + someInput + `,"instructions":"Be brief.","prompt_cache_key":"a"}`, nothing: true},
		{body: `{"model":"offline","previous_response_id":"(response)"}`},
	},
	"POST responses/input_tokens": {
		{body: `{"model":"offline",` + someInput + `,` + someTools + `}`, nothing: true},
		{body: `{"input":"hazel","previous_response_id":"(response)"}`},
		{body: `{"input":"hazel","conversation":"(conversation)"}`},
	},
}

// A plot is what a tenant has: one thing of each kind.
type plot struct{ conversation, item, response, completion string }

func (p plot) fill(s string) string {
	return strings.NewReplacer("(conversation)", p.conversation, "(item)", p.item, "(response)", p.response, "(completion)", p.completion,
		"{conversation_id}", p.conversation, "{item_id}", p.item, "{response_id}", p.response, "{completion_id}", p.completion, "{model}", "offline").Replace(s)
}

// hidden puts one word in the place of each id.
func (p plot) hidden(s string) string {
	return strings.NewReplacer(p.conversation, "CONVERSATION", p.item, "ITEM", p.response, "RESPONSE", p.completion, "COMPLETION").Replace(s)
}

// absentPlot has ids of which there is nothing.
func absentPlot() plot {
	node := func() wire.NodeID { return wire.NodeID{Conversation: uuid.New(), Node: uuid.New()} }
	item := node()
	return plot{
		conversation: wire.ConversationID(item.Conversation), item: wire.ItemID{NodeID: item, Kind: wire.KindMessage, Ordinal: 1}.String(),
		response: node().ResponseID(), completion: node().CompletionID(),
	}
}

// field is a setup of a server over the offline model, whose tests visit every route.
func field() setup { return setup{offline: true, replies: reply.Config{Keep: time.Millisecond}} }

// with gives the same api to a subtest.
func (a *api) with(t testing.TB) *api {
	b := *a
	b.t = t
	return &b
}

// made gives the id of what a request of a tenant's makes.
func (f *api) made(tenant, path, body string) string {
	f.t.Helper()
	got, _ := f.ask(200, tenant, "POST", "/"+path, body)
	return responseIn(f.t, got).ID
}

// everyID names all that a plot has.
const everyID = "{conversation_id} {item_id} {response_id} {completion_id}"

// plantFor makes the things of a tenant that a request names by the words which
// plot.fill replaces.
func (f *api) plantFor(tenant, request string) (p plot) {
	f.t.Helper()
	names := func(what string) bool {
		return strings.Contains(request, "("+what+")") || strings.Contains(request, "{"+what+"_id}")
	}
	if names("conversation") || names("item") {
		p.conversation = f.made(tenant, "conversations", `{`+someItems+`}`)
	}
	if names("completion") {
		p.completion = f.made(tenant, "chat/completions", `{"model":"offline","store":true,`+somePairs+`,"messages":[{"role":"user","content":"hazel `+uuid.NewString()+`"}]}`)
	}
	if names("response") {
		p.response = f.made(tenant, "responses", `{"model":"offline","background":true,"input":"`+strings.Repeat("hazel ", 50)+`"}`)
		check.Eventually(f.t, "the end of a response", func() bool {
			got, _ := f.ask(200, tenant, "GET", "/responses/"+p.response, "")
			return strings.Contains(got, `"status":"completed"`)
		})
	}
	if names("item") {
		var page itemPage
		got, _ := f.ask(200, tenant, "GET", "/conversations/"+p.conversation+"/items", "")
		check.JSON(f.t, got, &page)
		p.item = page.Data[0].ID // the newest, an output
	}
	return p
}

// state is a digest of all that is stored.
func (f *api) state() string {
	f.t.Helper()
	return dbtest.State(f.t, f.pool, "conversations", "nodes", "replies")
}

// eachVisit calls f with every visit to every route of the API. A route
// without a visit, or a visit without a route, fails.
func eachVisit(t *testing.T, do func(t *testing.T, r server.Route, v visit)) {
	t.Helper()
	left := map[string]bool{}
	for name := range visits {
		left[name] = true
	}
	for _, r := range openai.API().Routes {
		name := r.Method + " " + strings.TrimPrefix(r.Pattern, openai.Prefix)
		if delete(left, name); len(visits[name]) == 0 {
			t.Errorf("%s has no visit", name)
		}
		for i, v := range visits[name] {
			t.Run(fmt.Sprint(name, " ", i), func(t *testing.T) { do(t, r, v) })
		}
	}
	for name := range left {
		t.Errorf("there is no route %s", name)
	}
}

// TestTenantsDontSeeEachOther visits every route with ids of one's own, of another tenant's and of
// nobody's. The last two answer alike but for the ids, and change nothing.
func TestTenantsDontSeeEachOther(t *testing.T) {
	t.Parallel()
	f := field().serve(t)
	others, own := f.plantFor("other", everyID), f.plantFor("acme", everyID)
	inOwn := func(p plot) plot { p.conversation = own.conversation; return p } // their items in one's own conversation
	inTheirs := func(p plot) plot { p.item = own.item; return p }
	absent := absentPlot()
	named := 0
	eachVisit(t, func(t *testing.T, r server.Route, v visit) {
		f := f.with(t)
		path := "/" + strings.TrimPrefix(r.Pattern, openai.Prefix) + v.query
		visit := func(p plot) (int, string, http.Header) {
			return f.send("acme", r.Method, p.fill(path), p.fill(v.body))
		}
		refusal := func(p plot) string {
			status, body, header := visit(p)
			header.Del("X-Request-Id")
			header.Del("Date")
			check.That(t, status >= 400, "it is taken: %d %s", status, body)
			return fmt.Sprint(status, header, p.hidden(body))
		}
		if !v.nothing {
			named++
			before := f.state()
			pairs := [][2]plot{{others, absent}}
			if strings.Contains(path, "{conversation_id}") && (strings.Contains(path, "(item)") || strings.Contains(path, "{item_id}")) {
				pairs = append(pairs, [2]plot{inOwn(others), inOwn(absent)}, [2]plot{inTheirs(others), inTheirs(absent)})
			}
			for _, pair := range pairs {
				check.Equal(t, "another tenant's, beside nobody's", refusal(pair[0]), refusal(pair[1]))
			}
			check.Need(t, f.state() == before, "a request for another's changed something")
		}
		status, body, _ := visit(f.plantFor("acme", path+v.body))
		check.That(t, status == cmp.Or(v.status, 200) || status == http.StatusUpgradeRequired, "one's own answers %d: %s", status, body)
		check.Equal(t, "one's own answer", others.hidden(body), body)
	})
	check.That(t, named >= 20, "only %d visits name an id", named)
}

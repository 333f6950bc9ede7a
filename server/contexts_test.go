package server

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/internal/telemetry"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// plantLong stores a line of a system message and n turns, some 120 tokens each. The messages
// are called <conversation>.0 and so on.
func plantLong(t testing.TB, store *tree.Store, conversation string, turns int) {
	t.Helper()
	id := named(conversation)
	check.Must3(store.CreateConversation(t.Context(), tree.NewConversation{ID: id}))(t)
	chain := []tree.NewMessage{{ID: named(conversation + ".0"), Message: chat.Read([]byte(`{"role":"system","content":"You keep the book of a wood."}`))}}
	for turn := range turns {
		for _, said := range []struct{ role, text string }{
			{"user", fmt.Sprintf("What about plot %d?", turn)},
			{"assistant", fmt.Sprintf("Plot %d was cut in %d. ", turn, 1900+turn) + strings.Repeat("The stools stand close, the poles are thin, and the deer got in through the gap by the gate. ", 5)},
		} {
			body := check.Must(json.Marshal(map[string]string{"role": said.role, "content": said.text}))(t)
			chain = append(chain, tree.NewMessage{ID: named(fmt.Sprint(conversation, ".", len(chain))), Message: chat.Read(body)})
		}
	}
	check.Must(store.AppendChain(t.Context(), id, uuid.Nil, chain))(t)
}

const contextPath = conversationPathOf + "/branches/active/context"
const graftPath = conversationPathOf + "/branches/{{c.thanks}}/grafts"
const compactPath = conversationPathOf + "/branches/active/compactions"

var badContexts = []badInput{
	{name: "window no number", method: "GET", path: contextPath + "?max_context_tokens=8k", status: 400, code: CodeInvalidSetting, field: "max_context_tokens", detail: []string{"1 to 2147483647"}},
	{name: "reserve negative", method: "GET", path: contextPath + "?reserved_tokens=-1", status: 400, code: CodeInvalidSetting, field: "reserved_tokens"},
	{name: "reserve of the whole window", method: "GET", path: contextPath + "?max_context_tokens=1000&reserved_tokens=1000", status: 400, code: CodeInvalidSetting, field: "reserved_tokens", detail: []string{"less than max_context_tokens, which is 1000"}},
	{name: "no model known", method: "GET", path: contextPath + "?model=gpt-4o", status: 400, code: CodeUnknownModel, field: "model", detail: []string{"max_context_tokens"}},
	{name: "recall neither true nor false", method: "GET", path: contextPath + "?recall=1", status: 400, code: CodeInvalidParameter, field: "recall", detail: []string{"true or false"}},
	{name: "context of a summary", method: "GET", path: conversationPathOf + "/branches/{{c.summary}}/context", status: 404, code: "message_not_found"},
	{name: "explain an absent head", method: "GET", path: conversationPathOf + "/branches/{{absent}}/explain", status: 404, code: "message_not_found"},
	{name: "graft of the same branch", method: "POST", path: graftPath, body: `{"from_head_id":"{{c.thanks}}"}`, status: 400, code: "nothing_to_graft", field: "from_head_id"},
	{name: "graft of an absent branch", method: "POST", path: graftPath, body: `{"from_head_id":"{{absent}}"}`, status: 404, code: "message_not_found", field: "from_head_id"},
	{name: "graft below a pending call", method: "POST", path: conversationPathOf + "/branches/{{c.call}}/grafts", body: `{"from_head_id":"{{c.third}}"}`, status: 400, code: "open_tool_calls", field: "head_id", detail: []string{"call_1"}},
	{name: "graft of neither form", method: "POST", path: graftPath, body: `{"from_head_id":"{{c.third}}","include":"all"}`, status: 400, code: CodeInvalidDemand, field: "include"},
	{name: "graft of an empty text", method: "POST", path: graftPath, body: `{"from_head_id":"{{c.third}}","text":""}`, status: 400, code: CodeInvalidDemand, field: "text"},
	{name: "graft of a text in a dry run", method: "POST", path: graftPath, body: `{"from_head_id":"{{c.third}}","text":"x","dry_run":true}`, status: 400, code: CodeInvalidDemand, field: "dry_run"},
	{name: "prune a call alone", method: "DELETE", path: conversationPathOf + "/messages/{{c.call}}?keep_below=true", status: 400, code: "tool_call_not_found", detail: []string{"Remove the result first"}},
	{name: "fork with some siblings", method: "POST", path: conversationPathOf + "/messages/{{c.answer}}/fork?siblings=some", status: 400, code: CodeInvalidParameter, field: "siblings"},
	{name: "absent summary", method: "GET", path: conversationPathOf + "/summaries/{{absent}}", status: 404, code: "summary_not_found"},

	{name: "keep nothing", method: "POST", path: compactPath, body: `{"keep_recent_messages":0}`, status: 400, code: CodeInvalidDemand, field: "keep_recent_messages"},
	{name: "long instructions", method: "POST", path: compactPath, body: `{"instructions":"` + strings.Repeat("x", 4001) + `"}`, status: 400, code: CodeInvalidDemand, field: "instructions"},
	{name: "look ahead elsewhere", method: "POST", path: compactPath, body: `{"look_ahead":"all"}`, status: 400, code: CodeInvalidDemand, field: "look_ahead", detail: []string{"recent or none"}},

	{name: "unknown setting", method: "POST", path: "/v1/conversations", body: `{"settings":{"keep":1}}`, status: 400, code: CodeInvalidSetting, field: "settings.keep", detail: []string{"no setting of this name", "keep_ratio"}},
	{name: "settings that compact for ever", method: "PATCH", path: conversationPathOf, body: `{"settings":{"trigger_cap_tokens":5000}}`, status: 400, code: CodeInvalidSetting, field: "settings.keep_ratio", detail: []string{"again at once", "trigger of 5000"}},
	{name: "setting in no mode", method: "POST", path: conversationPathOf + "/messages/{{c.thanks}}/fork", body: `{"settings":{"compaction":"maybe"}}`, status: 400, code: CodeInvalidSetting, field: "settings.compaction", detail: []string{"auto, tool, manual or off"}},
}

// The window is the query's, else the conversation's, else the server's. A context for a
// model that takes user and assistant by turns only has them so.
func TestContextOfAModel(t *testing.T) {
	t.Parallel()
	known := map[string]int{"small": 8000, "large": 1_000_000, "strict": 8000}
	a := newAPI(t, func(c *Config) {
		c.AlternatesRoles = func(model string) bool { return model == "strict" }
		c.ModelWindow = func(model string) (int, []string) {
			if n, ok := known[model]; ok {
				return n, nil
			}
			return 0, slices.Sorted(maps.Keys(known))
		}
	})
	plant(t, a.store, "c")
	plant(t, a.store, "own")
	a.must(200, nil, request{method: "PATCH", path: fill("/v1/conversations/{{own}}"), body: `{"settings":{"max_context_tokens":40000,"reserved_tokens":5000}}`})
	for _, test := range []struct {
		conversation, query string
		window, reserve     int
	}{
		{"c", "", 128_000, 16_000},
		{"c", "?max_context_tokens=50000", 50_000, 6_250},
		{"c", "?max_context_tokens=1", 1, 0},
		{"c", "?reserved_tokens=0", 128_000, 0},
		{"c", "?model=large&reserved_tokens=100000", 1_000_000, 100_000},
		{"c", "?model=small&max_context_tokens=90000&reserved_tokens=1", 90_000, 1},
		{"c", "?model=unheard-of&max_context_tokens=90000&reserved_tokens=1", 90_000, 1},
		{"own", "", 40_000, 5000},
		{"own", "?max_context_tokens=8000", 8000, 1000},
		{"own", "?reserved_tokens=7", 40_000, 7},
	} {
		var c summarize.Context
		a.must(200, &c, request{method: "GET", path: fill("/v1/conversations/{{" + test.conversation + "}}/branches/active/context" + test.query)})
		u := c.Usage
		check.Equal(t, test.conversation+test.query, fmt.Sprint(u.MaxContextTokens, u.ReservedTokens, u.AvailableTokens), fmt.Sprint(test.window, test.reserve, test.window-test.reserve))
	}
	check.Has(t, "an unknown model", a.refused(400, CodeUnknownModel, get(contextPath+"?model=unheard-of")).Detail, "large, small, strict")
	a.refused(400, CodeUnknownModel, get(contextPath+"?model="))
	a.must(201, nil, request{method: "POST", path: fill(appendPath), body: `{"parent_id":null,"messages":[{"role":"user","content":"One."},{"role":"user","content":"Two."}]}`})
	a.tells(200, get(contextPath+"?model=small"), `"messages":[{"role":"user","content":"One."},{"role":"user","content":"Two."}]`, `"roles":"mixed"`)
	a.tells(200, get(contextPath+"?model=strict"), `"messages":[{"role":"user","content":"One.\n\nTwo."}]`, `"roles":"alternating"`)
}

// Contexts reuse memory: asked for side by side, each is what it is when asked for alone.
func TestContextsSideBySide(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	const conversations, rounds = 4, 10
	path := func(i int) string {
		return fmt.Sprintf("/v1/conversations/%s/branches/active/context", named(fmt.Sprint("c", i)))
	}
	alone := make([]string, conversations)
	for i := range alone {
		plantLong(t, a.store, fmt.Sprint("c", i), 1+i*i*3)
		alone[i] = string(a.must(200, nil, request{method: "GET", path: path(i)}).body)
	}
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for round := range rounds {
				i := (worker + round*(worker+1)) % conversations
				check.Equal(t, fmt.Sprint("conversation ", i), a.direct("127.0.0.1:9", "http://localhost"+path(i), nil).Body.String(), alone[i])
			}
		})
	}
	wg.Wait()
}

// Presets that can't stand say why before the server serves them.
func TestPresets(t *testing.T) {
	t.Parallel()
	models := []Model{{Name: "answers", Aliases: []string{"also"}, Replies: true}, {Name: "writes"}}
	for given, want := range map[string]string{
		`[]`: "",
		`[{"name":"a","description":"b","system":"c","model":"also","temperature":0.5,"settings":{"max_context_tokens":9000,"reserved_tokens":500}},{"name":"b"}]`: "",
		`{}`:                                   "presets are a JSON array",
		`[{"name":"a","prompt":""}]`:           `unknown field "prompt"`,
		`[] []`:                                "something follows",
		`[{"system":"a"}]`:                     "no name",
		`[{"name":" "}]`:                       "no name",
		`[{"name":"a"},{"name":"a"}]`:          `preset 2 ("a"): another one has its name`,
		`[{"name":"a","model":"writes"}]`:      `no model "writes" answers here`,
		`[{"name":"a","temperature":2.5}]`:     "0 to 2",
		`[{"name":"a","settings":{"keep":1}}]`: "keep",
		`[{"name":"a","settings":{"trigger_ratio":2}}]`:           "trigger_ratio",
		`[{"name":"a","settings":{"max_context_tokens":"many"}}]`: "max_context_tokens",
	} {
		presets, err := ParsePresets([]byte(given))
		if err == nil {
			err = CheckPresets(presets, models, summarize.Defaults())
		}
		check.That(t, (err == nil) == (want == "") && (err == nil || strings.Contains(err.Error(), want)), "%s: %v, want %q", given, err, want)
	}
}

// offers are those of one program, which nobody takes up.
type offers struct{}

func (offers) List(context.Context) []Offer {
	return []Offer{{"Ollama", "http://localhost:11434/v1", []string{"qwen3"}}}
}

func (offers) Accept(_ context.Context, baseURL string) error {
	if strings.HasPrefix(baseURL, "http://localhost:11434/") {
		return nil
	}
	return fault.New(fault.Invalid, "invalid_parameter", "base_url", "This isn't offered.")
}

// Only who runs the server is offered models: not who comes through a proxy.
func TestOffers(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for header, offered := range map[string]bool{"X-Forwarded-For": false, "X-Unknown": true} {
		h := map[string]string{header: "192.0.2.1"}
		list := a.send(request{method: "GET", path: "/v1/models", header: h})
		accept := a.send(request{method: "POST", path: "/v1/models", body: `{"base_url":"http://localhost:11434/v1"}`, header: h})
		check.That(t, strings.Contains(string(list.body), `"offers"`) == offered && (accept.StatusCode == http.StatusOK) == offered,
			"with %s: %s, and %d when it is accepted", header, list.body, accept.StatusCode)
	}
}

// compactionAnswer is the schema Compaction, as far as tests read it.
type compactionAnswer struct {
	SummaryID              *string `json:"summary_id"`
	Outcome, Reason, Model string
	Attempts               []struct{ Error string }
	TokensBefore           int `json:"tokens_before"`
	TokensAfter            int `json:"tokens_after"`
}

// serviceOf makes a service whose cascade asks one model.
func serviceOf(t testing.TB, answer func(context.Context, llm.Request) (llm.Response, error), registry *prometheus.Registry) func(*Config) {
	return func(c *Config) {
		m := check.Must(telemetry.NewCompactions(registry))(t)
		c.Registry = registry
		settings := summarize.Defaults()
		settings.Digest = summarize.DigestNever
		c.Contexts = check.Must(summarize.New(c.Store, summarize.Config{
			Summarizer: summarize.Cascade{Models: []summarize.Model{{Model: &llmtest.Model{ModelName: "scribe", Answer: answer}, Window: 128_000}}},
			Settings:   settings, Logger: c.Logger, Observe: m.Observe,
		}))(t)
	}
}

// plots is what a summary of plantLong tells.
const plots = ": plot 0 was cut in 1900, plot 1 in 1901, plot 2 in 1902, plot 3 in 1903 and plot 4 in 1904. The poles are thin, and the deer got in by the gate."

// What summarizers do shows in the answer, the log and the metrics.
func TestCompactionsAreCounted(t *testing.T) {
	t.Parallel()
	answers := make(chan string, 2)
	a := newAPI(t, serviceOf(t, func(context.Context, llm.Request) (llm.Response, error) {
		r := llmtest.Response(<-answers)
		r.PromptTokens, r.CompletionTokens = 1000, 50
		return r, nil
	}, prometheus.NewRegistry()))
	plantLong(t, a.store, "c", 20)

	var k compactionAnswer
	answers <- "Too short."
	a.must(200, &k, request{method: "POST", path: fill(compactPath)})
	if k.Outcome != "failed" || !strings.Contains(k.Reason, "scribe") || len(k.Attempts) != 1 || k.Attempts[0].Error == "" || k.SummaryID != nil {
		t.Errorf("a failed compaction: %+v", k)
	}
	answers <- "Twenty plots were looked at" + plots
	k = compactionAnswer{}
	a.must(201, &k, request{method: "POST", path: fill(compactPath)})
	check.Equal(t, "a saved compaction", k.Model+k.Attempts[0].Error, "scribe")

	text := string(a.must(200, nil, request{method: "GET", path: "/metrics"}).body)
	for _, want := range []string{
		`coppice_compactions_total{outcome="saved"} 1`, `coppice_compactions_total{outcome="failed"} 1`, `coppice_compactions_total{outcome="stale"} 0`,
		fmt.Sprintf("coppice_compaction_saved_tokens_total %d", k.TokensBefore-k.TokensAfter),
		`coppice_compaction_model_tokens_total{direction="prompt"} 2000`, `coppice_compaction_model_tokens_total{direction="completion"} 100`,
		`coppice_compaction_duration_seconds_count{outcome="saved"} 1`,
	} {
		check.Has(t, fmt.Sprintf("/metrics lacks %s", want), text, want+"\n")
	}
	line := regexp.MustCompile(`"msg":"compaction".*"outcome":"saved"`)
	if log := a.log.String(); !line.MatchString(log) || strings.Contains(log, "Twenty plots") || strings.Contains(log, "stools stand") {
		t.Error("the log has no line of the compaction, or says what it is about")
	}
}

// A compaction on demand has time of its own, and no more than that.
func TestCompactionTimeout(t *testing.T) {
	t.Parallel()
	patient := func(ctx context.Context, _ llm.Request) (llm.Response, error) {
		if until, _ := ctx.Deadline(); time.Until(until) < 10*time.Second { // no more than a request has
			<-ctx.Done()
			return llm.Response{}, ctx.Err()
		}
		return llmtest.Response("Twenty plots were looked at" + plots), nil
	}
	for timeout, want := range map[time.Duration]int{time.Hour: 201, 50 * time.Millisecond: 503} {
		a := newAPI(t, serviceOf(t, patient, prometheus.NewRegistry()), func(c *Config) { c.RequestTimeout, c.CompactionTimeout = 9*time.Second, timeout })
		plantLong(t, a.store, "c", 20)
		before := a.state()
		res := a.must(want, nil, request{method: "POST", path: fill(conversationPathOf + "/branches/{{c.40}}/compactions")})
		check.That(t, want != 503 || a.problem(res).Code == CodeTimeout && a.state() == before, "cut off after %v: %s", timeout, res.body)
	}
}

// What models cost in a conversation: replies by what their metadata say, which a
// client may have written, and compactions by their records.
func TestUsage(t *testing.T) {
	t.Parallel()
	a := newAPI(t, func(c *Config) {
		c.ModelCost = func(model string, in, out int) (float64, bool) { return float64(in + 2*out), model == "dear" }
	})
	plantLong(t, a.store, "c", 20)
	path := fill(conversationPathOf)
	for _, reply := range []string{
		`{"model":"dear","usage":{"prompt_tokens":100,"completion_tokens":10,"reasoning_tokens":6}}`, `{"model":"dear","usage":{"prompt_tokens":50,"completion_tokens":5}}`,
		`{"model":"cheap","usage":{"prompt_tokens":7,"completion_tokens":1,"reasoning_tokens":"some"}}`, `{"model":"cheap"}`, `{"model":"cheap","usage":{"prompt_tokens":"many","completion_tokens":-3}}`,
		`{"model":7,"usage":{"prompt_tokens":7}}`, `"none"`, `{"model":"cheap","usage":[99999999999999999999]}`,
	} {
		a.must(201, nil, request{method: "POST", path: path + "/messages", body: `{"parent_id":"` + named("c.40").String() + `","role":"assistant","content":"Yes.","metadata":{"reply":` + reply + `}}`})
	}
	a.must(201, nil, request{method: "POST", path: path + "/branches/" + named("c.40").String() + "/compactions"})
	var got usageAnswer
	a.must(200, &got, request{method: "GET", path: path + "/usage"})
	r := got.Replies
	if r.Calls != 6 || r.PromptTokens != 157 || r.CompletionTokens != 16 || r.ReasoningTokens != 6 || r.Models[1].ReasoningTokens != 6 || r.Cost == nil || *r.Cost != 180 || len(r.Models) != 2 || r.Models[0].Model != "cheap" || r.Models[0].Cost != nil || *r.Models[1].Cost != 180 {
		t.Errorf("replies: %+v", r)
	}
	k := got.Compactions
	check.That(t, k.Calls == 1 && k.Cost == nil && k.Models[0].Model == "offline-digest", "compactions: %+v", k)
}

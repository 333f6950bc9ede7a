package server

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/internal/telemetry"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
)

// compactionAnswer is the schema Compaction, as far as tests read it.
type compactionAnswer struct {
	ID             string  `json:"id"`
	AnchorID       *string `json:"anchor_id"`
	CutoffID       *string `json:"cutoff_id"`
	SummaryID      *string `json:"summary_id"`
	PriorSummaryID *string `json:"prior_summary_id"`
	Outcome        string  `json:"outcome"`
	Reason         string  `json:"reason"`
	Model          string  `json:"model"`
	Attempts       []struct {
		Model, Error string
	} `json:"attempts"`
	FoldedMessages int `json:"folded_messages"`
	TokensBefore   int `json:"tokens_before"`
	TokensAfter    int `json:"tokens_after"`
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
	if k.Model != "scribe" || k.Attempts[0].Error != "" {
		t.Errorf("a saved compaction: %+v", k)
	}

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
		if want == 503 && (a.problem(res).Code != CodeTimeout || a.state() != before) {
			t.Errorf("cut off after %v: %s", timeout, res.body)
		}
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
	if k := got.Compactions; k.Calls != 1 || k.Cost != nil || k.Models[0].Model != "offline-digest" {
		t.Errorf("compactions: %+v", k)
	}
}

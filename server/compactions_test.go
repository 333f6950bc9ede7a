package server

import (
	"bytes"
	"context"
	"encoding/json"
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

type contextAnswer struct {
	Messages []struct{ Role, Content string } `json:"messages"`
	Summary  *struct{ ID string }             `json:"summary"`
	Usage    summarize.Usage                  `json:"usage"`
	Counts   summarize.Counts                 `json:"counts"`
}

type summaryAnswer struct {
	ID, Text string
	Prior    *struct{ ID, Text string }
}

// TestCompaction compacts a branch twice, looks at what came of it, and undoes
// the second.
func TestCompaction(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plantLong(t, a.store, "c", 20)
	path := fill(conversationPathOf)
	var before, between, after contextAnswer
	a.must(200, &before, request{method: "GET", path: path + "/branches/active/context"})

	var plan struct{ Plan *summarize.ExplainedPlan }
	a.must(200, &plan, request{method: "GET", path: path + "/branches/active/explain"})
	var first, second compactionAnswer
	a.must(201, &first, request{method: "POST", path: path + "/branches/active/compactions"})
	if plan.Plan == nil || first.CutoffID == nil || plan.Plan.CutoffID.String() != *first.CutoffID || plan.Plan.FoldMessages != first.FoldedMessages {
		t.Errorf("explained %+v, done %+v", plan.Plan, first)
	}
	a.must(200, &between, request{method: "GET", path: path + "/branches/active/context"})
	if between.Summary == nil || between.Summary.ID != *first.SummaryID || between.Counts.Folded != first.FoldedMessages {
		t.Fatalf("after a compaction: %+v", between)
	}
	if between.Usage.ContextTokens != first.TokensAfter || before.Usage.ContextTokens != first.TokensBefore || first.TokensAfter >= first.TokensBefore {
		t.Errorf("%d and %d tokens, and the record says %d and %d", before.Usage.ContextTokens, between.Usage.ContextTokens, first.TokensBefore, first.TokensAfter)
	}
	res := a.must(201, &second, request{method: "POST", path: path + "/branches/active/compactions", body: `{"keep_recent_messages":2}`})
	if second.PriorSummaryID == nil || *second.PriorSummaryID != *first.SummaryID {
		t.Errorf("the second merged %v, want %s", second.PriorSummaryID, *first.SummaryID)
	}

	var summary summaryAnswer
	a.must(200, &summary, request{method: "GET", path: res.Header.Get("Location")})
	if summary.ID != *second.SummaryID || summary.Prior == nil || summary.Prior.ID != *first.SummaryID || summary.Text == summary.Prior.Text {
		t.Errorf("the summary is %+v", summary)
	}
	var list struct{ Data []compactionAnswer }
	a.must(200, &list, request{method: "GET", path: path + "/compactions"})
	var raw struct{ Data []json.RawMessage }
	if a.must(200, &raw, request{method: "GET", path: path + "/compactions"}); !bytes.Equal(raw.Data[0], res.body) {
		t.Errorf("made as\n%s\nlisted as\n%s", res.body, raw.Data[0])
	}
	if len(list.Data) != 2 || list.Data[0].ID != second.ID || list.Data[1].ID != first.ID {
		t.Errorf("listed are %+v", list.Data)
	}

	// Undone, the first applies again; what the second merged can still be read.
	a.must(200, nil, request{method: "DELETE", path: path + "/messages/" + *second.SummaryID})
	a.must(200, &after, request{method: "GET", path: path + "/branches/active/context"})
	if fmt.Sprint(after.Messages) != fmt.Sprint(between.Messages) {
		t.Error("after an undo the context isn't the one before")
	}
	a.refused(404, "summary_not_found", request{method: "GET", path: res.Header.Get("Location")})

	// And where the first one is gone, the second says so.
	res = a.must(201, nil, request{method: "POST", path: path + "/branches/active/compactions", body: `{"keep_recent_messages":2}`})
	a.must(200, nil, request{method: "DELETE", path: path + "/messages/" + *first.SummaryID})
	var orphan summaryAnswer
	if a.must(200, &orphan, request{method: "GET", path: res.Header.Get("Location")}); orphan.Prior != nil {
		t.Errorf("the summary before it was deleted: %+v", orphan.Prior)
	}
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
		if !strings.Contains(text, want+"\n") {
			t.Errorf("/metrics lacks %s", want)
		}
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

// A summary is made again on request, and takes the place of the one that it was
// made of, which comes back when it is undone.
func TestRemakeSummary(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plantLong(t, a.store, "c", 20)
	path := fill(conversationPathOf)
	var first, second compactionAnswer
	a.must(201, &first, request{method: "POST", path: path + "/branches/active/compactions"})
	again := path + "/summaries/" + *first.SummaryID + "/remake"
	res := a.must(201, &second, request{method: "POST", path: again, body: `{"instructions":"Keep the names."}`})
	if want := path + "/summaries/" + *second.SummaryID; res.Header.Get("Location") != want || *second.AnchorID != *first.AnchorID || *second.CutoffID != *first.CutoffID {
		t.Errorf("%+v at %s", second, res.Header.Get("Location"))
	}
	var applies contextAnswer
	a.must(200, &applies, request{method: "GET", path: path + "/branches/active/context"})
	if applies.Summary == nil || applies.Summary.ID != *second.SummaryID {
		t.Errorf("%+v applies", applies.Summary)
	}
	a.refused(409, "summary_replaced", request{method: "POST", path: again})
	if p := a.refused(400, CodeInvalidDemand, request{method: "POST", path: path + "/summaries/" + *second.SummaryID + "/remake", body: `{"model":"none"}`}); deref(p.Field) != "model" {
		t.Errorf("%+v", p)
	}
	a.must(200, nil, request{method: "DELETE", path: path + "/messages/" + *second.SummaryID})
	a.must(200, &applies, request{method: "GET", path: path + "/branches/active/context"})
	if applies.Summary == nil || applies.Summary.ID != *first.SummaryID {
		t.Errorf("after it is undone %+v applies", applies.Summary)
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

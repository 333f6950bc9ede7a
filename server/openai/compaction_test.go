package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"

	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/prompt"
)

// A writer is a summarizer that says what it was given first, and how much.
type writer struct{}

func (writer) Summarize(_ context.Context, in prompt.Input) (prompt.Result, error) {
	first := chat.Read(in.Fold[0].Body).Text()
	numbers := ""
	for _, m := range in.Fold {
		numbers += " " + strings.Join(digits.FindAllString(chat.Read(m.Body).Text(), 1), "")
	}
	return prompt.Result{Text: fmt.Sprintf("SUMMARY of %d messages from %.12q on:%s. %s", len(in.Fold), first, numbers, in.Prior), Model: "writer", Taken: len(in.Fold)}, nil
}

var digits = regexp.MustCompile(`\d+`)

func compacting() summarize.Config { return summarize.Config{Summarizer: writer{}} }

const hazel = "Hazel grows again after it was cut to the ground, every ten years or so. "

// talk makes a branch of so many turns, and gives the last response's id.
func (a *api) talk(turns int) (last string) {
	a.t.Helper()
	previous := ""
	for i := range turns {
		last = a.create(fmt.Sprintf(`{"model":"wood","input":"Question %d. %s"%s}`, i, strings.Repeat(hazel, 12), previous)).ID
		previous = `,"previous_response_id":"` + last + `"`
	}
	return last
}

func answersOf(n int) (script []llmtest.Behaviour) {
	for i := range n {
		script = append(script, llmtest.Answer(fmt.Sprintf("Answer %d. %s", i, strings.Repeat(hazel, 12))))
	}
	return script
}

// An item is what a test reads of one.
type item struct {
	ID, Type, Role string
	Content        []struct{ Text string }
}

// itemsIn reads the output of a response, whose items are texts as well.
func itemsIn(t *testing.T, body string) (items []item, raw []string) {
	t.Helper()
	var r struct{ Output []json.RawMessage }
	check.JSON(t, body, &r)
	for _, one := range r.Output {
		var i item
		check.NoError(t, json.Unmarshal(one, &i))
		items, raw = append(items, i), append(raw, string(one))
	}
	return items, raw
}

// given holds that the model was given a summary and some texts, and not others.
func (a *api) given(has, lacks string) {
	a.t.Helper()
	got := a.prompt()
	for text := range strings.SplitSeq(has, "|") {
		check.Equal(a.t, fmt.Sprintf("how often %q is in %s", text, got), strings.Count(got, text), 1)
	}
	for text := range strings.SplitSeq(lacks, "|") {
		check.Lacks(a.t, "the model was given", got, text)
	}
}

// TestContextManagement holds that past the threshold the branch is compacted, that
// the item comes before the answer, and that all readings have it.
func TestContextManagement(t *testing.T) {
	t.Parallel()
	a := setup{contexts: compacting(), script: answersOf(12)}.serve(t)
	last := a.talk(4)
	streamed, _ := a.ask(200, "acme", "POST", "/responses", `{"model":"wood","stream":true,"context_management":[{"type":"compaction","compact_threshold":1000}],"input":"And now?","previous_response_id":"`+last+`"}`)
	begin, compacted, answer := strings.Index(streamed, "event: response.in_progress"), strings.Index(streamed, `"type":"compaction"`), strings.Index(streamed, "event: response.output_text.delta")
	check.Need(t, begin >= 0 && compacted >= begin && answer >= compacted && strings.Contains(streamed, "event: response.completed"),
		"%d, %d, %d in %s", begin, compacted, answer, streamed)
	a.given("SUMMARY of|And now?", "Answer 0.")
	id := finalID(t, streamed)
	whole, _ := a.ask(200, "acme", "GET", "/responses/"+id, "")
	check.Equal(t, "read again", final(a.tells(200, "GET", "/responses/"+id+"?stream=true", "")), final(streamed))
	check.Has(t, "what was streamed", final(streamed), whole)
	check.Lacks(t, "the input", a.tells(200, "GET", "/responses/"+id+"/input_items?limit=100", "", "Question 0."), "compaction")

	// A client that keeps its history drops what stands before the item, and goes on
	// with both items, without the answer's id, or by the ids alone.
	items, raw := itemsIn(t, whole)
	check.Need(t, len(items) == 2 && items[0].Type == "compaction" && strings.HasPrefix(items[0].ID, "cmp_"), "%s", whole)
	n := nodeOf(t, id)
	both := `{"model":"wood","input":[` + raw[0] + `,` + raw[1] + `,{"role":"user","content":"Go on."}]}`
	for _, body := range []string{
		both,
		`{"model":"wood","input":[` + raw[0] + `,{"role":"assistant","content":` + string(check.Must(json.Marshal(items[1].Content[0].Text))(t)) + `},{"role":"user","content":"Go on, then."}]}`,
		`{"model":"wood","context_management":[{"type":"compaction"}],"input":[{"type":"item_reference","id":"` + items[0].ID + `"},{"type":"item_reference","id":"` + items[1].ID + `"},{"role":"user","content":"Go on!"}]}`,
	} {
		r := nodeOf(t, a.create(body).ID)
		a.given("SUMMARY of|Answer 4.|And now?", "Answer 0.")
		check.Equal(t, "the conversation", r.Conversation, n.Conversation)
		check.Equal(t, "the message before", a.before(completion{conversation: r.Conversation.String(), head: r.Node.String()}), n.Node.String())
	}
	byID := `"input":[{"type":"item_reference","id":"` + items[0].ID + `"},{"role":"user","content":"Unkept."}]}`
	a.create(`{"model":"wood","store":false,` + byID)
	a.given("SUMMARY of|Unkept.", "Answer 0.")
	refused, _ := a.ask(400, "other", "POST", "/responses", `{"model":"wood",`+byID)
	check.Has(t, "an item of another tenant's", refused, "item_not_found")
	// Another tenant has but the text, as it would have it from a server that is gone.
	theirs, _ := a.ask(200, "other", "POST", "/responses", both)
	a.given("SUMMARY of|Answer 4.", "Question 3.")
	check.Equal(t, "that it is one's own conversation", nodeOf(t, responseIn(t, theirs).ID).Conversation == n.Conversation, false)
	// Where the summary is undone, its text stands, and what was said is gone from the item.
	found := check.Must(wire.ParseItemID(items[0].ID))(t)
	check.Must(a.store.ForTenant("acme").Prune(t.Context(), found.Conversation, found.Node))(t)
	if r := a.create(`{"model":"wood","input":[` + raw[0] + `,{"role":"user","content":"And after?"}]}`); nodeOf(t, r.ID).Conversation == n.Conversation || !strings.Contains(a.prompt(), "SUMMARY of") {
		t.Errorf("%+v after %s", r, a.prompt())
	}
	check.Lacks(t, "the response", a.tells(200, "GET", "/responses/"+id, ""), "compaction")
}

// A history that nobody keeps is compacted, and no call is parted from its output.
func TestCompactionUnstored(t *testing.T) {
	t.Parallel()
	a := setup{contexts: compacting(), script: answersOf(4)}.serve(t)
	history := []string{`{"role":"developer","content":"Mind the hazel."}`}
	for i := range 8 {
		history = append(history,
			fmt.Sprintf(`{"role":"user","content":"Question %d. %s"}`, i, hazel),
			fmt.Sprintf(`{"type":"function_call","call_id":"call_%d","name":"f","arguments":"{}"}`, i),
			fmt.Sprintf(`{"type":"function_call_output","call_id":"call_%d","output":%q}`, i, strings.Repeat(hazel, 8)),
			fmt.Sprintf(`{"role":"assistant","content":"Reply %d."}`, i))
	}
	history = append(history, `{"role":"user","content":"And now?"}`)
	create := func() ([]item, []string) {
		t.Helper()
		got, _ := a.ask(200, "acme", "POST", "/responses", `{"model":"wood","store":false,"context_management":[{"type":"compaction","compact_threshold":1000}],"input":[`+strings.Join(history, ",")+`]}`)
		a.given("Mind the hazel.|SUMMARY of", "Reply 0.")
		sent := a.upstream.Requests()
		open := map[string]bool{}
		for i, body := range sent[len(sent)-1].Messages {
			m := chat.Read(body)
			for _, c := range m.Calls {
				open[c.ID] = true
			}
			check.That(t, m.Role != chat.Tool || open[m.Answers()], "message %d answers a call that was folded: %s", i, a.prompt())
		}
		return itemsIn(t, got)
	}
	items, raw := create()
	check.Need(t, len(items) == 2 && items[0].Type == "compaction" && items[1].Type == "message", "%+v", items)
	// All of it comes again with the item behind it: the item stands for what is before.
	history = append(history, raw[0], raw[1], `{"role":"user","content":"Go on."}`)
	items, _ = create()
	check.Equal(t, "items", len(items), 1)
	check.Equal(t, "conversations", len(a.listed("acme")), 0)
}

// A branch is compacted up to its end, and what comes back is taken as the next input.
func TestCompact(t *testing.T) {
	t.Parallel()
	a := setup{contexts: compacting(), script: answersOf(10)}.serve(t)
	last := a.talk(3)
	n := nodeOf(t, last)
	got, header := a.ask(200, "acme", "POST", "/responses/compact", `{"model":"wood","previous_response_id":"`+last+`"}`)
	items, raw := itemsIn(t, got)
	if end := len(items) - 1; end < 1 || items[end].Type != "compaction" || items[0].Role != "user" || !strings.Contains(got, `"object":"response.compaction"`) || !strings.Contains(got, `"usage":{`) {
		t.Fatalf("%s", got)
	}
	check.Equal(t, "the response", check.Must(named(header))(t), n)
	r := nodeOf(t, a.create(`{"model":"wood","input":[`+strings.Join(raw, ",")+`,{"role":"user","content":"And now?"}]}`).ID)
	a.given("SUMMARY of|And now?", "Answer 2.")
	check.Equal(t, "the message before", a.before(completion{conversation: r.Conversation.String(), head: r.Node.String()}), n.Node.String())
	firstItems := items
	// Once more: the branch is folded already.
	a.tells(200, "POST", "/responses/compact", `{"model":"wood","previous_response_id":"`+last+`"}`, `"id":"`+items[len(items)-1].ID+`"`)
	// The messages are all there, verbatim.
	list, _ := a.ask(200, "acme", "GET", "/responses/"+last+"/input_items?limit=100", "")
	check.That(t, strings.Count(list, "Question ") == 3, "%s", list)
	// What is stored nowhere: a short history, whose text the item has.
	conversations := len(a.listed("acme"))
	got, _ = a.ask(200, "acme", "POST", "/responses/compact", `{"model":"wood","prompt_cache_key":"x","input":[
		{"type":"message","role":"user","content":"We agreed to launch on Tuesday."},{"type":"message","role":"assistant","content":"On Tuesday, then."}]}`)
	items, raw = itemsIn(t, got)
	check.Need(t, len(items) == 2 && items[0].Role == "user" && items[1].Type == "compaction" && len(a.listed("acme")) == conversations, "%s", got)
	a.create(`{"model":"wood","store":false,"input":[` + raw[0] + `,` + raw[1] + `,{"role":"user","content":"When?"}]}`)
	a.given("SUMMARY of 2 messages|We agreed to launch on Tuesday.", "On Tuesday, then.")
	// A trigger at the end of the input asks for the same.
	for _, stream := range []string{"", `"stream":true,`} {
		got, _ = a.ask(200, "acme", "POST", "/responses", `{"model":"wood",`+stream+`"previous_response_id":"`+last+`","input":[{"type":"compaction_trigger"}]}`)
		if !strings.Contains(got, `"output":[{"type":"compaction","id":"`+firstItems[len(firstItems)-1].ID) || stream != "" && !strings.Contains(got, "event: response.output_item.done\n") {
			t.Errorf("%s", got)
		}
	}
}

package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/prompt"
)

// A writer is a summarizer that says what it was given first, and how much.
type writer struct{}

func (writer) Summarize(_ context.Context, in prompt.Input) (prompt.Result, error) {
	first := chat.Read(in.Fold[0].Body).Text()
	return prompt.Result{Text: fmt.Sprintf("SUMMARY of %d messages from %.12q on. %s", len(in.Fold), first, in.Prior), Model: "writer", Taken: len(in.Fold)}, nil
}

func compacting() summarize.Config { return summarize.Config{Summarizer: writer{}} }

const hazel = "Hazel grows again after it was cut to the ground, every ten years or so. "

// talk makes a branch of so many turns, and gives the last response's id.
func (a *api) talk(turns int) (last string) {
	a.t.Helper()
	for i := range turns {
		previous := ""
		if last != "" {
			previous = `,"previous_response_id":"` + last + `"`
		}
		last = a.create(fmt.Sprintf(`{"model":"wood","input":"Question %d. %s"%s}`, i, strings.Repeat(hazel, 12), previous)).ID
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
	Content        json.RawMessage
	Sealed         string `json:"encrypted_content"`
}

func itemsIn(t *testing.T, body string) (id string, items []item, raw []json.RawMessage) {
	t.Helper()
	var r struct {
		ID     string
		Output []json.RawMessage
	}
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	for _, one := range r.Output {
		var i item
		if err := json.Unmarshal(one, &i); err != nil {
			t.Fatal(err)
		}
		items = append(items, i)
	}
	return r.ID, items, r.Output
}

// TestContextManagement holds that past the threshold the branch is compacted, that
// the item comes before the answer, and that all readings have it.
func TestContextManagement(t *testing.T) {
	t.Parallel()
	a := setup{contexts: compacting(), script: answersOf(10)}.serve(t)
	last := a.talk(4)
	body := `{"model":"wood","stream":true,"context_management":[{"type":"compaction","compact_threshold":1000}],"input":"And now?","previous_response_id":"` + last + `"}`
	streamed, _ := a.ask(200, "acme", "POST", "/responses", body)
	begin, item, answer := strings.Index(streamed, "event: response.in_progress"), strings.Index(streamed, `"type":"compaction"`), strings.Index(streamed, "event: response.output_text.delta")
	if begin < 0 || item < begin || answer < item || !strings.Contains(streamed, "event: response.completed") {
		t.Fatalf("%d, %d, %d in %s", begin, item, answer, streamed)
	}
	if got := a.prompt(); !strings.Contains(got, "SUMMARY of") || strings.Contains(got, "Answer 0.") || !strings.HasSuffix(got, `{"role":"user","content":"And now?"}`) {
		t.Errorf("the model was given %s", got)
	}
	id := finalID(t, streamed)
	whole, _ := a.ask(200, "acme", "GET", "/responses/"+id, "")
	if !strings.Contains(final(streamed), whole) {
		t.Errorf("read later it is\n%s\nstreamed\n%s", whole, final(streamed))
	}
	if again, _ := a.ask(200, "acme", "GET", "/responses/"+id+"?stream=true", ""); final(again) != final(streamed) {
		t.Errorf("%s", again)
	}
	if list, _ := a.ask(200, "acme", "GET", "/responses/"+id+"/input_items?limit=100", ""); strings.Contains(list, "compaction") || !strings.Contains(list, "Question 0.") {
		t.Errorf("%s", list)
	}

	// A client that keeps its history drops what stands before the item.
	_, items, raw := itemsIn(t, whole)
	if len(items) != 2 || items[0].Type != "compaction" || !strings.HasPrefix(items[0].ID, "cmp_") {
		t.Fatalf("%s", whole)
	}
	next := `{"model":"wood","input":[` + string(raw[0]) + `,` + string(raw[1]) + `,{"role":"user","content":"Go on."}]}`
	r := a.create(next)
	if got := a.prompt(); !strings.Contains(got, "SUMMARY of") || !strings.Contains(got, "Answer 4.") || !strings.Contains(got, "And now?") || !strings.HasSuffix(got, `{"role":"user","content":"Go on."}`) {
		t.Errorf("the model was given %s", got)
	}
	if one, two := nodeOf(t, id), nodeOf(t, r.ID); one.Conversation != two.Conversation {
		t.Error("it goes on in another conversation")
	}
	// Without the answer's id, and by the item's id alone.
	for _, input := range []string{
		string(raw[0]) + `,{"role":"assistant","content":` + string(marshal(t, text(t, items[1]))) + `},{"role":"user","content":"Go on, then."}`,
		`{"type":"item_reference","id":"` + items[0].ID + `"},{"type":"item_reference","id":"` + items[1].ID + `"},{"role":"user","content":"Go on!"}`,
	} {
		r := a.create(`{"model":"wood","input":[` + input + `]}`)
		if got := a.prompt(); !strings.Contains(got, "SUMMARY of") || !strings.Contains(got, "Answer 4.") || strings.Count(got, "And now?") != 1 {
			t.Errorf("the model was given %s", got)
		}
		m, err := a.store.ForTenant("acme").Message(t.Context(), nodeOf(t, r.ID).Conversation, nodeOf(t, r.ID).Node)
		if err != nil || nodeOf(t, id).Conversation != m.ConversationID {
			t.Errorf("%v", err)
		}
		question, err := a.store.ForTenant("acme").Message(t.Context(), m.ConversationID, m.ParentID)
		if err != nil || question.ParentID != nodeOf(t, id).Node {
			t.Errorf("the question hangs below %s, not below the answer: %v", question.ParentID, err)
		}
	}
	// Another tenant has but the text, as it would have it from a server that is gone.
	theirs, _ := a.ask(200, "other", "POST", "/responses", next)
	if got := a.prompt(); !strings.Contains(got, "SUMMARY of") || strings.Contains(got, "Question 3.") || !strings.Contains(got, "Answer 4.") {
		t.Errorf("the model was given %s", got)
	}
	if theirID, _, _ := itemsIn(t, theirs); nodeOf(t, theirID).Conversation == nodeOf(t, id).Conversation {
		t.Error("it is another tenant's conversation")
	}
	if got, _ := a.ask(400, "other", "POST", "/responses", `{"model":"wood","input":[{"type":"item_reference","id":"`+items[0].ID+`"},{"role":"user","content":"Mine?"}]}`); !strings.Contains(got, "item_not_found") {
		t.Errorf("%s", got)
	}
	// Where the summary is undone, its text stands, and what was said is gone from the item.
	n := openai.NodeID{}
	found, err := openai.ParseItemID(items[0].ID)
	if n = found.NodeID; err != nil {
		t.Fatal(err)
	}
	if _, err := a.store.ForTenant("acme").Prune(t.Context(), n.Conversation, n.Node); err != nil {
		t.Fatal(err)
	}
	if r := a.create(`{"model":"wood","input":[` + string(raw[0]) + `,{"role":"user","content":"And after?"}]}`); nodeOf(t, r.ID).Conversation == n.Conversation || !strings.Contains(a.prompt(), "SUMMARY of") {
		t.Errorf("%+v after %s", r, a.prompt())
	}
	if whole, _ := a.ask(200, "acme", "GET", "/responses/"+id, ""); strings.Contains(whole, "compaction") {
		t.Errorf("what was undone is read: %s", whole)
	}
}

func text(t *testing.T, i item) string {
	t.Helper()
	var parts []struct{ Text string }
	if err := json.Unmarshal(i.Content, &parts); err != nil {
		t.Fatal(err)
	}
	return parts[0].Text
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func nodeOf(t testing.TB, id string) openai.NodeID {
	t.Helper()
	n, err := openai.ParseResponseID(id)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestCompactionUnstored holds the same of a history that nobody keeps, in which a
// call must not be parted from its output.
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
	create := func(history []string) (string, []item, []json.RawMessage) {
		t.Helper()
		got, _ := a.ask(200, "acme", "POST", "/responses", `{"model":"wood","store":false,"context_management":[{"type":"compaction","compact_threshold":1000}],"input":[`+strings.Join(history, ",")+`]}`)
		_, items, raw := itemsIn(t, got)
		return got, items, raw
	}
	_, items, raw := create(history)
	if len(items) != 2 || items[0].Type != "compaction" || items[1].Type != "message" {
		t.Fatalf("%+v", items)
	}
	check := func() {
		t.Helper()
		sent := a.upstream.Requests()
		open := map[string]bool{}
		for i, body := range sent[len(sent)-1].Messages {
			m := chat.Read(body)
			for _, c := range m.Calls {
				open[c.ID] = true
			}
			if m.Role == chat.Tool && !open[m.Answers()] {
				t.Errorf("message %d answers a call that was folded: %s", i, a.prompt())
			}
		}
		if got := a.prompt(); !strings.HasPrefix(got, `{"content":"Mind the hazel.","role":"developer"}`) && !strings.HasPrefix(got, `{"role":"developer","content":"Mind the hazel."}`) || strings.Count(got, "SUMMARY of") != 1 || strings.Contains(got, "Reply 0.") {
			t.Errorf("the model was given %s", got)
		}
	}
	check()
	// All of it comes again with the item behind it: the item stands for what is before.
	next := append(slices.Clone(history), string(raw[0]), string(raw[1]), `{"role":"user","content":"Go on."}`)
	if _, items, _ := create(next); len(items) != 1 {
		t.Errorf("%+v", items)
	}
	check()
	if a.kept() != 0 {
		t.Error("something is kept")
	}
}

// TestCompact holds that a branch is compacted up to its end, and that what comes
// back is taken as the next input.
func TestCompact(t *testing.T) {
	t.Parallel()
	a := setup{contexts: compacting(), script: answersOf(10)}.serve(t)
	last := a.talk(3)
	got, header := a.ask(200, "acme", "POST", "/responses/compact", `{"model":"wood","previous_response_id":"`+last+`"}`)
	_, items, raw := itemsIn(t, got)
	if n := len(items); n < 2 || items[n-1].Type != "compaction" || items[0].Role != "user" || !strings.Contains(got, `"object":"response.compaction"`) {
		t.Fatalf("%s", got)
	}
	if header.Get("X-Coppice-Head-Id") != nodeOf(t, last).Node.String() {
		t.Errorf("%v", header)
	}
	var all []string
	for _, one := range raw {
		all = append(all, string(one))
	}
	r := a.create(`{"model":"wood","input":[` + strings.Join(all, ",") + `,{"role":"user","content":"And now?"}]}`)
	if got := a.prompt(); strings.Count(got, "SUMMARY of") != 1 || strings.Contains(got, "Answer 2.") || !strings.HasSuffix(got, `{"role":"user","content":"And now?"}`) {
		t.Errorf("the model was given %s", got)
	}
	question, err := a.store.ForTenant("acme").Message(t.Context(), nodeOf(t, r.ID).Conversation, nodeOf(t, r.ID).Node)
	if err == nil {
		question, err = a.store.ForTenant("acme").Message(t.Context(), question.ConversationID, question.ParentID)
	}
	if err != nil || question.ParentID != nodeOf(t, last).Node {
		t.Errorf("it goes on below %s: %v", question.ParentID, err)
	}
	// Once more: the branch is folded already.
	again, _ := a.ask(200, "acme", "POST", "/responses/compact", `{"model":"wood","previous_response_id":"`+last+`"}`)
	if _, twice, _ := itemsIn(t, again); twice[len(twice)-1].ID != items[len(items)-1].ID {
		t.Errorf("%s after %s", again, got)
	}
	// The messages are all there, verbatim.
	if list, _ := a.ask(200, "acme", "GET", "/responses/"+last+"/input_items?limit=100", ""); strings.Count(list, "Question ") != 3 {
		t.Errorf("%s", list)
	}
	// What is stored nowhere: a short history, whose text the item has.
	conversations := a.kept()
	got, _ = a.ask(200, "acme", "POST", "/responses/compact", `{"model":"wood","prompt_cache_key":"x","input":[
		{"type":"message","role":"user","content":"We agreed to launch on Tuesday."},{"type":"message","role":"assistant","content":"On Tuesday, then."}]}`)
	_, items, raw = itemsIn(t, got)
	if len(items) != 2 || items[0].Role != "user" || items[1].Type != "compaction" || a.kept() != conversations {
		t.Fatalf("%s", got)
	}
	a.create(`{"model":"wood","store":false,"input":[` + string(raw[0]) + `,` + string(raw[1]) + `,{"role":"user","content":"When?"}]}`)
	if got := a.prompt(); strings.Count(got, "SUMMARY of 2 messages") != 1 || strings.Count(got, "We agreed to launch on Tuesday.") != 1 {
		t.Errorf("the model was given %s", got)
	}
	if got, _ := a.ask(400, "other", "POST", "/responses/compact", `{"model":"wood","previous_response_id":"`+last+`"}`); !strings.Contains(got, "previous_response_not_found") {
		t.Errorf("%s", got)
	}
	if _, err := uuid.Parse(header.Get("X-Coppice-Conversation-Id")); err != nil {
		t.Error(err)
	}
}

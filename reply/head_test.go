package reply

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

const twoCalls = `{"role":"assistant","tool_calls":[
	{"id":"call_1","type":"function","function":{"name":"look_up","arguments":"{}"}},
	{"id":"call_2","type":"function","function":{"name":"look_up","arguments":"{}"}}]}`

func result(id string) string {
	return `{"role":"tool","tool_call_id":"` + id + `","content":"hazel, ash, oak"}`
}

// bodies are messages of a request.
func bodies(all ...string) (out []tree.NewMessage) {
	for _, body := range all {
		out = append(out, tree.NewMessage{Message: chat.Read([]byte(body))})
	}
	return out
}

// What can't be answered is refused before anything is stored.
func TestRefusedRequests(t *testing.T) {
	t.Parallel()
	f := serve(t, nil)
	id, user := f.conversation(t)
	answer := f.say(t, id, user, "assistant", "A wood.")
	calls := f.add(t, id, user, twoCalls)
	one := f.add(t, id, calls, result("call_1"))
	empty := check.Must3(f.store.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	root := uuid.Nil
	before := f.messages(t)
	for name, test := range map[string]struct {
		req         Request
		kind        error
		code, field string
		detail      []string
	}{
		"assistant head":           {Request{HeadID: answer}, fault.Invalid, "head_not_answerable", "head_id", []string{"an assistant message"}},
		"open calls":               {Request{HeadID: one}, fault.Invalid, "open_tool_calls", "head_id", []string{`"call_2"`}},
		"message that leaves open": {Request{HeadID: calls, Messages: bodies(result("call_2"))}, fault.Invalid, "open_tool_calls", "head_id", []string{`"call_1"`}},
		"message of an assistant":  {Request{HeadID: user, Messages: spoken("assistant", "A wood.")}, fault.Invalid, "head_not_answerable", "message.role", []string{"role assistant"}},
		"message of nobody":        {Request{HeadID: user, Messages: spoken("human", "Hm?")}, fault.Invalid, "invalid_role", "message.role", nil},
		"result of no call":        {Request{HeadID: user, Messages: bodies(result("call_1"))}, fault.Invalid, "tool_call_not_found", "message.tool_call_id", nil},
		"result as a root":         {Request{HeadID: user, ParentID: &root, Messages: bodies(result("call_1"))}, fault.Invalid, "tool_call_not_found", "message.tool_call_id", nil},
		"messages that leave open": {Request{HeadID: root, ParentID: &root, Messages: bodies(`{"role":"user","content":"Hm?"}`, twoCalls, result("call_2"))}, fault.Invalid, "open_tool_calls", "head_id", []string{`"call_1"`}},
		"messages of an assistant": {Request{HeadID: user, Messages: bodies(`{"role":"user","content":"Hm?"}`, `{"role":"assistant","content":"A wood."}`)}, fault.Invalid, "head_not_answerable", "messages[1].role", nil},
		"results again":            {Request{HeadID: calls, Messages: bodies(result("call_1"), result("call_2"), result("call_1"))}, fault.Invalid, "tool_call_answered", "messages[2].tool_call_id", nil},
		"absent parent of several": {Request{HeadID: uuid.New(), Messages: bodies(result("x"), `{"role":"user","content":"Hm?"}`)}, fault.NotFound, "parent_not_found", "head_id", nil},
		"too many messages":        {Request{HeadID: user, Messages: make([]tree.NewMessage, tree.MaxChain+1)}, fault.TooLarge, "chain_too_long", "messages", nil},
		"blank instructions":       {Request{HeadID: user, Instructions: " \n"}, fault.Invalid, "empty_content", "instructions", nil},
		"odd instructions":         {Request{HeadID: user, Instructions: "\xff"}, fault.Invalid, "invalid_utf8", "instructions", nil},
		"endless instructions":     {Request{HeadID: user, Instructions: strings.Repeat("trees ", 200_000), Messages: spoken("user", "Hm?")}, fault.TooLarge, "message_too_large", "instructions", nil},
		"long instructions":        {Request{HeadID: user, Instructions: strings.Repeat("trees ", 150_000), Messages: spoken("user", "Hm?")}, fault.Invalid, "invalid_parameter", "instructions", []string{"tokens"}},
		"unknown model":            {Request{HeadID: user, Model: "gpt-5"}, fault.Invalid, "unknown_model", "model", []string{`"offline"`}},
		"absent head":              {Request{HeadID: uuid.New()}, fault.NotFound, "message_not_found", "", nil},
		"absent parent":            {Request{HeadID: uuid.New(), Messages: spoken("user", "Hm?")}, fault.NotFound, "parent_not_found", "head_id", nil},
		"absent parent, named":     {Request{HeadID: user, ParentID: &empty.ID, Messages: spoken("user", "Hm?")}, fault.NotFound, "parent_not_found", "message.parent_id", nil},
		"absent conversation":      {Request{ConversationID: uuid.New(), HeadID: user}, fault.NotFound, "conversation_not_found", "", nil},
		"no message":               {Request{ConversationID: empty.ID}, fault.NotFound, "no_active_head", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			if test.req.ConversationID == uuid.Nil {
				test.req.ConversationID = id
			}
			_, _, err := f.Start(t.Context(), test.req)
			var known *fault.Error
			code, field := "", ""
			if errors.As(err, &known) {
				code, field = known.Code, known.Field
			}
			check.Need(t, errors.Is(err, test.kind) && code == test.code && field == test.field,
				"%v: code %q, field %q; want %q, %q of kind %q", err, code, field, test.code, test.field, test.kind)
			for _, part := range test.detail {
				check.That(t, strings.Contains(err.Error(), part), "the error lacks %q: %v", part, err)
			}
			check.That(t, f.messages(t) == before, "something was stored")
			s := f.Stats()
			check.That(t, s == (Stats{}), "%+v", s)
		})
	}
}

// long makes a branch of many tokens.
func (f *fixture) long(t *testing.T, settings string) (id, head uuid.UUID) {
	t.Helper()
	c := check.Must3(f.store.CreateConversation(t.Context(), tree.NewConversation{Settings: json.RawMessage(settings)}))(t)
	chain := make([]tree.NewMessage, 81)
	for i := range chain {
		role := []string{"user", "assistant"}[i%2]
		chain[i] = spoken(role, llmtest.Text(600))[0]
	}
	stored := check.Must(f.store.AppendChain(t.Context(), c.ID, uuid.Nil, chain))(t)
	return c.ID, stored.Messages[len(stored.Messages)-1].ID
}

const tightSettings = `{"max_context_tokens":6000,"reserved_tokens":1000,"min_fold_tokens":100,"summary_target_tokens":300}`

// A branch over its window is compacted before its reply. Where that fails, the reply says so.
func TestBranchOverItsWindow(t *testing.T) {
	t.Parallel()
	hanging := newGate() // says nothing
	for name, test := range map[string]struct {
		summarizers summarize.Config
		limit       time.Duration
		fits        bool
	}{
		"fits after the digest":    {summarize.Config{}, time.Minute, true},
		"the summarizer fails":     {summarize.Config{Settings: withoutDigest()}, time.Minute, false},
		"the summarizer hangs":     {summarize.Config{Summarizer: summarize.Cascade{Models: []summarize.Model{{Model: hanging, Window: 100_000, Timeout: time.Minute}}}, Settings: withoutDigest()}, 50 * time.Millisecond, false},
		"the digest takes over it": {summarize.Config{Summarizer: summarize.Cascade{Models: []summarize.Model{{Model: hanging, Window: 100_000, Timeout: 50 * time.Millisecond}}}}, time.Minute, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := serve(t, nil)
			contexts := check.Must(summarize.New(f.store, test.summarizers))(t)
			f = serveOn(t, f.pool, func(c *Config) { c.Contexts, c.CompactionTimeout = contexts, test.limit }, &llmtest.Model{})
			id, head := f.long(t, tightSettings)
			h := hear(t, f.ask(t, Request{ConversationID: id, HeadID: head}))
			c := h.started.Context
			check.That(t, h.end.Status == StatusCompleted && c.Complete == test.fits && (c.Summary != nil) == test.fits &&
				c.Usage.ContextTokens <= 5000 && (c.Omitted == 0) == test.fits,
				"%+v\n%+v", h.end, c)
		})
	}
}

// The window is the model's, unless settings say one. A long answer takes room from the context.
func TestWindow(t *testing.T) {
	t.Parallel()
	f := serve(t, nil, &llmtest.Model{ModelName: "gpt-4"}, &llmtest.Model{ModelName: "openai/gpt-4.1"}, &llmtest.Model{ModelName: "my-own"})
	plain, _ := f.conversation(t)
	set := check.Must3(f.store.CreateConversation(t.Context(), tree.NewConversation{Settings: json.RawMessage(`{"max_context_tokens":50000}`)}))(t)
	for _, test := range []struct {
		conversation     uuid.UUID
		model            string
		output           int
		window, reserved int
	}{
		{plain, "gpt-4", 0, 8192, 1024},
		{plain, "gpt-4", 500, 8192, 1024},
		{plain, "gpt-4", 4000, 8192, 4000},
		{plain, "gpt-4", 8192, 8192, 4096},
		{plain, "openai/gpt-4.1", 0, 1_047_576, 16_000},
		{plain, "my-own", 0, 128_000, 16_000},
		{set.ID, "gpt-4", 0, 50_000, 16_000},
		{set.ID, "my-own", 20_000, 50_000, 20_000},
	} {
		h := hear(t, f.ask(t, Request{ConversationID: test.conversation, Model: test.model, MaxOutputTokens: test.output, Messages: spoken("user", "Hm?")}))
		if u := h.started.Context.Usage; u.MaxContextTokens != test.window || u.ReservedTokens != test.reserved || h.started.Model != test.model {
			t.Errorf("%+v: %+v", test, u)
		}
	}
}

// Metadata is the client's to write, too.
func TestEndOfWhatNoReplyMade(t *testing.T) {
	t.Parallel()
	for metadata, want := range map[string]Status{
		``: StatusCompleted, `{}`: StatusCompleted, `{"reply":5}`: StatusCompleted, `{"reply":{"status":"odd"}}`: StatusCompleted,
		`{"reply":{"status":"stopped","usage":"many"}}`: StatusStopped, `{"reply":{"status":"failed","code":"rm -rf"}}`: StatusFailed,
	} {
		e := EndOf(tree.Message{Metadata: json.RawMessage(metadata)})
		check.That(t, e.Status == want && (e.Err != nil) == (want == StatusFailed) && (e.Err == nil || codeOf(e.Err) == "model_bad_response"),
			"%s: %+v", metadata, e)
	}
}

// At a message where a summary was cut, that message is answered, and not the summary.
func TestFoldedHead(t *testing.T) {
	t.Parallel()
	var asked []json.RawMessage
	f := serve(t, nil, &llmtest.Model{Answer: func(_ context.Context, req llm.Request) (llm.Response, error) {
		asked = req.Messages
		return llmtest.Response("Trees that were cut."), nil
	}})
	id, first := f.conversation(t)
	question := f.say(t, id, first, "user", "And what is a pollard?")
	answer := f.say(t, id, question, "assistant", "A tree cut higher up.")
	calls := f.add(t, id, f.say(t, id, answer, "user", "Look it up."), `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"look_up","arguments":"{}"}}]}`)
	result := f.add(t, id, calls, `{"role":"tool","tool_call_id":"a","content":"A tree."}`)
	fold := func(cutoff uuid.UUID, kept ...uuid.UUID) {
		check.Must(f.store.Summaries().Add(t.Context(), id, tree.NewSummary{
			AnchorID: cutoff, Body: spoken("user", "Coppices were asked about.")[0].Message.Raw, Range: tree.SummaryRange{LastSummarizedID: cutoff, KeptIDs: kept, Model: "test"},
		}))(t)
	}
	fold(question, question)
	r := f.ask(t, Request{ConversationID: id, HeadID: question})
	h := hear(t, r)
	check.That(t, len(asked) == 3 && strings.Contains(string(asked[0]), "Coppices were") &&
		string(asked[2]) == string(spoken("user", "And what is a pollard?")[0].Message.Raw),
		"the model was given %s", asked)
	folded, err := f.contexts.Context(t.Context(), id, question, summarize.Window{})
	check.NoError(t, err)
	m := check.Must(f.store.Message(t.Context(), id, question))(t)
	c, want := h.started.Context, folded.Usage.ContextTokens+m.Tokens+tokens.O200k().Count("Understood.")+3
	check.That(t, c.Counts == (summarize.Counts{Folded: 1, Tail: 1}) && c.Usage.ContextTokens == want && c.Complete,
		"%+v, %+v, want %d tokens", c.Counts, c.Usage, want)

	fold(answer)
	_, _, err = f.Start(t.Context(), Request{ConversationID: id, HeadID: answer})
	wantError(t, err, fault.Invalid, "head_not_answerable", "an assistant message")

	// A result alone, without its call, no model would take.
	fold(result)
	e := end(t, f.ask(t, Request{ConversationID: id, HeadID: result}))
	check.That(t, e.Status == StatusCompleted && len(asked) == 1, "%+v, the model was given %s", e, asked)
}

// withoutDigest are the settings of contexts that the offline digest never makes.
func withoutDigest() summarize.Settings {
	s := summarize.Defaults()
	s.Digest = summarize.DigestNever
	return s
}

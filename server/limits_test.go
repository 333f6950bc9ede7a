package server

import (
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/tree"
)

// limited has the store refuse what goes beyond limits.
func limited(l tree.Limits) func(*Config) {
	return func(c *Config) { tree.WithLimits(l)(c.Store) }
}

// TestLimitsAreToldClearly fills a tenant, and holds that what is refused says
// so, that no model is asked for an answer that can't be stored, and that
// everything else goes on.
func TestLimitsAreToldClearly(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewServer(t, llmtest.Answer("A wood."), llmtest.Answer("Another."))
	a := newAPI(t, limited(tree.Limits{Conversations: 2, MessagesPerConversation: 9}), withModels(nil, model(t, fake)))
	plant(t, a.store, "c") // 8 messages
	a.must(201, nil, request{method: "POST", path: "/v1/conversations", body: fill(`{"id":"{{d}}"}`)})
	create := request{method: "POST", path: "/v1/conversations", body: `{}`}
	fork := request{method: "POST", path: fill(conversationPathOf + "/messages/{{c.third}}/fork")}
	for _, r := range []request{create, fork} {
		if p := a.refused(403, CodeTooManyConversations, r); !strings.Contains(p.Detail, "Delete one") {
			t.Error(p.Detail)
		}
	}
	var report importReport
	a.must(200, &report, request{method: "POST", path: "/v1/imports", header: octets, body: `[{"role":"user","content":"x"}]`})
	if report.Added != 0 || len(report.Notes) != 1 || !strings.Contains(report.Notes[0].Detail, "which is the most") {
		t.Errorf("%+v", report)
	}
	a.must(200, nil, request{method: "POST", path: "/v1/conversations", body: fill(`{"id":"{{d}}"}`)})

	send := ask(replyPathOf, `{"message":{"id":"{{m}}",`+userMessage+`}}`)
	a.refused(403, CodeTooManyMessages, send) // there is room for the message, and none for its answer
	if a.listen(t.Context(), ask(replyPathOf, `{}`)).toEnd().name != "reply.completed" {
		t.Error("there was room for one more")
	}
	for _, r := range []request{
		send, ask(replyPathOf, `{}`),
		{method: "POST", path: fill(appendPath), body: fill(message(`"role":"user","content":"x"`))},
		{method: "POST", path: fill(appendPath), body: chainOf(1)},
	} {
		if p := a.refused(403, CodeTooManyMessages, r); !strings.Contains(p.Detail, "Prune") {
			t.Error(p.Detail)
		}
	}
	if n := len(fake.Requests()); n != 1 {
		t.Errorf("the model was asked %d times, want 1", n)
	}
	a.must(200, nil, request{method: "GET", path: fill(conversationPathOf + "/branches/active/context")})
	a.must(200, nil, request{method: "DELETE", path: fill(conversationPathOf + "/messages/{{c.third}}")})
	a.must(201, nil, request{method: "POST", path: fill(appendPath), body: fill(message(`"id":"{{m}}",` + userMessage))})
	// A message that was stored before its answer failed takes no second place.
	a.must(200, nil, request{method: "DELETE", path: fill(conversationPathOf + "/messages/{{c.result}}")})
	send.body = strings.TrimSuffix(send.body.(string), "}") + `,"stream":false}`
	a.must(201, nil, send)
	a.must(204, nil, request{method: "DELETE", path: "/v1/conversations/" + named("d").String()})
	a.must(201, nil, create)
}

// A limit below 0 is a mistake, which the error names.
func TestLimitsBelowZeroAreRefused(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]Config{
		"RequestTimeout": {RequestTimeout: -time.Second},
		"MaxBodyBytes":   {MaxBodyBytes: -1},
		"MaxSearches":    {MaxSearches: -1},
		"RateLimit":      {RateLimit: -1},
	} {
		if err := cfg.defaultLimits(); err == nil || !strings.Contains(err.Error(), name+" is -1") {
			t.Errorf("%s: %v", name, err)
		}
	}
	cfg := Config{FailureLimit: -1} // any number
	if err := cfg.defaultLimits(); err != nil || cfg.MaxReads != DefaultMaxReads {
		t.Errorf("%v, %d reads", err, cfg.MaxReads)
	}
}

package server

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// A scenario is one request that works. {{name}} in a path, a body or a wanted
// text stands for the id of that name; see plant.
type scenario struct {
	name         string
	method, path string
	body         string
	header       map[string]string
	status       int
	want         []string // parts of the answer, or of the headers where they begin with "Name: "
	wantNot      []string
}

const conversationPathOf = "/v1/conversations/{{c}}"

var reads = []scenario{
	{name: "list", method: "GET", path: "/v1/conversations", status: 200,
		want: []string{`{"data":[{"id":"{{c}}","title":"Coppicing"`, `"next_cursor":null}`}},
	{name: "list by a message", method: "GET", path: "/v1/conversations?query=hazel", status: 200, want: []string{`"id":"{{c}}"`}},
	{name: "read", method: "GET", path: conversationPathOf, status: 200,
		want: []string{`"id":"{{c}}"`, `"head_id":"{{c.thanks}}"`, `"metadata":{}`, "Cache-Control: no-store", "Content-Type: application/json"}},
	{name: "upper case id", method: "GET", path: "/v1/conversations/" + strings.ToUpper(fill("{{c}}")), status: 200, want: []string{`"id":"{{c}}"`}},

	{name: "message", method: "GET", path: conversationPathOf + "/messages/{{c.question}}", status: 200,
		want: []string{`"parent_id":"{{c.system}}"`, `"content":"What is a coppice & why <cut> it?"`, `"siblings":{"index":1,"count":1}`, `"depth":1`}},
	{name: "message with a call", method: "GET", path: conversationPathOf + "/messages/{{c.call}}", status: 200, want: []string{`"tool_calls":[{"id":"call_1"`}},
	{name: "get an attachment", method: "GET", path: fmt.Sprintf("/v1/attachments/%x", sha256.Sum256(plantedFile("c"))), status: 200,
		want: []string{"A file of c.", "Content-Type: text/plain; charset=utf-8", "Content-Disposition: attachment; filename=c.txt", "X-Content-Type-Options: nosniff", "Content-Security-Policy: default-src 'none'; sandbox"}},
	{name: "get an attachment that is known", method: "GET", path: fmt.Sprintf("/v1/attachments/%x", sha256.Sum256(plantedFile("c"))), status: 304,
		header: map[string]string{"If-None-Match": fmt.Sprintf(`"%x"`, sha256.Sum256(plantedFile("c")))}, want: []string{"Cache-Control: private, no-cache"}},
	{name: "children", method: "GET", path: conversationPathOf + "/messages/{{c.question}}/children", status: 200,
		want: []string{`"id":"{{c.answer}}"`, `"id":"{{c.other}}"`, `"id":"{{c.third}}"`, `"next_cursor":null`}},
	{name: "roots", method: "GET", path: conversationPathOf + "/roots", status: 200, want: []string{`{"data":[{"id":"{{c.system}}"`, `"siblings":{"index":1,"count":1}`, `"next_cursor":null}`}},
	{name: "newest leaf", method: "GET", path: conversationPathOf + "/messages/{{c.question}}/newest-leaf", status: 200, want: []string{`{"id":"{{c.thanks}}"`}},

	{name: "tree", method: "GET", path: conversationPathOf + "/tree", status: 200,
		want:    []string{`{"conversation_id":"{{c}}","head_id":"{{c.thanks}}","data":[{"id":"{{c.system}}","parent_id":null`, `"kind":"summary"`, `"last_summarized_id":"{{c.question}}"`, `"next_cursor":null}`},
		wantNot: []string{"preview", "Be brief"}},
	{name: "tree with previews", method: "GET", path: conversationPathOf + "/tree?preview=8", status: 200, want: []string{`"preview":"Be brief"`}, wantNot: []string{"Be brief."}},
	{name: "branches", method: "GET", path: conversationPathOf + "/branches", status: 200,
		want: []string{`"id":"{{c.thanks}}"`, `"id":"{{c.third}}"`, `"id":"{{c.result}}"`}, wantNot: []string{"{{c.summary}}"}},
	{name: "transcript", method: "GET", path: conversationPathOf + "/branches/{{c.result}}/transcript", status: 200,
		want: []string{`{"data":[{"id":"{{c.system}}"`, `"next_cursor":null`}, wantNot: []string{`"id":"{{c.answer}}"`}},
	{name: "active transcript", method: "GET", path: conversationPathOf + "/branches/active/transcript?limit=2", status: 200,
		want: []string{`{"data":[{"id":"{{c.answer}}"`, `"next_cursor":"`}, wantNot: []string{"{{c.system}}"}},

	{name: "context", method: "GET", path: conversationPathOf + "/branches/{{c.result}}/context", status: 200,
		want: []string{`{"conversation_id":"{{c}}","head_id":"{{c.result}}","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"What is a coppice & why <cut> it?"},{"role":"assistant","content":"Let me look."}`,
			`"summary":null`, `"counts":{"prefix":1,"kept":0,"folded":0,"tail":4}`, `"complete":true,"omitted_messages":0,"repairs":[],"status":"Token usage: `}},
	{name: "context with a summary", method: "GET", path: conversationPathOf + "/branches/active/context?max_context_tokens=9000&reserved_tokens=1000", status: 200,
		want:    []string{`"head_id":"{{c.thanks}}"`, "Coppicing was explained.", `"summary":{"id":"{{c.summary}}","parent_id":"{{c.thanks}}"`, `"available_tokens":8000,"max_context_tokens":9000,"reserved_tokens":1000`, `"counts":{"prefix":1,"kept":1,"folded":1,"tail":2}`},
		wantNot: []string{"hazel, ash, oak"}},
	{name: "context that is full", method: "GET", path: conversationPathOf + "/branches/{{c.result}}/context?max_context_tokens=30&reserved_tokens=0", status: 200, want: []string{`"complete":false,"omitted_messages":2`}},
	{name: "recall", method: "GET", path: conversationPathOf + "/branches/active/recall?query=Why+is+a+coppice+cut%3F", status: 200,
		want: []string{`"head_id":"{{c.thanks}}","scope":"folded","searched":1,"omitted":0,"data":[{"message":{"id":"{{c.question}}"`, `"excerpt":"What is a coppice & why <cut> it?"`, `"on_branch":true,"folded":true,"before":[],"after":[]}]}`}},
	{name: "recall from all", method: "GET", path: conversationPathOf + "/branches/active/recall?query=hazel&scope=tenant", status: 200, want: []string{`"scope":"tenant","searched":8,`, `"id":"{{c.thanks}}"`}},
	{name: "recall from all, of no branch", method: "GET", path: "/v1/recall?query=hazel&limit=1", status: 200, want: []string{`{"conversation_id":null,"head_id":null,"scope":"tenant","searched":8,`, `"folded":`}},
	{name: "the parts of a context", method: "GET", path: conversationPathOf + "/branches/active/context?parts=true&attachments=names", status: 200, want: []string{`"parts":[{"kind":"prefix","id":"`, `{"kind":"summary","id":"{{c.summary}}","tokens":`}},
	{name: "conversations by the start of an id", method: "GET", path: "/v1/conversations?name={{c}}", status: 200, want: []string{`{"data":[{"id":"{{c}}",`, `"next_cursor":null}`}},
	{name: "explain", method: "GET", path: conversationPathOf + "/branches/active/explain", status: 200,
		want: []string{`"summaries":[{"id":"{{c.summary}}"`, `"applies":true`, `"plan":null,"automatic":false,"reason":"All that isn't folded yet is recent`, `"settings":{"max_context_tokens":128000`}},
	{name: "summary", method: "GET", path: conversationPathOf + "/summaries/{{c.summary}}", status: 200,
		want: []string{`{"id":"{{c.summary}}"`, `"parent_id":"{{c.thanks}}"`, `"text":"Coppicing was explained.","prior":null}`}},
	{name: "usage", method: "GET", path: conversationPathOf + "/usage", status: 200, want: []string{`{"replies":{"calls":0,"prompt_tokens":0,"completion_tokens":0,"reasoning_tokens":0,"cost":null,"models":[]},"compactions":{`, `},"titles":{"calls":0,`}},
	{name: "compactions", method: "GET", path: conversationPathOf + "/compactions?limit=10", status: 200, want: []string{`{"data":[],"next_cursor":null}`}},

	{name: "links", method: "GET", path: conversationPathOf + "/shares", status: 200,
		want: []string{`{"data":[{"id":"{{c.share}}","conversation_id":"{{c}}","head_id":"{{c.thanks}}","summaries":false,"created_at":"`, `"expires_at":null}],"next_cursor":null}`}, wantNot: []string{"token"}},

	{name: "accept an offer", method: "POST", path: "/v1/models", body: `{"base_url":"http://localhost:11434/v1"}`, status: 200, want: []string{`"name":"test-model"`, `"offers":[{"name":"Ollama"`}},
	{name: "presets", method: "GET", path: "/v1/presets", status: 200, want: []string{`{"data":[{"name":"Short","system":"Be brief.","temperature":0.2,"settings":{"keep_ratio":0.1}}],"next_cursor":null}`}},
	{name: "audit", method: "GET", path: "/v1/audit-events?limit=1", status: 200, want: []string{`{"data":[`}},
	{name: "tenants", method: "GET", path: "/v1/tenants", status: 200, want: []string{`{"data":[{"id":"default","conversations":`}},
	{name: "a tenant", method: "GET", path: "/v1/tenants/default", status: 200, want: []string{`{"id":"default","conversations":`, `"keys":0,"updated_at":"`}},
	{name: "a tenant with the size of its messages", method: "GET", path: "/v1/tenants/default?size=true", status: 200, want: []string{`"message_bytes":`}},
	{name: "a tenant's day", method: "GET", path: "/v1/tenants/default/limits", status: 200, want: []string{`"limits":{"requests":0,"messages":0,"bytes":0,"cost":0}}`}},
	{name: "no conversation is so old", method: "DELETE", path: "/v1/conversations?before=2000-01-01T00:00:00Z", status: 200, want: []string{`{"conversations":0,"messages":0}`}},
	{name: "who asks", method: "GET", path: "/v1/me", status: 200, want: []string{`{"tenant_id":"default","user_id":null,"role":"operator","read_only":false,"conversation_id":null,"key_id":null,"sign_out":null}`}},
	{name: "the first key", method: "POST", path: "/v1/keys", body: `{"name":"first"}`, status: 403, want: []string{"coppice keys create"}},
	{name: "no keys", method: "GET", path: "/v1/keys", status: 200, want: []string{`{"data":[],"next_cursor":null}`}},
	{name: "no key", method: "DELETE", path: "/v1/keys/{{absent}}", status: 404},
	{name: "tags", method: "GET", path: "/v1/tags", status: 200, want: []string{`{"data":[],"next_cursor":null}`}},
	{name: "shapes", method: "GET", path: "/v1/conversations?shapes=true&query=coppicing", status: 200, want: []string{`"title":"Coppicing"`, `"shape":{"messages":`}},
	{name: "models", method: "GET", path: "/v1/models", status: 200, want: []string{`{"data":[{"name":"test-model","aliases":["alias"],"max_context_tokens":32768,"replies":true,"summaries":false,"default":true,"price":{"prompt":0.5,"completion":2}}],"next_cursor":null,"offers":[{"name":"Ollama",`}},

	{name: "search", method: "GET", path: "/v1/search?query=hazel", status: 200,
		want: []string{`"head_id":"{{c.result}}"`, `"head_id":"{{c.thanks}}"`, `"title":"Coppicing"`, `"snippet":"`}},
	{name: "ratings", method: "GET", path: "/v1/ratings", status: 200, want: []string{`{"data":[`, `"complete":true}`}},
	{name: "compare", method: "GET", path: conversationPathOf + "/compare?left=active&right={{c.third}}&limit=1", status: 200,
		want: []string{`{"conversation_id":"{{c}}","ancestor_id":"{{c.question}}","left":{"head_id":"{{c.thanks}}","messages":2,`, `"data":[{"id":"{{c.thanks}}"`, `"right":{"head_id":"{{c.third}}","messages":1,"tokens":`, `"replies":{"calls":0,`}},
	{name: "search titles", method: "GET", path: "/v1/search?query=coppic&sort=newest", status: 200, want: []string{`"conversations":[{"id":"{{c}}","title":"Coppicing"`}},

	{name: "export", method: "GET", path: conversationPathOf + "/export", status: 200,
		want: []string{`"type":"conversation"`, `"id":"{{c.summary}}"`, `"head_id":"{{c.thanks}}"`, "Content-Type: application/jsonl", `Content-Disposition: attachment; filename="2`}},
	{name: "export a branch", method: "GET", path: conversationPathOf + "/export?format=markdown&head_id={{c.result}}", status: 200,
		want: []string{"# Coppicing\n", "hazel, ash, oak", "Content-Type: text/markdown"}, wantNot: []string{"Thank you"}},
	{name: "export the active branch", method: "GET", path: conversationPathOf + "/export?format=markdown", status: 200, want: []string{"Thank you, hazel"}, wantNot: []string{"hazel, ash, oak"}},

	{name: "health", method: "GET", path: "/healthz", status: 200, want: []string{`{"status":"ok","version":"test"}` + "\n"}},
	{name: "readiness", method: "GET", path: "/readyz", status: 200, want: []string{`"status":"ok"`}},
	{name: "metrics", method: "GET", path: "/metrics", status: 200, want: []string{"coppice_http_requests_total{", "coppice_http_requests_in_flight 1", "coppice_appends_total{"}},
	{name: "description", method: "GET", path: "/openapi.yaml", status: 200, want: []string{"openapi: 3.1.0", "Content-Type: application/yaml"}},
	{name: "reference", method: "GET", path: "/docs", status: 200, want: []string{"API reference</title>", "Content-Type: text/html"}},
}

var writes = []scenario{
	{name: "share", method: "POST", path: conversationPathOf + "/branches/active/shares", body: `{"summaries":true,"expires_at":"2999-01-01T00:00:00Z"}`, status: 201,
		want: []string{`"head_id":"{{c.thanks}}","summaries":true`, `"expires_at":"2999-01-01T00:00:00Z","token":"cps_`, "Location: /v1/shared/cps_"}},
	{name: "revoke a link", method: "DELETE", path: conversationPathOf + "/shares/{{c.share}}", status: 204},
	{name: "create", method: "POST", path: "/v1/conversations", body: `{"title":"New","metadata":{"a":[1, 2]},"settings":{"keep_ratio":0.3}}`, status: 201,
		want: []string{`"title":"New"`, `"metadata":{"a":[1, 2]}`, `"settings":{"keep_ratio":0.3}`, `"head_id":null`, "Location: /v1/conversations/"}},
	{name: "create with nothing", method: "POST", path: "/v1/conversations", status: 201, want: []string{`"title":""`, `"metadata":{}`}},
	{name: "create with an id", method: "POST", path: "/v1/conversations", body: `{"id":"{{new}}"}`, status: 201, want: []string{`"id":"{{new}}"`, "Location: /v1/conversations/{{new}}"}},
	{name: "create what is there", method: "POST", path: "/v1/conversations", body: `{"id":"{{c}}","title":"Coppicing"}`, status: 200, want: []string{`"head_id":"{{c.thanks}}"`}},
	{name: "rename", method: "PATCH", path: conversationPathOf, body: `{"title":"Wälder 🌳 \ufffd"}`, status: 200, want: []string{"\"title\":\"Wälder 🌳 \ufffd\"", `"head_id":"{{c.thanks}}"`}},
	{name: "switch", method: "PATCH", path: conversationPathOf, body: `{"head_id":"{{c.result}}"}`, status: 200, want: []string{`"head_id":"{{c.result}}"`, `"title":"Coppicing"`}},
	{name: "change nothing of what is there", method: "PATCH", path: conversationPathOf, body: `{}`, status: 200, want: []string{`"title":"Coppicing"`}},
	{name: "replace metadata and settings", method: "PATCH", path: conversationPathOf, body: `{"metadata":{"x":1},"settings":{"keep_ratio":0.1}}`, status: 200, want: []string{`"metadata":{"x":1}`, `"settings":{"keep_ratio":0.1}`}},
	{name: "archive, pin and tag", method: "PATCH", path: conversationPathOf, body: `{"archived":true,"pinned":true,"tags":["wood","two words"]}`, status: 200,
		want: []string{`"archived":true,"pinned":true,"tags":["wood","two words"]`, `"title":"Coppicing"`}},
	{name: "pin a message", method: "PATCH", path: conversationPathOf + "/messages/{{c.third}}", body: `{"pinned":true}`, status: 200, want: []string{`{"id":"{{c.third}}"`, `"pinned":true`}},
	{name: "rate a message", method: "PATCH", path: conversationPathOf + "/messages/{{c.third}}", body: `{"rating":-1,"label":"no","note":"one\ntwo"}`, status: 200, want: []string{`"pinned":false,"rating":-1,"label":"no","note":"one\ntwo","metadata"`}},
	{name: "merge metadata", method: "PATCH", path: conversationPathOf, body: `{"metadata":{"merged":{"x":1},"none":null}}`, status: 200,
		header: map[string]string{"Content-Type": "application/merge-patch+json", "If-Match": "*"}, want: []string{`"merged":{"x":1}`, `ETag: "`}},
	{name: "delete", method: "DELETE", path: conversationPathOf, status: 204},

	{name: "append", method: "POST", path: conversationPathOf + "/messages", body: `{"parent_id":"{{c.thanks}}","role":"assistant","content":"You're welcome <3"}`, status: 201,
		want: []string{`"parent_id":"{{c.thanks}}"`, `"role":"assistant","content":"You're welcome <3"`, `"siblings":{"index":1,"count":1}`, `"depth":4`, "Location: " + conversationPathOf + "/messages/"}},
	{name: "append all there is", method: "POST", path: conversationPathOf + "/messages", status: 201,
		body: `{"id":"{{m}}","parent_id":"{{c.thanks}}","role":"assistant","reasoning_content":"Hm.","content":null,"name":"helper","refusal":"I would rather not.","audio":null,"annotations":[],"pinned":true,"metadata":{"rating": 5},"move_head":false}`,
		want: []string{`{"id":"{{m}}"`, `"content":null,"name":"helper","refusal":"I would rather not.","audio":null,"annotations":[],"reasoning_content":"Hm."`, `"pinned":true`, `"metadata":{"rating": 5}`}},
	{name: "append under the active head", method: "POST", path: conversationPathOf + "/messages", body: `{"role":"assistant","content":"You're welcome."}`, status: 201, want: []string{`"parent_id":"{{c.thanks}}"`}},
	{name: "append a chain under the active head", method: "POST", path: conversationPathOf + "/messages", body: `{"messages":[{"role":"assistant","content":"You're welcome."},{` + userMessage + `}]}`, status: 201, want: []string{`"parent_id":"{{c.thanks}}"`, `"parent_id":"`}},
	{name: "another root", method: "POST", path: conversationPathOf + "/messages", body: `{"parent_id":null,"role":"developer","content":[{"type":"text","text":"Be long."}]}`, status: 201,
		want: []string{`"parent_id":null`, `"content":[{"type":"text","text":"Be long."}]`, `"siblings":{"index":2,"count":2}`}},
	{name: "append what is there", method: "POST", path: conversationPathOf + "/messages", body: `{"id":"{{c.third}}","parent_id":"{{c.question}}","content":"No idea.","role":"assistant"}`, status: 200, want: []string{`{"id":"{{c.third}}"`}},
	{name: "chain", method: "POST", path: conversationPathOf + "/messages", status: 201,
		body: `{"parent_id":"{{c.thanks}}","messages":[
			{"role":"assistant","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]},
			{"id":"{{m2}}","role":"tool","tool_call_id":"x","content":""},
			{"id":"{{m3}}","role":"assistant","content":"Done."}]}`,
		want: []string{`{"data":[{"id":"`, `"parent_id":"{{m2}}"`, `"depth":6`, `"next_cursor":null`, "Location: " + conversationPathOf + "/messages/{{m3}}"}},
	{name: "prune", method: "DELETE", path: conversationPathOf + "/messages/{{c.answer}}", status: 200, want: []string{`{"messages":2,"summaries":1,"head_id":"{{c.third}}"}`}},
	{name: "prune one", method: "DELETE", path: conversationPathOf + "/messages/{{c.answer}}?keep_below=true", status: 200, want: []string{`{"messages":1,"summaries":1,"head_id":"`}, wantNot: []string{"{{c.thanks}}"}},
	{name: "undo a summary", method: "DELETE", path: conversationPathOf + "/messages/{{c.summary}}", status: 200, want: []string{`{"messages":0,"summaries":1,"head_id":"{{c.thanks}}"}`}},
	{name: "fork with alternates", method: "POST", path: conversationPathOf + "/messages/{{c.answer}}/fork?siblings=all", body: `{"id":"{{galt}}"}`, status: 201, want: []string{`"id":"{{galt}}"`}},
	{name: "fork", method: "POST", path: conversationPathOf + "/messages/{{c.thanks}}/fork", status: 201,
		want: []string{`"title":"Coppicing"`, `"forked_from":{"conversation_id":"{{c}}","message_id":"{{c.thanks}}"}`, "Location: /v1/conversations/"}},
	{name: "graft a summary", method: "POST", path: conversationPathOf + "/branches/{{c.thanks}}/grafts", status: 201, body: `{"from_head_id":"{{c.result}}"}`,
		want: []string{`"parent_id":"{{c.thanks}}","role":"user","content":"Between the tags is what another branch`, `hazel, ash, oak`,
			`"grafted":{"from_head_id":"{{c.result}}","ancestor_id":"{{c.question}}","messages":3,"include":"summary","model":"offline-digest","instructions":""}`, "Location: " + conversationPathOf + "/messages/"}},
	{name: "graft in a dry run", method: "POST", path: conversationPathOf + "/branches/active/grafts", status: 200, body: `{"from_head_id":"{{c.third}}","include":"messages","dry_run":true}`,
		want: []string{`| No idea."`, `"grafted":{"from_head_id":"{{c.third}}"`}},
	{name: "graft a text", method: "POST", path: conversationPathOf + "/branches/{{c.thanks}}/grafts", status: 201, body: `{"from_head_id":"{{c.third}}","text":"Nobody knows."}`,
		want: []string{`\nNobody knows.\n`, `"model":""`}},
	{name: "compact", method: "POST", path: "/v1/conversations/{{long}}/branches/active/compactions", status: 201, body: `{"keep_recent_messages":4,"instructions":"Keep the names.","look_ahead":"none"}`,
		want: []string{`"trigger":"request","outcome":"saved"`, `"model":"offline-digest","instructions":"Keep the names."`, `"prior_summary_id":null`, "Location: /v1/conversations/{{long}}/summaries/"}},
	{name: "compact nothing but what is there", method: "POST", path: conversationPathOf + "/branches/{{c.thanks}}/compactions", status: 200,
		want: []string{`"outcome":"nothing_to_do"`, `"summary_id":null`, `"anchor_id":null`, `"attempts":[]`}},
	{name: "remake a summary of what is there", method: "POST", path: conversationPathOf + "/summaries/{{c.summary}}/remake", status: 200, body: `{"instructions":"Keep the trees."}`,
		want: []string{`"remade_id":"{{c.summary}}"`, `"instructions":"Keep the trees."`, `"outcome":"no_gain"`}},
	{name: "remake a summary", method: "POST", path: "/v1/conversations/{{remade}}/summaries/{{remade.summary}}/remake", status: 201,
		want: []string{`"trigger":"request","outcome":"saved"`, `"remade_id":"{{remade.summary}}"`, `"prior_summary_id":null`, "Location: /v1/conversations/{{remade}}/summaries/"}},
	{name: "attach a text", method: "POST", path: "/v1/attachments?name=notes.txt", status: 201, header: map[string]string{"Content-Type": "text/html"}, body: "<b>x</b>",
		want: []string{`"media_type":"text/plain; charset=utf-8","name":"notes.txt","size":8,"width":0,"height":0`, `"part":{"type":"file","file":{"file_id":"coppice:attachment/`, "Location: /v1/attachments/"}},
	{name: "attach again", method: "POST", path: "/v1/attachments?name=other.txt", status: 200, header: map[string]string{"Content-Type": "text/plain"}, body: string(plantedFile("c")),
		want: []string{`"name":"c.txt"`}},
	{name: "import", method: "POST", path: "/v1/imports", status: 200, header: map[string]string{"Content-Type": "application/octet-stream"},
		body: `{"messages":[{"role":"user","content":"Hello"},{"role":"assistant","content":"Hi"}]}`,
		want: []string{`"format":"messages"`, `"conversations":1`, `"messages":2`, `"added":2`, `"notes":[]`}},
	{name: "import in a dry run", method: "POST", path: "/v1/imports?dry_run=true&format=messages", status: 200, header: map[string]string{"Content-Type": "application/json"},
		body: `[{"role":"user","content":"Hello"}]`, want: []string{`"messages":1`, `"added":0`}},
	{name: "fork with a title", method: "POST", path: conversationPathOf + "/messages/{{c.question}}/fork", body: `{"id":"{{f}}","title":"Elsewhere","metadata":{},"settings":{"compaction":"off"}}`, status: 201, want: []string{`"id":"{{f}}","title":"Elsewhere","metadata":{}`, `"settings":{"compaction":"off"}`}},
}

// TestRoutes drives every operation of openapi.yaml.
func TestRoutes(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	shared := newAPI(t)
	plant(t, shared.store, "c")
	for _, s := range slices.Concat(reads, replyReads, eventReads) {
		before := shared.state()
		s.run(t, shared, covered)
		check.Equal(t, "what is stored after "+s.name, shared.state(), before)
	}
	plantLong(t, shared.store, "long", 20)
	plantLong(t, shared.store, "remade", 20)
	check.Must(shared.store.Summaries().Add(t.Context(), named("remade"), tree.NewSummary{
		ID: named("remade.summary"), AnchorID: named("remade.30"), Body: json.RawMessage(`{"role":"user","content":"Plots were looked at."}`),
		Range: tree.SummaryRange{LastSummarizedID: named("remade.28"), Model: "test"},
	}))(t)
	for i, s := range slices.Concat(writes, replyWrites) {
		name := fmt.Sprint("w", i)
		plant(t, shared.store, name)
		before := shared.state()
		s.of(name).run(t, shared, covered)
		same := strings.Contains(s.name, "that is there") || strings.Contains(s.name, "what is there") || strings.Contains(s.name, "dry run")
		changed := shared.state() != before
		check.That(t, changed != same, "%s: that it changed something is %v", s.name, changed)
	}

	_, token, err := shared.store.Shares().Create(t.Context(), named("c"), named("c.thanks"), tree.NewShare{})
	check.NoError(t, err)
	scenario{name: "read a link", method: "GET", path: "/v1/shared/" + token, status: 200, want: []string{`{"title":"Coppicing","created_at":"`, `"summary":null,"data":[{"role":"user","content":"What is a coppice`}}.run(t, shared, covered)

	// A second fork of the same id is the same.
	fork := scenario{name: "fork twice", method: "POST", path: conversationPathOf + "/messages/{{c.thanks}}/fork", body: `{"id":"{{g}}"}`, status: 201}
	fork.run(t, shared, covered)
	fork.status = 200
	fork.run(t, shared, covered)

	// by TestKeysOverREST, TestTenantsOverREST and TestDailyLimits, as they take a key
	covered["createKey 201"], covered["revokeKey 204"], covered["deleteTenant 200"], covered["setTenantLimits 200"] = true, true, true, true

	doc := check.Must(openapi3.NewLoader().LoadFromData(Spec))(t)
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			for status := range operation.Responses.Map() {
				check.That(t, status == "default" || covered[operation.OperationID+" "+status],
					"no scenario has %s %s answer %s", method, path, status)
			}
		}
	}
}

// of is the same scenario about a conversation of another name.
func (s scenario) of(name string) scenario {
	rename := func(text string) string {
		return strings.NewReplacer("{{c}}", "{{"+name+"}}", "{{c.", "{{"+name+".").Replace(text)
	}
	s.path, s.body, s.want = rename(s.path), rename(s.body), slices.Clone(s.want)
	for i := range s.want {
		s.want[i] = rename(s.want[i])
	}
	return s
}

func (s scenario) run(t *testing.T, a *testAPI, covered map[string]bool) {
	t.Run(s.name, func(t *testing.T) {
		a := a.with(t)
		r := request{method: s.method, path: fill(s.path), header: s.header}
		if s.body != "" {
			r.body = fill(s.body)
		}
		res := a.must(s.status, nil, r)
		covered[res.operation+" "+fmt.Sprint(s.status)] = true
		for _, want := range s.want {
			want = fill(want)
			if name, value, ok := strings.Cut(want, ": "); ok && !strings.HasPrefix(want, "{") && !strings.HasPrefix(want, `"`) && name != "openapi" && !strings.Contains(name, "\n") {
				got := res.Header.Get(name)
				check.That(t, strings.HasPrefix(got, value), "header %s is %q, want %q", name, got, value)
				continue
			}
			check.Has(t, "the answer", string(res.body), want)
		}
		for _, not := range s.wantNot {
			check.Lacks(t, "the answer", string(res.body), fill(not))
		}
	})
}

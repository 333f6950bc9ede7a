package server

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// A badInput is a request that gets a problem and changes nothing.
type badInput struct {
	name         string
	method, path string
	body         string
	header       map[string]string
	status       int
	code         Code
	field        string
	detail       []string // parts that say how to repair it
}

func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// chainOf is a chain of n messages.
func chainOf(n int) string {
	return `{"parent_id":null,"messages":[` + strings.TrimSuffix(strings.Repeat(`{"role":"user","content":"x"},`, n), ",") + `]}`
}

// message is an append with these members besides parent_id.
func message(members string) string { return `{"parent_id":"{{c.thanks}}",` + members + `}` }

var octets = map[string]string{"Content-Type": "application/octet-stream"}

const (
	appendPath   = conversationPathOf + "/messages"
	sharesPathOf = conversationPathOf + "/branches/active/shares"
	recallPathOf = conversationPathOf + "/branches/active/recall"
)

var badBodies = []badInput{
	// Not one JSON object.
	{name: "malformed", body: `{"parent_id":null,"role":"user" "content":"x"}`, status: 400, code: CodeInvalidJSON, detail: []string{"at byte 33"}},
	{name: "trailing data", body: `{"parent_id":null,"role":"user","content":"x"} {}`, status: 400, code: CodeInvalidJSON, detail: []string{"after top-level value", "at byte 48"}},
	{name: "byte order mark", body: "\ufeff" + `{"parent_id":null}`, status: 400, code: CodeInvalidJSON},
	{name: "no body", status: 400, code: CodeMissingBody},
	{name: "array", body: `[{"parent_id":null}]`, status: 400, code: CodeWrongType},
	{name: "invalid UTF-8", body: "{\"parent_id\":null,\"role\":\"user\",\"content\":\"\xff\"}", status: 400, code: CodeInvalidUTF8},

	// How it is sent.
	{name: "no content type", body: `{}`, header: map[string]string{"Content-Type": ""}, status: 415, code: CodeUnsupportedMediaType, detail: []string{"application/json"}},
	{name: "form", body: `parent_id=x`, header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, status: 415, code: CodeUnsupportedMediaType},
	{name: "over the limit", body: message(`"role":"user","content":"` + strings.Repeat("x", DefaultMaxBodyBytes) + `"`), status: 413, code: CodeBodyTooLarge, detail: []string{"1 MiB"}},

	// Fields.
	{name: "unknown field", body: message(`"role":"user","content":"x","contents":"y"`), status: 400, code: CodeUnknownField, field: "contents", detail: []string{"content,", "parent_id,", "role,", "tool_calls"}},
	{name: "duplicate field", body: message(`"role":"user","content":"x","content":"y"`), status: 400, code: CodeDuplicateField, field: "content"},
	{name: "duplicate by an escape", body: message(`"role":"user","content":"x","\u0063ontent":"y"`), status: 400, code: CodeDuplicateField, field: "content"},
	{name: "both kinds", body: message(`"role":"user","messages":[]`), status: 400, code: CodeUnknownField, field: "role", detail: []string{"messages, move_head, parent_id"}},
	{name: "no role", body: message(`"content":"x"`), status: 400, code: CodeMissingField, field: "role"},
	{name: "wrong role", body: message(`"role":"human","content":"x"`), status: 400, code: "invalid_role", field: "role", detail: []string{"assistant"}},
	{name: "pinned of another type", body: message(`"role":"user","content":"x","pinned":"yes"`), status: 400, code: CodeWrongType, field: "pinned"},
	{name: "metadata of another type", body: message(`"role":"user","content":"x","metadata":[]`), status: 400, code: CodeWrongType, field: "metadata"},
	{name: "metadata too large", body: message(`"role":"user","content":"x","metadata":{"a":"` + strings.Repeat("x", 1<<16) + `"}`), status: 413, code: "metadata_too_large", field: "metadata"},

	// Content.
	{name: "no content", body: message(`"role":"user"`), status: 400, code: "empty_content", field: "content"},
	{name: "part of another API", body: message(`"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_use","id":"a","name":"f","input":{}}]`), status: 400, code: "invalid_content", field: "content[1].type", detail: []string{"tool_use"}},
	{name: "parts of several messages", body: message(`"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"},{"type":"text","text":"y"}]`), status: 400, code: "invalid_content", field: "content", detail: []string{"2 messages", "in messages"}},
	{name: "part that names no call", body: message(`"role":"user","content":[{"functionResponse":{"name":"f","response":{"y":1}}}]`), status: 400, code: "missing_tool_call_id", field: "content"},
	{name: "NUL in content", body: message(`"role":"user","content":"a\u0000b"`), status: 400, code: CodeInvalidCharacter},
	{name: "NUL in metadata", body: message(`"role":"user","content":"x","metadata":{"a":"\u0000"}`), status: 400, code: CodeInvalidCharacter, field: "metadata"},
	{name: "nesting in content", body: message(`"role":"user","content":[{"type":"file","y":` + deep(64) + `}]`), status: 400, code: CodeTooDeep},
	{name: "unclosed nesting beyond reason", body: strings.Repeat(`{"a":`, 100_000), status: 400, code: CodeTooDeep},

	// Tools.
	{name: "result without a call", body: message(`"role":"tool","tool_call_id":"call_1","content":"x"`), status: 400, code: "tool_call_not_found", field: "tool_call_id"},
	{name: "call without an id", body: message(`"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f","arguments":""}}]`), status: 400, code: "invalid_tool_calls", field: "tool_calls[0].id"},

	// Where it goes.
	{name: "taken id under the active head", body: `{"id":"{{c.third}}","role":"user","content":"x"}`, status: 409, code: CodeIDConflict, field: "id"},
	{name: "absent parent", body: `{"parent_id":"{{absent}}","role":"user","content":"x"}`, status: 404, code: "parent_not_found", field: "parent_id"},
	{name: "parent no UUID", body: `{"parent_id":"root","role":"user","content":"x"}`, status: 400, code: CodeInvalidID, field: "parent_id"},

	// Ids.
	{name: "id no UUID", body: message(`"id":"7","role":"user","content":"x"`), status: 400, code: CodeInvalidID, field: "id"},

	// Chains.
	{name: "empty chain", body: chainOf(0), status: 400, code: "empty_chain", field: "messages"},
	{name: "chain over 1000", body: chainOf(1001), status: 413, code: "chain_too_long", field: "messages"},
	{name: "chain of strings", body: `{"parent_id":null,"messages":["x"]}`, status: 400, code: CodeWrongType, field: "messages[0]"},
	{name: "unknown field in a chain", body: `{"parent_id":null,"messages":[{"role":"user","content":"x"},{"role":"user","content":"x","parent_id":null}]}`, status: 400, code: CodeUnknownField, field: "messages[1].parent_id"},
	{name: "id twice in a chain", body: `{"parent_id":null,"messages":[{"id":"{{m}}","role":"user","content":"x"},{"id":"{{m}}","role":"user","content":"x"}]}`, status: 400, code: "duplicate_id", field: "messages[1].id"},
	{name: "taken id in a chain", body: `{"parent_id":null,"messages":[{"role":"user","content":"x"},{"id":"{{c.third}}","role":"user","content":"x"}]}`, status: 409, code: CodeIDConflict, field: "messages[1].id"},
	{name: "result without a call, behind parts of two messages", body: `{"parent_id":null,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f"}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"x"},{"type":"text","text":"y"}]},{"role":"tool","tool_call_id":"a","content":"x"}]}`, status: 400, code: "tool_call_not_found", field: "messages[2].tool_call_id"},

	// Headers.
	{name: "empty key", body: message(`"role":"user","content":"x"`), header: map[string]string{"Idempotency-Key": "\x01"[:0] + " "}, status: 400, code: CodeInvalidIdempotencyKey, field: "Idempotency-Key"},
	{name: "key beyond ASCII", body: message(`"role":"user","content":"x"`), header: map[string]string{"Idempotency-Key": "schlüssel"}, status: 400, code: CodeInvalidIdempotencyKey, field: "Idempotency-Key"},
}

var badRequests = []badInput{
	// Conversations.
	{name: "title over 1000 bytes", method: "POST", path: "/v1/conversations", body: `{"title":"` + strings.Repeat("é", 501) + `"}`, status: 413, code: "title_too_large", field: "title"},
	{name: "NUL in title", method: "POST", path: "/v1/conversations", body: `{"title":"a\u0000b"}`, status: 400, code: CodeInvalidCharacter, field: "title"},
	{name: "half a surrogate pair beside U+FFFD in title", method: "PATCH", path: conversationPathOf, body: `{"title":"\ufffd\udc00"}`, status: 400, code: CodeInvalidCharacter, field: "title"},
	{name: "title a number", method: "PATCH", path: conversationPathOf, body: `{"title":1}`, status: 400, code: CodeWrongType, field: "title"},
	{name: "head absent", method: "PATCH", path: conversationPathOf, body: `{"title":"x","head_id":"{{absent}}"}`, status: 400, code: "head_not_found", field: "head_id"},
	{name: "unknown field in a change", method: "PATCH", path: conversationPathOf, body: `{"name":"x"}`, status: 400, code: CodeUnknownField, field: "name", detail: []string{"archived, head_id, metadata, owner_id, pinned, settings, tags, title, visibility"}},
	{name: "tags that are no list", method: "PATCH", path: conversationPathOf, body: `{"tags":"wood"}`, status: 400, code: CodeWrongType, field: "tags"},
	{name: "tag with a line", method: "PATCH", path: conversationPathOf, body: `{"tags":["a\nb"]}`, status: 400, code: CodeInvalidCharacter, field: "tags[0]"},
	{name: "tag over 100 bytes", method: "PATCH", path: conversationPathOf, body: `{"tags":["` + strings.Repeat("é", 51) + `"]}`, status: 413, code: "tag_too_large", field: "tags[0]"},
	{name: "list of an empty tag", path: "/v1/conversations?tag=", status: 400, code: CodeInvalidTag, field: "tag"},
	{name: "list of what is archived perhaps", path: "/v1/conversations?archived=1", status: 400, code: CodeInvalidParameter, field: "archived"},
	{name: "pin of a summary", method: "PATCH", path: conversationPathOf + "/messages/{{c.summary}}", body: `{"pinned":true}`, status: 404, code: "message_not_found"},
	{name: "change of nothing of a message", method: "PATCH", path: conversationPathOf + "/messages/{{c.third}}", body: `{}`, status: 400, code: CodeMissingField, detail: []string{"label, note, pinned, rating"}},
	{name: "rating of 5", method: "PATCH", path: conversationPathOf + "/messages/{{c.third}}", body: `{"rating":5}`, status: 400, code: CodeInvalidParameter, field: "rating"},
	{name: "label of two lines", method: "PATCH", path: conversationPathOf + "/messages/{{c.third}}", body: `{"label":"a\nb"}`, status: 400, code: CodeInvalidCharacter, field: "label"},
	{name: "change of another state", method: "PATCH", path: conversationPathOf, body: `{"title":"x"}`, header: map[string]string{"Content-Type": "application/json", "If-Match": `"0", W/"1"`}, status: 412, code: CodePreconditionFailed, field: "If-Match"},
	{name: "append by a merge patch", method: "POST", path: appendPath, body: message(userMessage), header: map[string]string{"Content-Type": "application/merge-patch+json"}, status: 415, code: CodeUnsupportedMediaType},
	{name: "change of what a message says", method: "PATCH", path: conversationPathOf + "/messages/{{c.third}}", body: `{"pinned":true,"content":"x"}`, status: 400, code: CodeUnknownField, field: "content"},

	// Links.
	{name: "link until some day", method: "POST", path: sharesPathOf, body: `{"expires_at":"tomorrow"}`, status: 400, code: CodeInvalidParameter, field: "expires_at"},
	{name: "link until long ago", method: "POST", path: sharesPathOf, body: `{"expires_at":"2001-01-01T00:00:00Z"}`, status: 400, code: CodeInvalidParameter, field: "expires_at"},
	{name: "link after all times", method: "POST", path: sharesPathOf, body: `{"expires_at":"9999-12-31T23:59:59-14:00"}`, status: 400, code: CodeInvalidParameter, field: "expires_at"},

	// Ids in paths.
	{name: "conversation no UUID", method: "GET", path: "/v1/conversations/7", status: 400, code: CodeInvalidID, field: "conversation_id"},
	{name: "conversation with a slash", method: "GET", path: "/v1/conversations/a%2Fb", status: 400, code: CodeInvalidID, field: "conversation_id"},
	{name: "conversation empty", method: "GET", path: "/v1/conversations//tree", status: 400, code: CodeInvalidID, field: "conversation_id"},
	{name: "absent conversation", method: "GET", path: "/v1/conversations/{{absent}}", status: 404, code: "conversation_not_found"},
	{name: "absent message", method: "GET", path: conversationPathOf + "/messages/{{absent}}", status: 404, code: "message_not_found"},
	{name: "summary as a head", method: "GET", path: conversationPathOf + "/branches/{{c.summary}}/transcript", status: 404, code: "message_not_found"},
	{name: "no active head", method: "GET", path: "/v1/conversations/{{empty}}/branches/active/transcript", status: 404, code: "no_active_head"},

	// Events and recall.
	{name: "events after half an event", method: "GET", path: "/v1/events", header: map[string]string{"Last-Event-ID": "1.5"}, status: 400, code: CodeInvalidParameter, field: "Last-Event-ID"},
	{name: "events followed perhaps", method: "GET", path: "/v1/events?follow=maybe", status: 400, code: CodeInvalidParameter, field: "follow"},
	{name: "a name and a limit", method: "GET", path: "/v1/conversations?name=hazel&limit=1", status: 400, code: CodeInvalidParameter, field: "name"},
	{name: "parts of no kind", method: "GET", path: conversationPathOf + "/branches/active/context?parts=all", status: 400, code: CodeInvalidParameter, field: "parts"},
	{name: "recall of nothing", method: "GET", path: recallPathOf, status: 400, code: CodeInvalidParameter, field: "query"},
	{name: "recall of no word", method: "GET", path: recallPathOf + "?query=%3F!", status: 400, code: "empty_query", field: "query"},
	{name: "recall of no tokens", method: "GET", path: recallPathOf + "?query=a&max_tokens=0", status: 400, code: CodeInvalidParameter, field: "max_tokens"},
	{name: "recall in no scope", method: "GET", path: recallPathOf + "?query=a&scope=all", status: 400, code: CodeInvalidParameter, field: "scope"},

	// Query parameters.
	{name: "limit 0", method: "GET", path: "/v1/conversations?limit=0", status: 400, code: CodeInvalidLimit, field: "limit", detail: []string{"1 to 1000"}},
	{name: "cursor no base64", method: "GET", path: "/v1/conversations?cursor=!!", status: 400, code: CodeInvalidCursor, field: "cursor"},
	{name: "cursor out of range", method: "GET", path: "/v1/search?query=x&cursor=f_________8BeXsujyt8wZOmIeCxw_Cq", status: 400, code: CodeInvalidCursor, field: "cursor"},
	{name: "unknown parameter", method: "GET", path: "/v1/conversations?offset=5", status: 400, code: CodeUnknownParameter, field: "offset", detail: []string{"limit, cursor, query"}},
	{name: "unknown parameter of a write", method: "DELETE", path: conversationPathOf + "?force=1", status: 400, code: CodeUnknownParameter, field: "force", detail: []string{"takes none"}},
	{name: "parameter twice", method: "GET", path: "/v1/conversations?limit=1&limit=2", status: 400, code: CodeDuplicateParameter, field: "limit"},
	{name: "query string broken", method: "GET", path: "/v1/conversations?query=%zz", status: 400, code: CodeInvalidQuery},
	{name: "NUL in a query", method: "GET", path: "/v1/conversations?query=a%00b", status: 400, code: CodeInvalidCharacter, field: "query"},
	{name: "invalid UTF-8 in a query", method: "GET", path: "/v1/search?query=%ff", status: 400, code: CodeInvalidUTF8},
	{name: "query over 1000 bytes", method: "GET", path: "/v1/search?query=" + strings.Repeat("x", 1001), status: 413, code: "query_too_large", field: "query"},
	{name: "empty query", method: "GET", path: "/v1/search?query=", status: 400, code: "empty_query", field: "query"},
	{name: "search in no order", method: "GET", path: "/v1/search?query=x&sort=oldest", status: 400, code: CodeInvalidParameter, field: "sort", detail: []string{"relevance"}},
	{name: "search since no time", method: "GET", path: "/v1/search?query=x&since=May", status: 400, code: CodeInvalidParameter, field: "since", detail: []string{"2026-01-31T12:00:00Z"}},
	{name: "search no UUID", method: "GET", path: "/v1/search?query=x&conversation_id=7", status: 400, code: CodeInvalidID, field: "conversation_id"},
	{name: "preview over 200", method: "GET", path: conversationPathOf + "/tree?preview=201", status: 400, code: CodeInvalidPreview, field: "preview"},

	// Files.
	{name: "export in an empty format", method: "GET", path: conversationPathOf + "/export?format=", status: 400, code: CodeInvalidParameter, field: "format", detail: []string{"jsonl, markdown"}},
	{name: "attach nothing", method: "POST", path: "/v1/attachments", header: octets, status: 400, code: CodeEmptyFile},
	{name: "attach half a picture", method: "POST", path: "/v1/attachments", body: "\x89PNG\r\n\x1a\n\x00", header: octets, status: 400, code: "unsupported_attachment", detail: []string{"damaged"}},
	{name: "attach what says nothing clear", method: "POST", path: "/v1/attachments", body: "x", header: map[string]string{"Content-Type": "text/plain; ;"}, status: 415, code: CodeUnsupportedMediaType},
	{name: "import a form", method: "POST", path: "/v1/imports", body: "--x--", header: map[string]string{"Content-Type": "multipart/form-data; boundary=x"}, status: 415, code: CodeUnsupportedMediaType, detail: []string{"not in a form"}},
	{name: "attach what is too large", method: "POST", path: "/v1/attachments", body: strings.Repeat("x", 1<<20+1), header: octets, status: 413, code: CodeAttachmentTooLarge},
	{name: "get no attachment", method: "GET", path: "/v1/attachments/" + strings.Repeat("0", 64), status: 404, code: CodeAttachmentNotFound},
	{name: "name no attachment", method: "POST", path: appendPath, body: `{"parent_id":null,"role":"user","content":[{"type":"file","file":{"file_id":"coppice:attachment/` + strings.Repeat("0", 64) + `"}}]}`, status: 404, code: CodeAttachmentNotFound, field: "content", detail: []string{"/v1/attachments"}},
	{name: "name an attachment oddly", method: "POST", path: appendPath, body: `{"parent_id":null,"role":"user","content":[{"type":"image_url","image_url":{"url":"coppice:attachment/x"}}]}`, status: 400, code: "invalid_attachment", field: "content"},
	{name: "show attachments somehow", method: "GET", path: conversationPathOf + "/branches/active/context?attachments=all", status: 400, code: CodeInvalidParameter, field: "attachments"},
	{name: "import what is compressed", method: "POST", path: "/v1/imports", body: "\x1f\x8b", header: map[string]string{"Content-Type": "application/json", "Content-Encoding": "gzip"}, status: 415, code: CodeUnsupportedMediaType, field: "Content-Encoding", detail: []string{"Content-Encoding"}},
	{name: "export a head as JSONL", method: "GET", path: conversationPathOf + "/export?head_id={{c.third}}", status: 400, code: CodeInvalidParameter, field: "head_id"},
	{name: "import nothing", method: "POST", path: "/v1/imports", body: " ", header: octets, status: 400, code: CodeEmptyFile},
	{name: "import what is no export", method: "POST", path: "/v1/imports", body: "Dear diary", header: octets, status: 422, code: CodeUnknownFormat},
	{name: "import what breaks off", method: "POST", path: "/v1/imports?format=chatgpt", body: `[{"mapping":`, header: octets, status: 400, code: CodeInvalidFile},

	// Paths and methods.
	{name: "no such route", method: "GET", path: "/v1/conversation", status: 404, code: CodeRouteNotFound, detail: []string{"/openapi.yaml"}},
	{name: "trailing slash", method: "GET", path: "/v1/conversations/", status: 404, code: CodeRouteNotFound},
}

// Each bad request gets its problem and changes nothing.
func TestBadInput(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store, "c")
	plant(t, a.store, "d")
	plant(t, a.store.ForTenant("another"), "e")
	a.must(201, nil, request{method: "POST", path: "/v1/conversations", body: fill(`{"id":"{{empty}}"}`)})
	// What badReplies' Idempotency-Key is taken by.
	taken := check.Must(requestFor(a.server).deriveID("taken", named("c").String()+"/replies", 0))(t)
	check.Must(a.store.Append(t.Context(), named("c"), named("c.answer"), tree.NewMessage{ID: taken, Message: chat.Read([]byte(`{"role":"user","content":"x"}`))}, tree.KeepHead()))(t)
	before := a.state()
	for i := range badBodies {
		badBodies[i].method, badBodies[i].path = http.MethodPost, appendPath
	}
	for _, b := range slices.Concat(badBodies, badRequests, badContexts, badReplies) {
		t.Run(b.name, func(t *testing.T) {
			a := a.with(t)
			r := request{method: b.method, path: fill(b.path), header: b.header}
			if b.body != "" {
				r.body = fill(b.body)
			}
			p := a.refused(b.status, b.code, r)
			check.Equal(t, "the field of "+p.Detail, deref(p.Field), b.field)
			check.Has(t, "the detail", p.Detail, b.detail...)
			check.That(t, len(p.Detail) <= 500, "a detail of %d bytes", len(p.Detail))
		})
	}
	check.Equal(t, "what is stored", a.state(), before)
}

// TestLimitsFromBelow sends what is just inside the limits.
func TestLimitsFromBelow(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	plant(t, a.store, "c")
	path := fill(appendPath)
	for name, body := range map[string]string{
		"chain of 1000":       chainOf(1000),
		"nesting of 64":       fill(message(`"role":"user","content":[{"type":"file","y":` + deep(61) + `}]`)),
		"metadata of 64 deep": fill(message(`"role":"user","content":"x","metadata":{"a":` + deep(63) + `}`)),
		"chain nesting 64":    fmt.Sprintf(`{"parent_id":null,"messages":[{"role":"user","content":"x","metadata":{"a":%s}}]}`, deep(63)),
		"escapes":             fill(message(`"\u0072ole":"user","content":"\ud83c\udf33 \\u0000"`)),
	} {
		check.Equal(t, name, a.send(request{method: "POST", path: path, body: body}).StatusCode, 201)
	}
	const around = `{"parent_id":null,"role":"user","content":""}`
	full := fmt.Sprintf(`{"parent_id":null,"role":"user","content":"%s"}`, strings.Repeat("x", DefaultMaxBodyBytes-len(around)))
	a.must(201, nil, request{method: "POST", path: path, body: full})
	over := a.newRequest(request{method: "POST", path: path, body: full + " "})
	over.ContentLength = -1 // a client needn't say it
	res := check.Must(http.DefaultTransport.RoundTrip(over))(t)
	res.Body.Close()
	check.Equal(t, "one byte more, in chunks", res.StatusCode, 413)
	a.must(201, nil, request{method: "POST", path: "/v1/conversations", body: `{"title":"` + strings.Repeat("é", 500) + `"}`})
}

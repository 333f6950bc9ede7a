package server

import "strings"

const (
	replyPathOf   = conversationPathOf + "/branches/{{c.thanks}}/replies"
	userMessage   = `"role":"user","content":"And pollarding?"`
	eventsHeaders = "Content-Type: text/event-stream"
)

var replyReads = []scenario{
	{name: "events of a stored answer", method: "GET", path: conversationPathOf + "/replies/{{c.answer}}/events", status: 200,
		want: []string{eventsHeaders, "Cache-Control: no-store", "X-Accel-Buffering: no", "2147483647\nevent", `{"message":{"id":"{{c.answer}}"`, `"usage":{"prompt_tokens":0,"completion_tokens":0},"finish_reason":null}` + "\n\n"}},
	{name: "events of a stored answer, read on", method: "GET", path: conversationPathOf + "/replies/{{c.answer}}/events", header: map[string]string{"Last-Event-ID": "17"}, status: 200, want: []string{"reply.completed"}},
	{name: "no more events", method: "GET", path: conversationPathOf + "/replies/{{c.answer}}/events", header: map[string]string{"Last-Event-ID": "2147483647"}, status: 204},
	{name: "stop what has ended", method: "DELETE", path: conversationPathOf + "/replies/{{c.answer}}", status: 200, want: []string{`{"status":"completed","message":{"id":"{{c.answer}}"`}},
}

var replyWrites = []scenario{
	{name: "answer", method: "POST", path: replyPathOf, status: 200,
		want: []string{eventsHeaders, "Cache-Control: no-store", "X-Accel-Buffering: no", "Location: " + conversationPathOf + "/replies/", "1\nevent", `{"message_id":"`, `"parent_id":"{{c.thanks}}","model":"offline","context":{"complete":true`, "reply.delta", "reply.completed", "“Thank you, hazel!”"}},
	{name: "answer whole", method: "POST", path: replyPathOf, body: `{"stream":false,"model":"offline","temperature":1,"max_output_tokens":50,"tools":[{"type":"function"}],"tool_choice":"auto"}`, status: 201,
		want: []string{`"parent_id":"{{c.thanks}}"`, `"role":"assistant"`, `"metadata":{"reply":{"status":"completed","model":"offline","finish_reason":"stop"}}`, "Location: " + conversationPathOf + "/messages/"}},
	{name: "send", method: "POST", path: conversationPathOf + "/branches/active/replies", body: `{"id":"{{a}}","message":{"id":"{{m}}",` + userMessage + `,"metadata":{"a":1},"pinned":true}}`, status: 200,
		want: []string{`{"message_id":"{{a}}","parent_id":"{{m}}"`, `"message":{"id":"{{m}}","conversation_id":"{{c}}","parent_id":"{{c.thanks}}"`, "“And pollarding?”", `"pinned":true`}},
	{name: "edit and send", method: "POST", path: replyPathOf, body: `{"stream":false,"message":{"parent_id":"{{c.answer}}",` + userMessage + `}}`, status: 201, want: []string{`"depth":4`, `"siblings":{"index":1,"count":1}`}},
	{name: "send as a root", method: "POST", path: replyPathOf, body: `{"message":{"parent_id":null,` + userMessage + `},"move_head":false}`, status: 200, want: []string{`"parent_id":null`, `"siblings":{"index":2,"count":2}`}},
	{name: "answer a result", method: "POST", path: conversationPathOf + "/branches/{{c.result}}/replies", body: `{"stream":false}`, status: 201, want: []string{`"parent_id":"{{c.result}}"`}},
	{name: "answer what is there", method: "POST", path: conversationPathOf + "/branches/{{c.question}}/replies", body: `{"id":"{{c.answer}}","stream":false}`, status: 200, want: []string{`{"id":"{{c.answer}}"`}},
	{name: "answer what is there in a stream", method: "POST", path: conversationPathOf + "/branches/{{c.question}}/replies", body: `{"id":"{{c.answer}}"}`, status: 200, want: []string{"2147483647\nevent"}},
}

var badReplies = []badInput{
	{name: "answer an answer", method: "POST", path: conversationPathOf + "/branches/{{c.answer}}/replies", body: `{}`, status: 400, code: CodeHeadNotAnswerable, field: "head_id", detail: []string{"an assistant message"}},
	{name: "answer instructions", method: "POST", path: conversationPathOf + "/branches/{{c.system}}/replies", body: `{}`, status: 400, code: CodeHeadNotAnswerable, field: "head_id"},
	{name: "answer a call", method: "POST", path: conversationPathOf + "/branches/{{c.call}}/replies", body: `{}`, status: 400, code: CodeHeadNotAnswerable, field: "head_id"},
	{name: "answer an absent head", method: "POST", path: conversationPathOf + "/branches/{{absent}}/replies", body: `{}`, status: 404, code: CodeMessageNotFound},
	{name: "answer a summary", method: "POST", path: conversationPathOf + "/branches/{{c.summary}}/replies", body: `{}`, status: 404, code: CodeMessageNotFound},
	{name: "answer in an absent conversation", method: "POST", path: "/v1/conversations/{{absent}}/branches/{{c.thanks}}/replies", body: `{}`, status: 404, code: CodeConversationNotFound},
	{name: "answer another conversation's", method: "POST", path: "/v1/conversations/{{d}}/branches/{{c.thanks}}/replies", body: `{}`, status: 404, code: CodeMessageNotFound},
	{name: "answer another tenant's", method: "POST", path: "/v1/conversations/{{e}}/branches/active/replies", body: `{}`, status: 404, code: CodeConversationNotFound},
	{name: "answer nothing", method: "POST", path: "/v1/conversations/{{empty}}/branches/active/replies", body: `{}`, status: 404, code: CodeNoActiveHead},
	{name: "answer no UUID", method: "POST", path: conversationPathOf + "/branches/last/replies", body: `{}`, status: 400, code: CodeInvalidID, field: "head_id"},
	{name: "answer by an unknown model", method: "POST", path: replyPathOf, body: `{"model":"gpt-9"}`, status: 400, code: CodeUnknownModel, field: "model", detail: []string{`"offline"`}},
	{name: "answer with the id of a question", method: "POST", path: replyPathOf, body: `{"id":"{{c.question}}"}`, status: 409, code: CodeIDConflict, field: "id"},
	{name: "answer with the id of another answer", method: "POST", path: replyPathOf, body: `{"id":"{{c.answer}}"}`, status: 409, code: CodeIDConflict, field: "id"},
	{name: "answer with a key that is taken", method: "POST", path: replyPathOf, body: `{}`, header: map[string]string{"Idempotency-Key": "taken"}, status: 409, code: CodeIDConflict, field: "Idempotency-Key"},
	{name: "send with a key that is taken", method: "POST", path: replyPathOf, body: `{"message":{` + userMessage + `}}`, header: map[string]string{"Idempotency-Key": "taken"}, status: 409, code: CodeIDConflict, field: "Idempotency-Key"},
	{name: "answer with no id", method: "POST", path: replyPathOf, body: `{"id":"first"}`, status: 400, code: CodeInvalidID, field: "id"},
	{name: "answer with an empty key", method: "POST", path: replyPathOf, body: `{}`, header: map[string]string{"Content-Type": "application/json", "Idempotency-Key": strings.Repeat("k", 256)}, status: 400, code: CodeInvalidIdempotencyKey, field: "Idempotency-Key"},
	{name: "answer with a member too many", method: "POST", path: replyPathOf, body: `{"messages":[]}`, status: 400, code: CodeUnknownField, field: "messages", detail: []string{"max_output_tokens, message, model"}},
	{name: "message no object", method: "POST", path: replyPathOf, body: `{"message":"Hello"}`, status: 400, code: CodeWrongType, field: "message"},
	{name: "message null", method: "POST", path: replyPathOf, body: `{"message":null}`, status: 400, code: CodeWrongType, field: "message"},
	{name: "message with a member too many", method: "POST", path: replyPathOf, body: `{"message":{"move_head":true,` + userMessage + `}}`, status: 400, code: CodeUnknownField, field: "message.move_head"},
	{name: "message of no role", method: "POST", path: replyPathOf, body: `{"message":{"content":"x"}}`, status: 400, code: CodeMissingField, field: "message.role"},
	{name: "message of a wrong role", method: "POST", path: replyPathOf, body: `{"message":{"role":"human","content":"x"}}`, status: 400, code: CodeInvalidRole, field: "message.role"},
	{name: "message of an assistant", method: "POST", path: replyPathOf, body: `{"message":{"role":"assistant","content":"x"}}`, status: 400, code: CodeHeadNotAnswerable, field: "message.role"},
	{name: "message that is blank", method: "POST", path: replyPathOf, body: `{"message":{"role":"user","content":""}}`, status: 400, code: CodeEmptyContent, field: "message.content"},
	{name: "message under no UUID", method: "POST", path: replyPathOf, body: `{"message":{"parent_id":"",` + userMessage + `}}`, status: 400, code: CodeInvalidID, field: "message.parent_id"},
	{name: "message under an absent one", method: "POST", path: replyPathOf, body: `{"message":{"parent_id":"{{absent}}",` + userMessage + `}}`, status: 404, code: CodeParentNotFound, field: "message.parent_id"},
	{name: "message under an absent head", method: "POST", path: conversationPathOf + "/branches/{{absent}}/replies", body: `{"message":{` + userMessage + `}}`, status: 404, code: CodeParentNotFound, field: "head_id"},
	{name: "message under a summary", method: "POST", path: conversationPathOf + "/branches/{{c.summary}}/replies", body: `{"message":{` + userMessage + `}}`, status: 400, code: CodeParentIsSummary, field: "head_id"},
	{name: "message with an id that is taken", method: "POST", path: replyPathOf, body: `{"message":{"id":"{{c.question}}",` + userMessage + `}}`, status: 409, code: CodeIDConflict, field: "message.id"},
	{name: "message with a NUL", method: "POST", path: replyPathOf, body: `{"message":{"role":"user","content":"a\u0000b"}}`, status: 400, code: CodeInvalidCharacter},
	{name: "tools no array", method: "POST", path: replyPathOf, body: `{"tools":{}}`, status: 400, code: CodeWrongType, field: "tools"},
	{name: "tool no object", method: "POST", path: replyPathOf, body: `{"tools":[{},5]}`, status: 400, code: CodeWrongType, field: "tools[1]"},
	{name: "tool choice a number", method: "POST", path: replyPathOf, body: `{"tool_choice":1}`, status: 400, code: CodeWrongType, field: "tool_choice"},
	{name: "temperature a string", method: "POST", path: replyPathOf, body: `{"temperature":"hot"}`, status: 400, code: CodeWrongType, field: "temperature"},
	{name: "temperature over 2", method: "POST", path: replyPathOf, body: `{"temperature":2.1}`, status: 400, code: CodeInvalidParameter, field: "temperature"},
	{name: "temperature beyond a number", method: "POST", path: replyPathOf, body: `{"temperature":1e999}`, status: 400, code: CodeWrongType, field: "temperature"},
	{name: "no output", method: "POST", path: replyPathOf, body: `{"max_output_tokens":0}`, status: 400, code: CodeInvalidParameter, field: "max_output_tokens"},
	{name: "stream of another type", method: "POST", path: replyPathOf, body: `{"stream":"yes"}`, status: 400, code: CodeWrongType, field: "stream"},
	{name: "events of a question", method: "GET", path: conversationPathOf + "/replies/{{c.question}}/events", status: 404, code: CodeReplyNotFound},
	{name: "events of nothing", method: "GET", path: conversationPathOf + "/replies/{{absent}}/events", status: 404, code: CodeReplyNotFound},
	{name: "events of an absent conversation", method: "GET", path: "/v1/conversations/{{absent}}/replies/{{c.answer}}/events", status: 404, code: CodeConversationNotFound},
	{name: "events of another tenant's", method: "GET", path: "/v1/conversations/{{e}}/replies/{{e.answer}}/events", status: 404, code: CodeConversationNotFound},
	{name: "events after no id", method: "GET", path: conversationPathOf + "/replies/{{c.answer}}/events", header: map[string]string{"Last-Event-ID": "x"}, status: 400, code: CodeInvalidParameter, field: "Last-Event-ID"},
	{name: "events after less than none", method: "GET", path: conversationPathOf + "/replies/{{c.answer}}/events", header: map[string]string{"Last-Event-ID": "-1"}, status: 400, code: CodeInvalidParameter, field: "Last-Event-ID"},
	{name: "stop nothing", method: "DELETE", path: conversationPathOf + "/replies/{{absent}}", status: 404, code: CodeReplyNotFound},
	{name: "stop a question", method: "DELETE", path: conversationPathOf + "/replies/{{c.question}}", status: 404, code: CodeReplyNotFound},
}

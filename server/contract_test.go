package server

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
)

// TestTableIsTheContract holds the table of routes and openapi.yaml equal: operations, parameters,
// bodies, the need of a key, and what streams.
func TestTableIsTheContract(t *testing.T) {
	t.Parallel()
	table := map[string]Route{}
	for _, r := range native {
		at := r.Method + " " + r.Pattern
		_, twice := table[at]
		check.That(t, !twice, "the table has %s twice", at)
		table[at] = r
	}
	for _, described := range specRoutes(t) {
		at := described.method + " " + described.path
		r, ok := table[at]
		if !ok {
			t.Errorf("openapi.yaml has %s, which the table has not", at)
			continue
		}
		delete(table, at)
		var path, query, header []string
		for _, p := range described.parameters {
			switch p.Value.In {
			case openapi3.ParameterInPath:
				path = append(path, p.Value.Name)
			case openapi3.ParameterInQuery:
				query = append(query, p.Value.Name)
			case openapi3.ParameterInHeader:
				header = append(header, p.Value.Name)
			default:
				t.Errorf("%s: a parameter in %s", at, p.Value.In)
			}
		}
		of := newRoute(nil, r)
		check.Equal(t, at+": the path", fmt.Sprint(slices.Sorted(slices.Values(path))), fmt.Sprint(slices.Sorted(slices.Values(of.ids))))
		check.Equal(t, at+": the query", strings.Join(query, " "), r.Query)
		check.Equal(t, at+": the header", strings.Join(header, " "), r.Header)
		keyless := described.spec.Security != nil && len(*described.spec.Security) == 0
		check.Equal(t, at+": that it needs no key", r.May.has(Keyless), keyless)
		checkBody(t, at, r, described.spec.RequestBody)
		checkStreams(t, at, r, described.spec)
	}
	for at := range table {
		t.Errorf("the table has %s, which openapi.yaml has not", at)
	}
}

func checkBody(t *testing.T, at string, r Route, described *openapi3.RequestBodyRef) {
	if described == nil {
		check.That(t, r.Body.make == nil && !r.May.has(Uploads), "%s: the table has a body, and openapi.yaml has none", at)
		return
	}
	media := described.Value.Content["application/json"]
	if media == nil {
		check.Equal(t, at+": that the body is a file", r.May.has(Uploads), true)
		return
	}
	if r.Body.make == nil {
		t.Errorf("%s: openapi.yaml has a body, and the table has none", at)
		return
	}
	check.Equal(t, at+": that the body is required", r.Body.required, described.Value.Required)
	// The name of the body's type is that of its schema.
	name := media.Schema.Ref[strings.LastIndex(media.Schema.Ref, "/")+1:]
	if _, ok := bodies[name]; !ok && name != "Append" { // which is one of two
		t.Errorf("%s: bodies lacks %s", at, name)
	}
}

// checkStreams holds that what is of any size streams. A tree is, though its
// answer looks like any list, and so is an attachment, which is of any type.
func checkStreams(t *testing.T, at string, r Route, described *openapi3.Operation) {
	files, events := r.May.has(Uploads) || slices.Contains([]string{"getTree", "getAttachment"}, described.OperationID), false
	for _, answer := range described.Responses.Map() {
		for kind := range answer.Value.Content {
			files = files || kind == "application/jsonl"
			events = events || kind == "text/event-stream"
		}
	}
	check.Equal(t, at+": that it streams", r.May.has(Streams), files || events)
	check.Equal(t, at+": that it streams events", r.May.has(Follows|Watches), events)
}

// bodies are the objects that requests are decoded into, by their schemas.
var bodies = map[string][]field{
	"NewConversation":    new(newConversation).fields(),
	"ConversationUpdate": new(conversationUpdate).fields(),
	"MessageUpdate":      new(messageUpdate).fields(),
	"NewCompaction":      new(newCompaction).fields(),
	"NewGraft":           new(newGraft).fields(),
	"NewRemake":          new(newRemake).fields(),
	"NewShare":           new(newShare).fields(),
	"NewKey":             new(newKey).fields(),
	"TenantLimits":       new(tenantLimits).fields(),
	"AcceptedOffer":      new(acceptedOffer).fields(),
	"NewMessage":         new(messageBody).fields(new(destination).fields(nil)),
	"NewChain":           append(new(destination).fields(nil), field{"messages", true, nil}),
	"ChainMessage":       new(messageBody).fields(nil),
	"NewReply":           new(newReply).fields(nil, nil),
	"ReplyMessage":       new(replyMessage).fields(),
}

// Every member of openapi.yaml's bodies is read and no other, and the same are required.
func TestBodiesAreTheContract(t *testing.T) {
	t.Parallel()
	doc := check.Must(document())(t)
	for name, fields := range bodies {
		described := membersOf(doc.Components.Schemas[name])
		check.Equal(t, name+": members", len(fields), len(described))
		for _, f := range fields {
			m, ok := described[f.name]
			if !ok {
				t.Errorf("openapi.yaml's %s has no %s", name, f.name)
				continue
			}
			check.Equal(t, fmt.Sprintf("%s: that %s is required", name, f.name), m.required, f.required)
			kind := kindOf(f.into)
			check.That(t, kind == "" || kind == m.kind, "%s: %s is %s in openapi.yaml, %s in its field", name, f.name, m.kind, kind)
		}
	}
}

type specMember struct {
	kind     string
	required bool
}

// membersOf lists the members of an object's schema, those of its parts
// included.
func membersOf(ref *openapi3.SchemaRef) map[string]specMember {
	all := map[string]specMember{}
	for name, p := range ref.Value.Properties {
		kind := ""
		if p.Value.Type != nil {
			kind = cmp.Or(p.Value.Type.Slice()...)
		}
		all[name] = specMember{kind: kind, required: slices.Contains(ref.Value.Required, name)}
	}
	for _, part := range ref.Value.AllOf {
		for name, m := range membersOf(part) {
			all[name] = m
		}
	}
	return all
}

// kindOf is the JSON type that a field takes, "" where its handler looks.
func kindOf(into any) string {
	switch into.(type) {
	case **string:
		return "string"
	case **int:
		return "integer"
	case **float64:
		return "number"
	case **bool:
		return "boolean"
	case *[]string:
		return "array"
	case *jsonObject:
		return "object"
	}
	return ""
}

// Valid tells whether openapi.yaml lists the code.
func (c Code) Valid() bool {
	doc, err := document()
	if err != nil {
		panic(err)
	}
	return slices.Contains(doc.Components.Schemas["Code"].Value.Enum, any(string(c)))
}

// TestEveryCodeIsDocumented holds openapi.yaml's list of codes, which all answers of the tests keep
// to, equal to its table, of which the manual is made, and to the server's own statuses.
func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	doc := check.Must(document())(t)
	table := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^ +\\| `([a-z0-9_]+)` \\| (\\d+) \\| .+ \\|$").FindAllStringSubmatch(string(Spec), -1) {
		table[m[1]] = m[2]
	}
	listed := doc.Components.Schemas["Code"].Value.Enum
	for _, code := range listed {
		check.Equal(t, fmt.Sprint("that the table lacks ", code), table[code.(string)] == "", false)
	}
	check.That(t, len(listed) == len(table) && len(table) >= 60, "openapi.yaml lists %d codes, and its table has %d", len(listed), len(table))
	for code, kind := range kinds {
		check.Equal(t, "the table's status of "+string(code), table[string(code)], fmt.Sprint(answers[kind].status))
	}
}

// SDKs learn of an error, and when they may send the request again, by its status.
func TestRefuseSDKs(t *testing.T) {
	t.Parallel()
	refuse := RefuseSDKs(func(Problem) []byte { return nil })
	for code, test := range map[string]struct {
		kind   fault.Kind
		status int
		retry  bool
	}{
		"unknown_model": {fault.Invalid, 404, false}, "prompt_too_long": {fault.Model, 400, false}, "model_refused": {fault.Model, 400, false},
		"model_rate_limited": {fault.ModelBusy, 429, true}, "model_not_authorized": {fault.Model, 502, false}, "answer_too_long": {fault.Model, 502, false},
		"model_unavailable": {fault.Model, 502, true}, "model_timeout": {fault.ModelTimeout, 504, true}, "database_unavailable": {fault.Unavailable, 503, true},
		"id_conflict": {fault.Conflict, 409, false}, "request_canceled": {fault.Canceled, 499, false}, "rate_limited": {fault.TooMany, 429, true},
	} {
		h := http.Header{}
		status, _ := refuse(ProblemOf(fault.New(test.kind, code, "", "No.")), h)
		check.Equal(t, code, fmt.Sprint(status, h.Get("X-Should-Retry") != "false"), fmt.Sprint(test.status, test.retry))
	}
}

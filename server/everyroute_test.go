package server

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/tree"
)

// A visit is a request to one operation of openapi.yaml. In it, (c) stands for a conversation's id,
// (m) for that of a message in it, (new) for an id of nothing, and (text) for something to say.
type visit struct {
	query, body string
	head        string // for head_id; "" is (m)
	message     string // for message_id: what plant calls it; "" is "third"
	file        bool   // the body is one to import
	status      int    // where the ids are one's own
	takes       bool   // it makes something of the id (c), which can be there but once
	nothing     bool   // it names nothing of a tenant's
}

// visits are requests to every operation, with every id that they can name.
// TestEveryRouteIsVisited holds that none is missing.
var visits = map[string][]visit{
	"createConversation": {
		{status: 201, body: `{"title":"(text)","metadata":{"a":"(text)"}}`, nothing: true},
		{status: 409, body: `{"id":"(c)","title":"(text)"}`, takes: true},
	},
	"listConversations":  {{status: 200, query: "query=(text)", nothing: true}, {status: 200, query: "name=(text)", nothing: true}, {status: 200, nothing: true}, {status: 200, query: "archived=true&tag=wood&shapes=true", nothing: true}},
	"getConversation":    {{status: 200}},
	"updateConversation": {{status: 200, body: `{"archived":true,"pinned":true,"tags":["wood"]}`}, {status: 200, body: `{"title":"(text)","metadata":{"a":"(text)"}}`}, {status: 200, body: `{"head_id":"(m)"}`}},
	"deleteConversation": {{status: 204}},
	"appendMessages": {
		{status: 201, body: `{"parent_id":"(m)","role":"user","content":"(text)","metadata":{"a":"(text)"}}`},
		{status: 201, body: `{"id":"(new)","parent_id":null,"role":"user","content":[{"type":"text","text":"(text)"}]}`},
		{status: 201, body: `{"parent_id":"(m)","messages":[{"id":"(new)","role":"user","content":"(text)"},{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"(text)"}}]},{"role":"tool","tool_call_id":"a","content":"(text)"}]}`},
	},
	"getMessage":    {{status: 200}},
	"updateMessage": {{status: 200, body: `{"pinned":true,"rating":1,"label":"(text)","note":"(text)"}`}},
	"pruneMessage":  {{status: 200}, {status: 200, message: "summary"}, {status: 200, query: "keep_below=true"}},
	"listChildren":  {{status: 200}},
	"listRoots":     {{status: 200}},
	"getNewestLeaf": {{status: 200}},
	"forkMessage": {
		{status: 201, query: "siblings=all"},
		{status: 201, body: `{"title":"(text)"}`},
		{status: 409, body: `{"id":"(c)"}`, takes: true},
	},
	"createAttachment": {{status: 201, file: true, query: "name=(text)", body: "The text of (new): (text)", nothing: true}},
	"getAttachment":    {{status: 200}},
	"getTree":          {{status: 200}, {status: 200, query: "preview=200"}},
	"listBranches":     {{status: 200}},
	"compareBranches":  {{status: 200, query: "left=(m)&right=active"}},
	"getTranscript":    {{status: 200}, {status: 200, head: "active"}},
	"getContext":       {{status: 200}, {status: 200, head: "active", query: "max_context_tokens=9000&attachments=names&parts=true"}},
	"explainBranch":    {{status: 200}, {status: 200, head: "active"}},
	"recallBranch": {
		{status: 200, query: "query=(text)"}, {status: 200, head: "active", query: "query=(text)&scope=branch"},
		{status: 200, query: "query=(text)&scope=conversation"}, {status: 200, query: "query=(text)&scope=tenant"},
	},
	"createCompaction": {{status: 200, body: `{"instructions":"(text)"}`}, {status: 200, head: "active"}},
	"createGraft": {
		{status: 201, head: "active", body: `{"id":"(new)","from_head_id":"(m)","instructions":"(text)"}`},
		{status: 200, head: "active", body: `{"from_head_id":"(m)","include":"messages","dry_run":true}`},
		{status: 400, body: `{"from_head_id":"(m)","text":"(text)"}`},
	},
	"listCompactions":     {{status: 200}},
	"getSummary":          {{status: 200}},
	"remakeSummary":       {{status: 200, body: `{"instructions":"(text)"}`}},
	"getUsage":            {{status: 200}},
	"listAuditEvents":     {{status: 200, nothing: true}},
	"createKey":           {{status: 201, body: `{"name":"(text)","role":"member","user_id":"(text)","read_only":true,"conversation_id":"(c)","expires_at":"2999-01-01T00:00:00Z"}`, nothing: true}},
	"listKeys":            {{status: 200, nothing: true}},
	"revokeKey":           {{status: 404, nothing: true}},
	"listTenants":         {{status: 200, nothing: true}},
	"getTenant":           {{status: 404, nothing: true}},
	"deleteTenant":        {{status: 404, nothing: true}},
	"getTenantLimits":     {{status: 200, nothing: true}},
	"setTenantLimits":     {{status: 200, body: `{"cost":2.5}`, nothing: true}},
	"deleteConversations": {{status: 200, query: "before=2000-01-01T00:00:00Z", nothing: true}},
	"getMe":               {{status: 200, nothing: true}},
	"listTags":            {{status: 200, nothing: true}},
	"listModels":          {{status: 200, nothing: true}},
	"acceptModels":        {{status: 400, body: `{"base_url":"(text)"}`, nothing: true}},
	"getRatings":          {{status: 200, nothing: true}},
	"listPresets":         {{status: 200, nothing: true}},
	"recall":              {{status: 200, query: "query=(text)", nothing: true}},
	"search":              {{status: 200, query: "query=(text)", nothing: true}, {status: 200, query: "query=(text)&conversation_id=(c)"}},
	"exportConversation":  {{status: 200}, {status: 200, query: "format=markdown"}, {status: 200, query: "format=markdown&head_id=(m)"}},
	"createReply": {
		{status: 200, head: "active", body: `{"stream":true,"recall":true}`},
		{status: 200, head: "active", body: `{"id":"(new)","stream":true,"message":{"role":"user","content":"(text)"}}`},
		{status: 200, body: `{"stream":true,"message":{"parent_id":"(m)","role":"user","content":"(text)"}}`},
		{status: 200, body: `{"stream":true,"n":2,"message":{"parent_id":"(m)","role":"user","content":"(text)"}}`},
		{status: 201, head: "active", body: `{"stream":false,"tools":[{"type":"function","function":{"name":"f","description":"(text)"}}]}`},
		{status: 400, head: "active", body: `{"message":{"parent_id":"(m)","role":"assistant","content":"(text)"}}`},
	},
	"listReplies":       {{status: 200}},
	"watchTenant":       {{status: 200, query: "follow=false", nothing: true}},
	"watchConversation": {{status: 200, query: "follow=false"}},
	"readReply":         {{status: 200, message: "answer"}},
	"stopReply":         {{status: 200, message: "answer"}},
	"createImport": {
		{status: 200, file: true, body: `[{"role":"user","content":"(text)"},{"role":"assistant","content":"(text)"}]`, nothing: true},
		{status: 200, file: true, body: `{"type":"conversation","version":1,"id":"(c)","title":"(text)","metadata":{},"settings":{},"head_id":null,"created_at":"2026-01-01T00:00:00Z"}` + "\n" +
			`{"type":"message","id":"(new)","parent_id":null,"created_at":"2026-01-01T00:00:00Z","body":{"role":"user","content":"(text)"}}`, takes: true},
	},
	"createShare":  {{status: 201}, {status: 201, head: "active", body: `{"summaries":true,"expires_at":"2999-01-01T00:00:00Z"}`}},
	"listShares":   {{status: 200}},
	"revokeShare":  {{status: 204}},
	"getShared":    {{status: 404, nothing: true}},
	"getHealth":    {{status: 200, nothing: true}},
	"getReadiness": {{status: 200, nothing: true}},
	"getMetrics":   {{status: 200, nothing: true}},
	"getSpec":      {{status: 200, nothing: true}},
	"getDocs":      {{status: 200, nothing: true}},
}

// whose says what the names in a visit stand for.
type whose struct {
	conversation string // as plant calls it
	messages     string // the conversation whose messages are named
	text         string
}

func (v visit) request(r specRoute, w whose, header map[string]string) request {
	replace := func(s string) string {
		return strings.NewReplacer(
			"(c)", named(w.conversation).String(), "(m)", named(w.messages+".third").String(),
			"(new)", named(w.conversation+" new").String(), "(text)", w.text,
		).Replace(s)
	}
	message, head := v.message, v.head
	if message == "" {
		message = "third"
	}
	if head == "" {
		head = "(m)"
	}
	out := request{method: r.method, header: map[string]string{}, path: strings.NewReplacer(
		"{conversation_id}", named(w.conversation).String(), "{message_id}", named(w.messages+"."+message).String(),
		"{summary_id}", named(w.messages+".summary").String(), "{share_id}", named(w.messages+".share").String(), "{key_id}", named("no key").String(), "{tenant_id}", "nobody", "{token}", "cps_"+base64.RawURLEncoding.EncodeToString(make([]byte, 48)), "{head_id}", replace(head),
		"{hash}", fmt.Sprintf("%x", sha256.Sum256(plantedFile(w.conversation))),
	).Replace(r.path)}
	if v.query != "" {
		out.path += "?" + replace(v.query)
	}
	if v.body != "" {
		out.body = replace(v.body)
	}
	if v.file {
		out.header["Content-Type"] = "application/octet-stream"
	}
	maps.Copy(out.header, header)
	return out
}

// namesMessage tells whether the visit names a message or a summary.
func (v visit) namesMessage(r specRoute) bool {
	return strings.Contains(r.path, "{message_id}") || strings.Contains(r.path, "{summary_id}") || strings.Contains(r.path, "{share_id}") ||
		strings.Contains(r.path, "{head_id}") && v.head == "" || strings.Contains(v.query+v.body, "(m)")
}

// A specRoute is an operation of openapi.yaml.
type specRoute struct {
	method, path, operation string
	spec                    *openapi3.Operation
	parameters              openapi3.Parameters // those of the path included
}

// specRoutes are all operations, in the order of their names.
func specRoutes(t testing.TB) (routes []specRoute) {
	t.Helper()
	doc := check.Must(document())(t)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			routes = append(routes, specRoute{method, path, op.OperationID, op, slices.Concat(item.Parameters, op.Parameters)})
		}
	}
	slices.SortFunc(routes, func(a, b specRoute) int { return strings.Compare(a.operation, b.operation) })
	check.Need(t, len(routes) >= 25, "openapi.yaml has only %d operations", len(routes))
	return routes
}

// idFields are the names of ids that a schema has, at any depth.
func idFields(ref *openapi3.SchemaRef, seen map[*openapi3.Schema]bool) (names []string) {
	if ref == nil || seen[ref.Value] {
		return nil
	}
	seen[ref.Value] = true
	s := ref.Value
	for name, property := range s.Properties {
		if property.Value.Format == "uuid" {
			names = append(names, name)
		}
		names = append(names, idFields(property, seen)...)
	}
	for _, of := range slices.Concat(s.AllOf, s.OneOf, s.AnyOf) {
		names = append(names, idFields(of, seen)...)
	}
	return append(names, idFields(s.Items, seen)...)
}

// TestEveryRouteIsVisited holds that a new operation, or a new id in one, has its visits, and with
// them its place in the tests of tenants and of what may be told.
func TestEveryRouteIsVisited(t *testing.T) {
	t.Parallel()
	left := map[string]bool{}
	for name := range visits {
		left[name] = true
	}
	for _, r := range specRoutes(t) {
		delete(left, r.operation)
		all := visits[r.operation]
		check.That(t, len(all) != 0, "%s %s (%s) has no visit", r.method, r.path, r.operation)
		visited := func(what string, has func(visit) bool) {
			check.That(t, slices.ContainsFunc(all, has), "%s: no visit names %s", r.operation, what)
		}
		for _, p := range r.parameters {
			schema := p.Value.Schema.Value
			if p.Value.In == "query" && (schema.Format == "uuid" || strings.Contains(schema.Pattern, "active")) {
				visited(p.Value.Name, func(v visit) bool { return strings.Contains(v.query, p.Value.Name+"=(") })
			}
			if p.Value.Name == "head_id" && p.Value.In == "path" {
				visited("the active head", func(v visit) bool { return v.head == "active" })
				visited("a head", func(v visit) bool { return v.head == "" })
			}
		}
		if r.spec.RequestBody == nil {
			continue
		}
		if media := r.spec.RequestBody.Value.Content["application/json"]; media != nil {
			for _, field := range idFields(media.Schema, map[*openapi3.Schema]bool{}) {
				visited(field, func(v visit) bool { return strings.Contains(v.body, `"`+field+`":"(`) })
			}
		}
	}
	for name := range left {
		t.Errorf("openapi.yaml has no operation %s", name)
	}
}

// eachVisit calls f with every visit to every operation.
func eachVisit(t *testing.T, f func(t *testing.T, r specRoute, v visit)) {
	t.Helper()
	for _, r := range specRoutes(t) {
		for i, v := range visits[r.operation] {
			t.Run(fmt.Sprint(r.operation, " ", i), func(t *testing.T) { f(t, r, v) })
		}
	}
}

// TestDatabaseGoesAway visits every operation while the database goes away before the first
// message to it, the second, and so on. A read loses the answer instead. Each answer says so.
func TestDatabaseGoesAway(t *testing.T) {
	t.Parallel()
	for _, how := range []dbtest.Breaks{dbtest.BeforeSending, dbtest.AfterSending} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			pool := dbtest.New(t)
			fragile := dbtest.NewFragile(t, pool)
			a := newAPIOn(t, fragile.Pool, func(cfg *Config) { cfg.Keys = keys.New(pool) },
				withModels(func(c *reply.Config) { c.StoreTimeout = 100 * time.Millisecond })) // for which an answer is tried again that can't be stored
			a.keys = keys.New(pool)
			seen := 0
			eachVisit(t, func(t *testing.T, r specRoute, v visit) {
				if reads := r.method == http.MethodGet; reads == (how == dbtest.AfterSending) {
					if seen++; seen%5 > 0 { // one of five is enough for each change
						check.Long(t)
					}
					a.with(t).goesAway(fragile, tree.New(pool), how, r, v)
				}
			})
		})
	}
}

func (a *testAPI) goesAway(fragile *dbtest.Fragile, store *tree.Store, how dbtest.Breaks, r specRoute, v visit) {
	tenant, name, plants := a.t.Name(), "", 0
	secret := a.newOperator(tenant)
	fragile.EachBreak(a.t, how, func() func() dbtest.Answer {
		if name == "" || how == dbtest.BeforeSending { // the visit before may have changed the last one
			plants++
			name = fmt.Sprint(tenant, plants)
			plant(a.t, store.ForTenant(tenant), name)
		}
		return func() dbtest.Answer {
			res, whole := a.answerOf(v.request(r, whose{name, name, "hazel"}, bearer(secret)), fragile)
			good := res.StatusCode == v.status
			away := good && (streams(res.Response) || v.status >= 400 || !whole)
			if res.StatusCode == http.StatusServiceUnavailable {
				p := a.problem(res)
				away = p.Code == CodeDatabaseUnavailable || p.Code == CodeNotReady && r.operation == "getReadiness"
			}
			return dbtest.Answer{Away: away, Good: good && whole, Said: fmt.Sprintf("%d, whole is %t: %.600s", res.StatusCode, whole, res.body)}
		}
	})
}

// answerOf sends a request, and tells whether the answer came to its end. The database is there
// again once a stream has begun, as a reply tries for some time to store its answer.
func (a *testAPI) answerOf(r request, f *dbtest.Fragile) (_ response, whole bool) {
	a.t.Helper()
	res := check.Must(http.DefaultTransport.RoundTrip(a.newRequest(r)))(a.t)
	defer res.Body.Close()
	if streams(res) {
		f.Repair()
	}
	body, err := io.ReadAll(res.Body)
	a.await(res)
	return response{Response: res, body: body}, err == nil
}

func streams(res *http.Response) bool { return res.Header.Get("Content-Type") == "text/event-stream" }

// Every operation is visited while the database is away, so that not even keys are read.
func TestDatabaseIsAway(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	a := newAPIOn(t, pool)
	secret := a.newOperator("own")
	pool.Close()
	eachVisit(t, func(t *testing.T, r specRoute, v visit) {
		a, request := a.with(t), v.request(r, whose{"own", "own", "hazel"}, bearer(secret))
		switch {
		case strings.HasPrefix(r.path, "/v1/"):
			a.refused(http.StatusServiceUnavailable, CodeDatabaseUnavailable, request)
		case r.operation == "getReadiness":
			a.refused(http.StatusServiceUnavailable, CodeNotReady, request)
		default:
			a.must(v.status, nil, request)
		}
	})
}

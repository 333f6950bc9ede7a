package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/quota"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/tree"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// spec is openapi.yaml, checked, with a router over its paths.
var spec = sync.OnceValues(func() (routers.Router, error) {
	doc, err := document()
	if err != nil {
		return nil, err
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, err
	}
	openapi3filter.RegisterBodyDecoder("text/event-stream", decodeEvents)
	for _, kind := range append([]string{"application/yaml", "text/markdown", "text/html", "application/jsonl"}, importTypes[1:]...) { // all but JSON are files
		openapi3filter.RegisterBodyDecoder(kind, openapi3filter.FileBodyDecoder)
	}
	return gorillamux.NewRouter(doc)
})

// A testAPI is a server on a database of its own. Every answer that passes through it is held
// against openapi.yaml, and every request that the server took.
type testAPI struct {
	t      testing.TB
	pool   *pgxpool.Pool
	store  *tree.Store
	keys   *keys.Keys
	server *Server
	url    string
	log    *check.Buffer
	router routers.Router
	ended  *ended
}

// ended are requests whose handler is through: an answer leaves before its line
// in the log is written and its span ends.
type ended struct{ requests sync.Map } // X-Request-Id → ending

type ending struct {
	context.Context
	tell context.CancelFunc
}

func (e *ended) of(id string) ending {
	ctx, tell := context.WithCancel(context.Background())
	found, _ := e.requests.LoadOrStore(id, ending{ctx, tell})
	return found.(ending)
}

// await waits for the end of the request that an answer belongs to.
func (a *testAPI) await(res *http.Response) {
	a.t.Helper()
	select {
	case <-a.ended.of(res.Header.Get("X-Request-Id")).Done():
	case <-time.After(30 * time.Second):
		a.t.Fatal("a request was answered and doesn't end")
	}
}

func newAPI(t testing.TB, changes ...func(*Config)) *testAPI {
	t.Helper()
	return newAPIOn(t, dbtest.New(t), changes...)
}

func newAPIOn(t testing.TB, pool *pgxpool.Pool, changes ...func(*Config)) *testAPI {
	t.Helper()
	a := &testAPI{t: t, pool: pool, store: tree.New(pool), keys: keys.New(pool), log: new(check.Buffer), router: check.Must(spec())(t), ended: new(ended)}
	cfg := Config{
		Store: a.store, Keys: a.keys, Loopback: true, Version: "test",
		Search:         search.New(0, search.WithTimeout(time.Minute)),
		RequestTimeout: 5 * time.Minute, // with the race detector PDFium takes half a minute to be compiled
		Models: func() []Model {
			return []Model{{Name: "test-model", Aliases: []string{"alias"}, MaxContextTokens: 32_768, Replies: true, Default: true, Price: &ModelPrice{0.5, 2}}}
		},
		Quota:   quota.New(pool, slog.New(slog.DiscardHandler)),
		Offers:  offers{},
		Presets: []Preset{{Name: "Short", System: "Be brief.", Temperature: new(0.2), Settings: json.RawMessage(`{"keep_ratio":0.1}`)}},
		Logger:  slog.New(slog.NewJSONHandler(a.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	for _, change := range changes {
		change(&cfg)
	}
	a.server = check.Must(New(cfg))(t)
	a.serve(a.server.HTTPServer(""))
	return a
}

// serve serves the API as cmd/coppice does, with all timeouts of h.
func (a *testAPI) serve(h *http.Server) {
	web := httptest.NewUnstartedServer(nil)
	web.Config = h
	web.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { a.ended.of(w.Header().Get("X-Request-Id")).tell() }()
		a.server.ServeHTTP(w, r)
	})
	web.Start()
	a.t.Cleanup(web.Close)
	a.url = web.URL
}

// unhurried serves the API once more, with a minute for heads and answers. Else net/http closes a
// connection without a word where a busy machine takes longer than a test's short timeout.
func (a *testAPI) unhurried() {
	h := a.server.HTTPServer("")
	h.ReadHeaderTimeout, h.WriteTimeout = time.Minute, time.Minute
	a.serve(h)
}

// A request of a test. Body is a string as it is, or anything else as JSON.
type request struct {
	method, path string
	body         any
	header       map[string]string
	host         string
}

type response struct {
	*http.Response
	body      []byte
	operation string // of openapi.yaml; "" where it has none
}

// send sends a request and holds the exchange against openapi.yaml.
func (a *testAPI) send(r request) response {
	a.t.Helper()
	req := a.newRequest(r)
	res := check.Must(http.DefaultTransport.RoundTrip(req))(a.t)
	defer res.Body.Close()
	out := response{Response: res, body: check.Must(io.ReadAll(res.Body))(a.t)}
	a.await(res)
	out.operation = a.conforms(r, out)
	return out
}

func (a *testAPI) newRequest(r request) *http.Request {
	a.t.Helper()
	var body io.Reader
	switch b := r.body.(type) {
	case nil:
	case string:
		body = strings.NewReader(b)
	default:
		encoded := check.Must(json.Marshal(b))(a.t)
		body = bytes.NewReader(encoded)
	}
	req := check.Must(http.NewRequestWithContext(a.t.Context(), r.method, a.url+r.path, body))(a.t)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.header {
		req.Header.Set(name, value)
		if value == "" {
			req.Header.Del(name)
		}
	}
	req.Host = r.host
	return req
}

// conforms holds an exchange against openapi.yaml and names its operation.
func (a *testAPI) conforms(r request, res response) (operation string) {
	a.t.Helper()
	check.That(a.t, res.Header.Get("X-Request-Id") != "", "%s %s: no X-Request-Id", r.method, r.path)
	req := a.newRequest(r)
	route, params, err := a.router.FindRoute(req)
	if err != nil { // a path or method that there isn't, or HEAD or OPTIONS
		if res.StatusCode >= 400 && r.method != http.MethodHead {
			a.problem(res)
		}
		return ""
	}
	input := &openapi3filter.RequestValidationInput{
		Request: req, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true},
	}
	if res.StatusCode < 400 {
		if err := openapi3filter.ValidateRequest(a.t.Context(), input); err != nil {
			a.t.Errorf("%s %s: the server took a request that openapi.yaml doesn't allow: %v", r.method, r.path, err)
		}
	}
	if res.StatusCode >= 400 {
		problem := [...]string{route.Operation.OperationID, res.Status, string(a.problem(res).Code)}
		if _, held := heldProblems.LoadOrStore(problem, true); held {
			return route.Operation.OperationID // its schema is compiled for each answer, which takes longer than the answer
		}
	}
	output := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: res.StatusCode, Header: res.Header, Options: input.Options,
	}
	output.SetBodyBytes(res.body)
	if err := openapi3filter.ValidateResponse(a.t.Context(), output); err != nil {
		a.t.Errorf("%s %s: the answer is not what openapi.yaml says: %v", r.method, r.path, err)
	}
	return route.Operation.OperationID
}

// heldProblems are those of each operation that were held against openapi.yaml.
var heldProblems sync.Map // operation, status and code → true

// problem reads a problem answer.
func (a *testAPI) problem(res response) Problem {
	a.t.Helper()
	var p Problem
	check.JSON(a.t, string(res.body), &p)
	check.Equal(a.t, "the type of a problem", res.Header.Get("Content-Type"), "application/problem+json")
	if p.Status != res.StatusCode || p.Type != "urn:coppice:problem:"+string(p.Code) || p.Title == "" || p.Detail == "" || !p.Code.Valid() {
		a.t.Errorf("%d: an odd problem: %s", res.StatusCode, res.body)
	}
	return p
}

// must sends a request that should get this status, and decodes the answer
// into out unless that is nil.
func (a *testAPI) must(status int, out any, r request) response {
	a.t.Helper()
	res := a.send(r)
	check.Need(a.t, res.StatusCode == status, "%s %s: status %d, want %d: %s", r.method, r.path, res.StatusCode, status, res.body)
	if out != nil {
		check.JSON(a.t, string(res.body), out)
	}
	return res
}

// tells sends a request that should get this status, and an answer that has these parts.
func (a *testAPI) tells(status int, r request, parts ...string) (answer string) {
	a.t.Helper()
	answer = string(a.must(status, nil, r).body)
	check.Has(a.t, r.method+" "+r.path, answer, parts...)
	return answer
}

// get is a request of a path, in which {{name}} stands for an id.
func get(path string) request { return request{method: "GET", path: fill(path)} }

// as is the request with a key.
func (r request) as(secret string) request {
	r.header = bearer(secret)
	return r
}

// direct has the server answer a client at an address, without a connection.
func (a *testAPI) direct(remote, url string, header map[string]string) *httptest.ResponseRecorder {
	req := httptest.NewRequestWithContext(a.t.Context(), "GET", url, nil)
	req.RemoteAddr = remote
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res := httptest.NewRecorder()
	a.server.ServeHTTP(res, req)
	return res
}

// statusOf sends a request from any goroutine, and reads no answer.
func (a *testAPI) statusOf(req *http.Request) int {
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Error(err)
		return 0
	}
	res.Body.Close()
	return res.StatusCode
}

// refused sends a request that should get this problem.
func (a *testAPI) refused(status int, code Code, r request) Problem {
	a.t.Helper()
	res := a.must(status, nil, r)
	p := a.problem(res)
	check.Equal(a.t, r.method+" "+r.path, p.Code, code)
	return p
}

// state is a digest of all that is stored.
func (a *testAPI) state() string {
	a.t.Helper()
	return dbtest.State(a.t, a.pool, "conversations", "nodes", "shares", "attachments")
}

// named gives the id that a test calls by this name.
func named(name string) uuid.UUID { return uuid.NewSHA1(uuid.NameSpaceOID, []byte(name)) }

// fill replaces {name} in a path or body by the id of that name.
func fill(s string) string {
	var out strings.Builder
	for {
		before, rest, found := strings.Cut(s, "{{")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, after, _ := strings.Cut(rest, "}}")
		out.WriteString(named(name).String())
		s = after
	}
}

// plant stores a small tree in the store's tenant: a conversation of the given
// name, and in it
//
//	system ─ question ┬ answer ─ thanks
//	                  ├ other ─ call ─ result
//	                  └ third
//
// and a summary at thanks with question as its cutoff. The active head is
// thanks.
func plant(t testing.TB, store *tree.Store, conversation string) {
	t.Helper()
	ctx := t.Context()
	id := named(conversation)
	check.Must3(store.CreateConversation(ctx, tree.NewConversation{ID: id, Title: "Coppicing"}))(t)
	for _, m := range []struct{ parent, name, body string }{
		{"", "system", `{"role":"system","content":"Be brief."}`},
		{"system", "question", `{"role":"user","content":"What is a coppice & why <cut> it?"}`},
		{"question", "answer", `{"role":"assistant","content":"A wood that is cut so that it grows again."}`},
		{"question", "other", `{"role":"assistant","content":"Let me look."}`},
		{"other", "call", `{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"look_up","arguments":"{\"word\":\"coppice\"}"}}]}`},
		{"call", "result", `{"role":"tool","tool_call_id":"call_1","content":"hazel, ash, oak"}`},
		{"question", "third", `{"role":"assistant","content":"No idea."}`},
		{"answer", "thanks", `{"role":"user","content":[{"type":"text","text":"Thank you, hazel!"}]}`},
	} {
		parent := uuid.Nil
		if m.parent != "" {
			parent = named(conversation + "." + m.parent)
		}
		check.Must(store.Append(ctx, id, parent, tree.NewMessage{ID: named(conversation + "." + m.name), Message: chat.Read([]byte(m.body))}))(t)
	}
	check.Must3(store.Attachments().Add(ctx, conversation+".txt", plantedFile(conversation)))(t)
	check.Must(store.Summaries().Add(ctx, id, tree.NewSummary{
		ID: named(conversation + ".summary"), AnchorID: named(conversation + ".thanks"), Body: json.RawMessage(`{"role":"user","content":"Coppicing was explained."}`),
		Range: tree.SummaryRange{LastSummarizedID: named(conversation + ".question"), Model: "test", KeptIDs: []uuid.UUID{named(conversation + ".question")}},
	}))(t)
	check.Must3(store.Shares().Create(ctx, id, named(conversation+".thanks"), tree.NewShare{ID: named(conversation + ".share")}))(t)
}

// plantedFile is the attachment that plant stores beside a conversation.
func plantedFile(conversation string) []byte { return []byte("A file of " + conversation + ".") }

// with gives the same server to a subtest.
func (a *testAPI) with(t testing.TB) *testAPI {
	b := *a
	b.t = t
	return &b
}

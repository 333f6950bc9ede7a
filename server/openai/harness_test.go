package openai_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/quota"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai"
	"github.com/coppice-chat/coppice/server/openai/wire"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// A random round takes hundreds of requests, so there are fewer than rapid's 100.
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		_ = checks.Value.Set("30")
	}
	os.Exit(dbtest.Main(m))
}

// A setup says what a server of a test is made of.
type setup struct {
	pool        *pgxpool.Pool // nil for a database of its own
	contexts    summarize.Config
	replies     reply.Config
	recognition openai.Recognition
	timeout     time.Duration // of requests; 0 is unhurried
	script      []llmtest.Behaviour
	offline     bool // the offline model answers
	quota       *quota.Quota
}

// Requests take long on a busy machine with the race detector.
const unhurried = 5 * time.Minute

// often is a server of a name that saves its answers many times a second, so that
// tests don't wait, and takes up those that a killed server of its name left.
func often(server string) reply.Config {
	return reply.Config{ServerID: server, SaveEvery: 20 * time.Millisecond}
}

// An api is a server with OpenAI's API over a model that follows a script.
type api struct {
	setup
	t        testing.TB
	url      string
	upstream *llmtest.Server
	store    *tree.Store
	keys     *keys.Keys
	secrets  map[string]string // by tenant
}

func newAPI(t testing.TB, script ...llmtest.Behaviour) *api {
	t.Helper()
	return setup{script: script}.serve(t)
}

// newAPIWith is newAPI with a setting of its recognition.
func newAPIWith(t testing.TB, recognition openai.Recognition, script ...llmtest.Behaviour) *api {
	t.Helper()
	return setup{recognition: recognition, script: script}.serve(t)
}

// serve starts a server with keys for two tenants.
func (s setup) serve(t testing.TB) *api {
	t.Helper()
	if s.pool == nil {
		s.pool = dbtest.New(t)
	}
	a := &api{setup: s, t: t, upstream: llmtest.NewServer(t, s.script...), store: tree.New(s.pool), keys: keys.New(s.pool), secrets: map[string]string{}}
	for _, tenant := range []string{"acme", "other"} {
		_, secret, err := a.keys.Create(t.Context(), tenant, "")
		check.NoError(t, err)
		a.secrets[tenant] = secret
	}
	a.start()
	return a
}

// again is another server on the same database and model.
func (a *api) again(changes ...func(*setup)) *api {
	other := *a
	for _, change := range changes {
		change(&other.setup)
	}
	other.store = tree.New(other.pool) // as a program of its own has
	other.start()
	return &other
}

// start starts the server. Its model wood has the alias gpt-5.
func (a *api) start() {
	t := a.t
	t.Helper()
	model := check.Must(llm.NewOpenAI(llm.OpenAIConfig{BaseURL: a.upstream.URL(), Model: "wood"}))(t)
	contexts := check.Must(summarize.New(a.store, a.contexts))(t)
	cfg := a.replies
	cfg.Store, cfg.Contexts, cfg.Models, cfg.Aliases = a.store, contexts, []llm.Model{model}, map[string]string{"gpt-5": "wood"}
	if a.offline {
		cfg.Models, cfg.Aliases = []llm.Model{llm.Offline(0)}, nil
	}
	log := new(check.Buffer) // of what broke in the server
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(log.String())
		}
	})
	cfg.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelError}))
	cfg.MaxRunning, cfg.MaxPerTenant = 1000, cmp.Or(cfg.MaxPerTenant, 1000)
	replies := check.Must(reply.New(cfg))(t)
	s := check.Must(server.New(server.Config{
		Store: a.store, Keys: a.keys, Loopback: true, RequestTimeout: cmp.Or(a.timeout, unhurried),
		Contexts: contexts, Replies: replies, APIs: []server.API{a.recognition.API()}, Logger: cfg.Logger, Quota: a.quota,
	}))(t)
	web := httptest.NewUnstartedServer(nil)
	web.Config = s.HTTPServer("") // with all timeouts
	web.Start()
	ctx, stop := context.WithCancel(context.Background())
	var recovering sync.WaitGroup
	if cfg.ServerID != "" {
		recovering.Go(func() { replies.Recover(ctx) })
	}
	t.Cleanup(func() {
		stop()
		recovering.Wait()
		_ = replies.Close(ctx)
		web.Close()
	})
	a.url = web.URL
}

// do sends a request from any goroutine; headers are names and values in turn.
func (a *api) do(ctx context.Context, tenant, method, path, body string, headers ...string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+a.secrets[tenant])
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return http.DefaultClient.Do(req)
}

// send sends a request from any goroutine, and reads the answer.
func (a *api) send(tenant, method, path, body string, headers ...string) (int, string, http.Header) {
	res, err := a.do(a.t.Context(), tenant, method, "/openai/v1"+path, body, headers...)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err.Error(), nil
	}
	return res.StatusCode, string(got), res.Header
}

// ask sends a request that should be answered with a status.
func (a *api) ask(status int, tenant, method, path, body string) (string, http.Header) {
	a.t.Helper()
	is, got, header := a.send(tenant, method, path, body)
	check.Need(a.t, is == status, "%s %s: %d, want %d: %s", method, path, is, status, got)
	return got, header
}

// tells sends a request of acme's that should get this status, and an answer that has these
// parts.
func (a *api) tells(status int, method, path, body string, parts ...string) (got string) {
	a.t.Helper()
	got, _ = a.ask(status, "acme", method, path, body)
	check.Has(a.t, method+" "+path, got, parts...)
	return got
}

// get sends a request of acme's and reads its answer as JSON.
func (a *api) get(method, path, body string) (out map[string]any) {
	a.t.Helper()
	check.JSON(a.t, a.tells(200, method, path, body), &out)
	return out
}

// A response is what a test reads of one.
type response struct {
	ID, Object, Status string
	CreatedAt          int64 `json:"created_at"`
	Output             []struct {
		ID, Type, Name string
		CallID         string `json:"call_id"`
		Content        []struct{ Text string }
	}
	Usage struct {
		Total int `json:"total_tokens"`
	}
}

func (a *api) create(body string) response {
	a.t.Helper()
	return responseIn(a.t, a.tells(200, "POST", "/responses", body))
}

// responseIn reads a response, or the last one of a stream.
func responseIn(t testing.TB, got string) (r response) {
	t.Helper()
	if strings.HasPrefix(got, "event: ") {
		got = strings.TrimSuffix(strings.TrimPrefix(final(got), `"response":`), "}")
	}
	check.JSON(t, got, &r)
	return r
}

// final is what a stream's last event has of its response.
func final(stream string) string {
	at := strings.LastIndex(stream, `"response":`)
	return strings.TrimSuffix(stream[at:], "\n\ndata: [DONE]\n\n")
}

func finalID(t testing.TB, stream string) string {
	t.Helper()
	return responseIn(t, stream).ID
}

// stream sends a request for a stream, and gives the id of the response, and what
// the whole stream is once it has ended.
func (a *api) stream(body string) (id string, whole func() string) {
	a.t.Helper()
	res, err := a.do(a.t.Context(), "acme", "POST", "/openai/v1/responses", body)
	check.NoError(a.t, err)
	n, err := named(res.Header)
	check.Need(a.t, err == nil && res.StatusCode == http.StatusOK, "%d %v", res.StatusCode, err)
	return n.ResponseID(), func() string {
		defer res.Body.Close()
		all, _ := io.ReadAll(res.Body) // up to where it breaks off
		return string(all)
	}
}

// named is the message that an answer's header names.
func named(header http.Header) (n wire.NodeID, err error) {
	if n.Conversation, err = uuid.Parse(header.Get("X-Coppice-Conversation-Id")); err == nil {
		n.Node, err = uuid.Parse(header.Get("X-Coppice-Head-Id"))
	}
	return n, err
}

func nodeOf(t testing.TB, id string) wire.NodeID {
	t.Helper()
	return check.Must(wire.ParseResponseID(id))(t)
}

// status is how far a response is, as a poll tells.
func (a *api) status(id string) string {
	a.t.Helper()
	return a.get("GET", "/responses/"+id, "")["status"].(string)
}

// begunToSpeak waits until a piece of a response that runs is saved.
func (a *api) begunToSpeak(id string) {
	a.t.Helper()
	n := nodeOf(a.t, id)
	check.Eventually(a.t, "a piece of "+id, func() bool {
		_, saves, err := a.store.ForTenant("acme").Replies().Log(a.t.Context(), n.Conversation, n.Node, 0)
		return err == nil && slices.ContainsFunc(saves, func(save tree.ReplyEvents) bool { return bytes.Contains(save.Payload, []byte(`"content":`)) })
	})
}

// prompt is what the model was given last.
func (a *api) prompt() string {
	requests := a.upstream.Requests()
	return joined(requests[len(requests)-1].Messages)
}

func texts(all []json.RawMessage) (out []string) {
	for _, m := range all {
		out = append(out, string(m))
	}
	return out
}

func joined(all []json.RawMessage) string { return strings.Join(texts(all), " ") }

// stored is a conversation of acme's.
func (a *api) stored(id uuid.UUID) tree.Conversation {
	a.t.Helper()
	return check.Must(a.store.ForTenant("acme").Conversation(a.t.Context(), id))(a.t)
}

// shows holds that a conversation's tree has so many messages, and its branch these items.
func (a *api) shows(conversation uuid.UUID, messages int, items string) {
	a.t.Helper()
	check.Equal(a.t, "the items", a.items(wire.ConversationID(conversation), "?order=asc").says(), items)
	check.Equal(a.t, "messages", a.treeSize(conversation), messages)
}

// listed are the conversations of a tenant.
func (a *api) listed(tenant string) []tree.Conversation {
	a.t.Helper()
	list := check.Must(a.store.ForTenant(tenant).Conversations(a.t.Context(), tree.ConversationFilter{}, tree.Paging{Limit: tree.MaxPage}))(a.t)
	return list.Data
}

// everything counts acme's conversations and their messages.
func (a *api) everything() (conversations, messages int) {
	a.t.Helper()
	for _, c := range a.listed("acme") {
		conversations, messages = conversations+1, messages+a.treeSize(c.ID)
	}
	return conversations, messages
}

// treeSize counts the messages of the whole tree.
func (a *api) treeSize(id uuid.UUID) (n int) {
	a.t.Helper()
	for node, err := range a.store.ForTenant("acme").Tree(a.t.Context(), id, 0) {
		check.NoError(a.t, err)
		if node.Kind == tree.KindMessage {
			n++
		}
	}
	return n
}

func (a *api) messages(conversation string) int { return a.treeSize(uuid.MustParse(conversation)) }

func (a *api) message(conversation, id string) tree.Message {
	a.t.Helper()
	return check.Must(a.store.ForTenant("acme").Message(a.t.Context(), uuid.MustParse(conversation), uuid.MustParse(id)))(a.t)
}

func (a *api) setHead(id, head uuid.UUID) {
	a.t.Helper()
	check.Must(a.store.ForTenant("acme").UpdateConversation(a.t.Context(), id, tree.ConversationUpdate{HeadID: head}))(a.t)
}

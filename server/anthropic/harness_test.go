package anthropic_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/anthropic"
	"github.com/coppice-chat/coppice/server/anthropic/wire"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

func TestMain(m *testing.M) { os.Exit(dbtest.Main(m)) }

// A provider is a server that speaks Anthropic's Messages API. It answers as told, or
// else by answerTo.
type provider struct {
	url string

	mu     sync.Mutex
	bodies [][]byte
	header []http.Header
	script []http.HandlerFunc
}

func newProvider(t *testing.T, script ...http.HandlerFunc) *provider {
	t.Helper()
	p := &provider{script: script}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		p.mu.Lock()
		p.bodies, p.header = append(p.bodies, body), append(p.header, r.Header)
		n, answer := len(p.bodies), http.HandlerFunc(nil)
		if len(p.script) > 0 {
			answer, p.script = p.script[0], p.script[1:]
		}
		p.mu.Unlock()
		if answer != nil {
			answer(w, r)
			return
		}
		answerTo(w, body, n)
	}))
	t.Cleanup(web.Close)
	p.url = web.URL
	return p
}

// last is the last request that came.
func (p *provider) last() (body string, header http.Header) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.bodies)
	return string(p.bodies[n-1]), p.header[n-1]
}

// answerTo is an answer with signed thinking, and with a call where the question asks to
// run something.
func answerTo(w http.ResponseWriter, body []byte, n int) {
	var req struct {
		Stream   bool
		Messages []struct{ Content json.RawMessage }
	}
	_ = json.Unmarshal(body, &req)
	blocks := fmt.Sprintf(`{"type":"thinking","thinking":"Thought %d.","signature":"c2ln%d"},{"type":"text","text":"Answer %d."}`, n, n, n)
	stop := "end_turn"
	if asked := string(req.Messages[len(req.Messages)-1].Content); strings.Contains(asked, "run") {
		blocks += fmt.Sprintf(`,{"type":"tool_use","id":"toolu_%d","name":"Bash","input":{"command": "echo"}}`, n)
		stop = "tool_use"
	}
	message := fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","model":"claude-x","content":[%s],"stop_reason":%q,"usage":{"input_tokens":4,"cache_read_input_tokens":3,"output_tokens":2}}`, n, blocks, stop)
	if !req.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, message)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	var all []json.RawMessage
	_ = json.Unmarshal([]byte("["+blocks+"]"), &all)
	s := wire.NewStream(wire.Answer{ID: "msg_up", Model: "claude-x"})
	finish := map[string]string{"end_turn": "stop", "tool_use": "tool_calls"}[stop]
	_, _ = w.Write(s.End(s.Begin(nil), wire.Answer{Blocks: all, FinishReason: finish}))
}

// An api is a server with Anthropic's API. Its own model is wood.
type api struct {
	t        *testing.T
	pool     *pgxpool.Pool
	store    *tree.Store
	config   anthropic.Config
	contexts summarize.Config
	model    *llmtest.Server
	url, key string
}

func newAPI(t *testing.T, upstream *provider) *api {
	t.Helper()
	a := &api{t: t, pool: dbtest.New(t), model: llmtest.NewServer(t)}
	a.store = tree.New(a.pool)
	if upstream != nil {
		a.config = anthropic.Config{BaseURL: upstream.url, APIKey: "sk-ant"}
	}
	var err error
	_, a.key, err = keys.New(a.pool).Create(t.Context(), tree.DefaultTenant, "")
	check.NoError(t, err)
	a.start()
	return a
}

// start starts a server, or another one in its place.
func (a *api) start() {
	t := a.t
	t.Helper()
	model := check.Must(llm.NewOpenAI(llm.OpenAIConfig{BaseURL: a.model.URL(), Model: "wood"}))(t)
	contexts := check.Must(summarize.New(a.store, a.contexts))(t)
	replies := check.Must(reply.New(reply.Config{Store: a.store, Contexts: contexts, Models: []llm.Model{model}, Aliases: map[string]string{"tree": "wood"}}))(t)
	s := check.Must(server.New(server.Config{
		Store: a.store, Keys: keys.New(a.pool), Loopback: true, RequestTimeout: time.Minute, Contexts: contexts, Replies: replies, APIs: []server.API{check.Must(a.config.API())(t)},
	}))(t)
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		_ = replies.Close(context.Background())
		web.Close()
	})
	a.url = web.URL
}

// do sends a request. Headers are names and values by turns.
func (a *api) do(ctx context.Context, method, path, body string, headers ...string) (*http.Response, error) {
	a.t.Helper()
	req := check.Must(http.NewRequestWithContext(ctx, method, a.url+"/anthropic/v1/"+path, strings.NewReader(body)))(a.t)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", a.key)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return http.DefaultClient.Do(req)
}

// send sends a request, and reads the answer.
func (a *api) send(method, path, body string, headers ...string) (status int, got string, header http.Header) {
	a.t.Helper()
	res := check.Must(a.do(a.t.Context(), method, path, body, headers...))(a.t)
	defer res.Body.Close()
	all := check.Must(io.ReadAll(res.Body))(a.t)
	return res.StatusCode, string(all), res.Header
}

// tells holds that a request gets a status, and an answer that has this.
func (a *api) tells(status int, method, path, body, want string, headers ...string) {
	a.t.Helper()
	is, got, _ := a.send(method, path, body, headers...)
	check.Equal(a.t, path+" "+body, is, status)
	check.Has(a.t, path+" "+body, got, want)
}

// ask is send of a message that should be answered.
func (a *api) ask(body string, headers ...string) (got string, header http.Header) {
	a.t.Helper()
	status, got, header := a.send("POST", "messages", body, headers...)
	check.Need(a.t, status == http.StatusOK, "%d: %s", status, got)
	return got, header
}

// branches are the stored conversations' branches, each message in a line.
func (a *api) branches() (conversations int, branches []string) {
	a.t.Helper()
	list := check.Must(a.store.Conversations(a.t.Context(), tree.ConversationFilter{}, tree.Paging{}))(a.t)
	for _, c := range list.Data {
		leaves := check.Must(a.store.Branches(a.t.Context(), c.ID, tree.Paging{}))(a.t)
		for _, leaf := range leaves.Data {
			var lines []string
			for m, err := range a.store.Branch(a.t.Context(), c.ID, leaf.ID, 1000) {
				check.NoError(a.t, err)
				lines = append(lines, string(m.Body))
			}
			branches = append(branches, strings.Join(lines, "\n"))
		}
	}
	return len(list.Data), branches
}

package mcp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/mcp"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// An api is a server with the API.
type api struct {
	t        *testing.T
	pool     *pgxpool.Pool
	url      string
	handler  http.Handler
	store    *tree.Store
	contexts *summarize.Service
	keys     *keys.Keys
	log      *check.Buffer
}

func newAPI(t *testing.T, changes ...func(*server.Config)) *api {
	t.Helper()
	pool := dbtest.New(t)
	a := &api{t: t, pool: pool, store: tree.New(pool), keys: keys.New(pool), log: new(check.Buffer)}
	settings := summarize.Defaults()
	settings.MinFoldTokens, settings.SummaryTargetTokens, settings.KeepUserCapTokens = 50, 300, 100
	a.contexts = check.Must(summarize.New(a.store, summarize.Config{Settings: settings}))(t)
	cfg := server.Config{
		Store: a.store, Keys: a.keys, Loopback: true, Contexts: a.contexts, APIs: []server.API{mcp.API("test")},
		Logger: slog.New(slog.NewJSONHandler(a.log, nil)),
	}
	for _, change := range changes {
		change(&cfg)
	}
	s := check.Must(server.New(cfg))(t)
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	a.url, a.handler = web.URL, s
	return a
}

// key makes a key of a tenant.
func (a *api) key(tenant string) string {
	a.t.Helper()
	_, secret, err := a.keys.Create(a.t.Context(), tenant, "")
	check.NoError(a.t, err)
	return secret
}

// over connects a client over HTTP, with a key or with none.
func (a *api) over(secret string) *client {
	a.t.Helper()
	return a.connect(&sdk.StreamableClientTransport{
		Endpoint: a.url + mcp.Path, HTTPClient: &http.Client{Transport: keyed{secret}}, DisableStandaloneSSE: true,
	})
}

// piped connects a client over pipes, with a key or with none.
func (a *api) piped(secret string) *client {
	a.t.Helper()
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- mcp.Relay(context.WithoutCancel(a.t.Context()), a.relayed(secret), fromClient, toClient)
		toClient.Close()
	}()
	c := a.connect(&sdk.IOTransport{Reader: fromServer, Writer: toServer})
	a.t.Cleanup(func() {
		toServer.Close()
		if err := <-ended; err != nil {
			a.t.Errorf("the server ended: %v", err)
		}
	})
	return c
}

// relayed posts a message with a key or with none.
func (a *api) relayed(secret string) func(context.Context, http.Header, []byte) (*http.Response, error) {
	return func(ctx context.Context, header http.Header, message []byte) (*http.Response, error) {
		req, err := http.NewRequestWithContext(ctx, "POST", a.url+mcp.Path, bytes.NewReader(message))
		if err != nil {
			return nil, err
		}
		req.Header = header
		return keyed{secret}.RoundTrip(req)
	}
}

func (a *api) connect(transport sdk.Transport) *client {
	a.t.Helper()
	session := check.Must(sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(a.t.Context(), transport, nil))(a.t)
	a.t.Cleanup(func() { session.Close() })
	return &client{a.t, session}
}

type keyed struct{ secret string }

func (k keyed) RoundTrip(req *http.Request) (*http.Response, error) {
	if k.secret != "" {
		req = req.Clone(req.Context())
		req.Header.Set("Authorization", "Bearer "+k.secret)
	}
	return http.DefaultTransport.RoundTrip(req)
}

type client struct {
	t       testing.TB
	session *sdk.ClientSession
}

// send calls a tool.
func (c *client) send(tool string, arguments any) *sdk.CallToolResult {
	c.t.Helper()
	return check.Must(c.session.CallTool(c.t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments}))(c.t)
}

// call calls a tool that should give an answer.
func call[R any](c *client, tool string, arguments any) (out R) {
	c.t.Helper()
	res := c.send(tool, arguments)
	check.Need(c.t, !res.IsError, "%s: %s", tool, textOf(res))
	structured := check.Must(json.Marshal(res.StructuredContent))(c.t)
	var x, y any
	if json.Unmarshal(structured, &x) != nil || json.Unmarshal([]byte(textOf(res)), &y) != nil || !reflect.DeepEqual(x, y) {
		c.t.Errorf("%s: the text is not the structured content:\n%s\n%s", tool, textOf(res), structured)
	}
	check.NoError(c.t, json.Unmarshal(structured, &out))
	return out
}

// refused calls a tool that should refuse, with this code.
func (c *client) refused(tool, code string, arguments any) string {
	c.t.Helper()
	res := c.send(tool, arguments)
	text := textOf(res)
	check.That(c.t, res.IsError && strings.HasPrefix(text, code), "%s %v: %q, want the error %s", tool, arguments, text, code)
	return text
}

func textOf(res *sdk.CallToolResult) string {
	if len(res.Content) == 0 {
		return ""
	}
	text, _ := res.Content[0].(*sdk.TextContent)
	return text.Text
}

// plant stores a conversation: question ┬ answer ─ thanks, and ─ other.
func plant(t testing.TB, store *tree.Store, words string) (conversation uuid.UUID, ids []uuid.UUID) {
	t.Helper()
	c := check.Must3(store.CreateConversation(t.Context(), tree.NewConversation{Title: "About " + words}))(t)
	say := func(parent uuid.UUID, role, text string) {
		body, _ := json.Marshal(map[string]string{"role": role, "content": text})
		m := check.Must(store.Append(t.Context(), c.ID, parent, tree.NewMessage{Message: chat.Read(body)}))(t)
		ids = append(ids, m.ID)
	}
	say(uuid.Nil, "user", "What is "+words+"?")
	say(ids[0], "assistant", "A wood of "+words+" that is cut so that it grows again.")
	say(ids[0], "assistant", "Another answer about "+words+".")
	say(ids[1], "user", "Thank you for "+words+".")
	return c.ID, ids
}

func (a *api) state() string {
	a.t.Helper()
	return dbtest.State(a.t, a.pool, "conversations", "nodes")
}

// calls are arguments of every tool.
func calls(conversation, message string) map[string]m {
	on := m{"conversation_id": conversation, "head_id": message}
	return map[string]m{
		"search":              {"query": "hazel"},
		"fetch":               {"id": conversation + "/" + message},
		"recall":              {"question": "hazel", "conversation_id": conversation, "head_id": message, "scope": "conversation"},
		"list_conversations":  {"query": "hazel"},
		"list_branches":       {"conversation_id": conversation},
		"read_branch":         on,
		"explain_context":     on,
		"create_conversation": {"title": "Woods"},
		"append_messages":     {"conversation_id": conversation, "parent_id": message, "messages": []m{{"role": "user", "content": "x"}}},
		"fork_branch":         {"conversation_id": conversation, "message_id": message},
		"compact_branch":      on,
		"graft_branch":        {"conversation_id": conversation, "from_head_id": message, "include": "messages"},
	}
}

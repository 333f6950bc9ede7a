package mcp_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/server/mcp"
)

// post sends what no client of the SDK would.
func (a *api) post(t testing.TB, body string, header map[string]string) (*http.Response, string) {
	t.Helper()
	req := check.Must(http.NewRequestWithContext(t.Context(), "POST", a.url+mcp.Path, strings.NewReader(body)))(t)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res := check.Must(http.DefaultTransport.RoundTrip(req))(t)
	defer res.Body.Close()
	out := check.Must(io.ReadAll(res.Body))(t)
	return res, string(out)
}

const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// The server's layers hold here as for every route, in the protocol's envelope of errors.
func TestRequests(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for name, test := range map[string]struct {
		body   string
		header map[string]string
		status int
		code   string
	}{
		"good":            {ping, nil, 200, ""},
		"a batch":         {" [" + ping + "]", nil, 400, "invalid_json"},
		"not UTF-8":       {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", nil, 400, "invalid_utf8"},
		"not JSON's type": {ping, map[string]string{"Content-Type": "text/plain"}, 415, "unsupported_media_type"},
		"another origin":  {ping, map[string]string{"Origin": "https://evil.example"}, 403, "cross_origin"},
	} {
		res, body := a.post(t, test.body, test.header)
		if res.StatusCode != test.status || test.code != "" && !strings.Contains(body, `"data":{"code":"`+test.code+`"}`) || !json.Valid([]byte(body)) {
			t.Errorf("%s: %d %s", name, res.StatusCode, body)
		}
	}
	for _, method := range []string{"GET", "DELETE"} {
		req, _ := http.NewRequestWithContext(t.Context(), method, a.url+mcp.Path, nil)
		res := check.Must(http.DefaultTransport.RoundTrip(req))(t)
		res.Body.Close()
		check.Equal(t, method, res.StatusCode, 405)
		check.Has(t, method, res.Header.Get("Allow"), "POST")
	}
	a.key("own") // from here on a key is needed
	for name, header := range map[string]map[string]string{"no key": nil, "a wrong key": {"Authorization": "Bearer cop_nonsense"}} {
		if res, body := a.post(t, ping, header); res.StatusCode != 401 || res.Header.Get("WWW-Authenticate") == "" || !strings.Contains(body, `"jsonrpc":"2.0"`) {
			t.Errorf("%s: %d %s", name, res.StatusCode, body)
		}
	}
}

// What is no request of the protocol gets an error of JSON-RPC, over HTTP and over pipes.
func TestMalformed(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	call := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":` + params + `}`
	}
	for name, test := range map[string]struct {
		body, version string
		status, code  int
		message       string
	}{
		"no JSON":              {`{"jsonrpc"`, "", 400, -32700, "The body is no JSON: unexpected end of JSON input."},
		"another JSON":         {`5`, "", 400, -32600, "The body is no message of JSON-RPC"},
		"an unknown method":    {call("chop", "{}"), "", 200, -32601, `There is no method "chop" here.`},
		"its status now":       {call("chop", "{}"), "2026-07-28", 404, -32601, `There is no method "chop" here.`},
		"an unknown notice":    {`{"jsonrpc":"2.0","method":"notifications/chop"}`, "", 400, -32601, `There is no method "notifications/chop" here.`},
		"a param of a type":    {call("tools/call", `{"name":5}`), "", 200, -32602, "params.name: This must be a string."},
		"no id":                {`{"jsonrpc":"2.0","method":"tools/list"}`, "", 400, -32600, "missing id"},
		"an unknown tool":      {call("tools/call", `{"name":"chop"}`), "", 200, -32602, "chop"},
		"an unknown version":   {ping, "1999-01-01", 400, -32600, "Unsupported protocol version"},
		"nothing to subscribe": {call("resources/subscribe", `{"uri":"coppice://x"}`), "", 200, -32601, "resources/subscribe"},
	} {
		header := map[string]string{}
		if test.version != "" {
			header["MCP-Protocol-Version"] = test.version
		}
		res, body := a.post(t, test.body, header)
		var answer struct {
			ID    any
			Error struct {
				Code    int
				Message string
			}
		}
		check.JSON(t, body, &answer)
		check.Equal(t, name, res.Header.Get("Content-Type"), "application/json")
		check.That(t, res.StatusCode == test.status && answer.Error.Code == test.code && strings.Contains(answer.Error.Message, test.message),
			"%s: %d %s", name, res.StatusCode, body)
		check.That(t, test.status == 400 || answer.ID == 7., "%s: the id is %v", name, answer.ID)
	}

	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	go func() {
		_ = mcp.Relay(t.Context(), a.relayed(""), fromClient, toClient) // which ends as its input does
		toClient.Close()
	}()
	answers := json.NewDecoder(fromServer)
	for _, test := range [][2]string{
		{call("chop", "{}"), `{"error":{"code":-32601,"message":"There is no method \"chop\" here."},"id":7,"jsonrpc":"2.0"}`},
		{call("tools/call", `{"name":5}`), `{"error":{"code":-32602,"message":"params.name: This must be a string."},"id":7,"jsonrpc":"2.0"}`},
	} {
		const notice = `{"jsonrpc":"2.0","method":"notifications/chop"}` // which has no answer
		check.Must(io.WriteString(toServer, notice+"\n"+test[0]+"\n"))(t)
		var answer json.RawMessage
		check.NoError(t, answers.Decode(&answer))
		check.Equal(t, "pipes", string(answer), test[1])
	}
	toServer.Close()
	check.Equal(t, "what nobody asked for", strings.TrimSpace(string(check.Must(io.ReadAll(io.MultiReader(answers.Buffered(), fromServer)))(t))), "")
}

// The versions of the protocol that clients speak today are spoken, without sessions.
func TestVersions(t *testing.T) {
	t.Parallel()
	a := newAPI(t)
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		res, body := a.post(t, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, version), nil)
		check.That(t, res.StatusCode == 200 && strings.Contains(body, `"protocolVersion":"`+version+`"`) && res.Header.Get("Mcp-Session-Id") == "",
			"%s: %d %s", version, res.StatusCode, body)
		check.Lacks(t, version, body, "listChanged", "logging")
	}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"}}`
	for method, want := range map[string]string{"server/discover": `"supportedVersions":["2026-07-28"`, "tools/list": `"cacheScope":"private"`, "subscriptions/listen": `"resultType":"complete"`} {
		_, body := a.post(t, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"notifications":{"toolsListChanged":true},`+meta+`}}`, map[string]string{"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method})
		check.Has(t, method, body, want)
	}
}

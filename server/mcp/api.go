package mcp

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/server"
)

// Path is the path of API.
const Path = "/mcp"

// API returns the protocol over HTTP (streamable HTTP), which stands beside
// the native API of a server.Server. It holds no sessions: any of several
// servers answers each request by itself, with JSON.
func API(version string) server.API {
	s := New(version)
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, PropagateRequestCancellation: true,
		DisableLocalhostProtection: true, // server.Server guards hosts and origins, by what its operator allows
		MaxRequestBodyBytes:        -1,   // it does that, too
	})
	return server.API{
		Prefix: Path + "/", Refuse: refuse,
		Routes: []server.Route{{Method: "POST", Pattern: Path, May: server.Waits, Handle: func(r *server.Request) (server.Answer, error) {
			return answer(r, version, handler)
		}}},
	}
}

// answer takes a request's body, which is one message of JSON-RPC.
func answer(r *server.Request, version string, handler http.Handler) (server.Answer, error) {
	body, err := r.ReadJSON()
	if err != nil {
		return nil, err
	}
	switch start := bytes.TrimLeft(body, " \t\r\n"); {
	case !utf8.Valid(body):
		return nil, fault.New(fault.Invalid, string(server.CodeInvalidUTF8), "", "The body is not valid UTF-8.")
	case len(start) > 0 && start[0] == '[':
		return nil, fault.New(fault.Invalid, string(server.CodeInvalidJSON), "", "Messages come one by one, each in a request of its own. A batch is not taken.")
	}
	return &handled{r, body, version, handler}, nil
}

// handled is the answer that the SDK's handler gives.
type handled struct {
	request *server.Request
	body    []byte
	version string
	handler http.Handler
}

// Write calls the handler that answers. It writes nothing if the time ends
// before there is an answer.
func (h *handled) Write(w http.ResponseWriter) error {
	r := h.request
	var failure lastError
	c := &call{
		Services: Services{Store: r.Store(), Contexts: r.Contexts(), Recall: r.Recall(), Version: h.version},
		request:  r.Context(), timeout: r.Timeout(), search: r.Search, failed: failure.set,
	}
	req := r.Request.WithContext(c.in(r.Context()))
	req.Body = io.NopCloser(bytes.NewReader(h.body))
	written := &watched{ResponseWriter: w}
	h.handler.ServeHTTP(written, req)
	if err := failure.get(); err != nil {
		r.Note(err)
	}
	if !written.begun {
		return r.Context().Err()
	}
	return nil
}

// watched tells whether something was written.
type watched struct {
	http.ResponseWriter
	begun bool
}

func (w *watched) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(p []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(p)
}

// Unwrap lets http.ResponseController find the connection.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// refuse gives a problem as an error of JSON-RPC, which is what a client can show.
func refuse(p server.Problem, h http.Header) (status int, body []byte) {
	code := -32600 // invalid request
	if p.Status >= http.StatusInternalServerError {
		code = -32603 // internal error
	}
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{
		"code": code, "message": p.Detail, "data": map[string]string{"code": string(p.Code)},
	}})
	if err != nil {
		panic(err) // strings and numbers
	}
	h.Set("Content-Type", "application/json")
	return p.Status, body
}

package mcp

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
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
			return answer(r, handler)
		}}},
	}
}

// answer takes a request's body, which is one message of JSON-RPC.
func answer(r *server.Request, handler http.Handler) (server.Answer, error) {
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
	message, wrong := decode(body)
	if wrong != nil {
		return refusedRequest{status: http.StatusBadRequest, err: wrong}, nil
	}
	req, is := message.(*jsonrpc.Request)
	if !is { // an answer, though the server asks nothing
		return &handled{request: r, body: body, handler: handler}, nil
	}
	if wrong := refusal(req); wrong != nil {
		return refusedRequest{req.ID, statusOf(r.Header.Get("MCP-Protocol-Version"), req.IsCall(), wrong.Code), wrong}, nil
	}
	return &handled{r, req.ID, body, handler}, nil
}

// handled is the answer that the SDK's handler gives.
type handled struct {
	request *server.Request
	id      jsonrpc.ID
	body    []byte
	handler http.Handler
}

// Write calls the handler that answers. It writes nothing if the time ends
// before there is an answer.
func (h *handled) Write(w http.ResponseWriter) error {
	r := h.request
	var failure lastError
	c := &call{
		Store: r.Store(), Contexts: r.Contexts(), Search: r.Searches(),
		request: r.Context(), timeout: r.Timeout(), turn: r.Search, making: r.Making, about: r.About, failed: failure.set,
	}
	req := r.Request.WithContext(c.in(r.Context()))
	req.Body = io.NopCloser(bytes.NewReader(h.body))
	written := &watched{ResponseWriter: w, id: h.id, hold: r.HoldAnswer}
	h.handler.ServeHTTP(written, req)
	if err := failure.get(); err != nil {
		r.Note(err)
	}
	if !written.begun {
		return cmp.Or(written.err, r.Context().Err())
	}
	return nil
}

// refuse gives a problem as an error of JSON-RPC, which is what a client can show.
func refuse(p server.Problem, h http.Header) (status int, body []byte) {
	code := jsonrpc.CodeInvalidRequest
	if p.Status >= http.StatusInternalServerError {
		code = jsonrpc.CodeInternalError
	}
	data, err := json.Marshal(map[string]string{"code": string(p.Code)})
	if err != nil {
		panic(err) // strings
	}
	h.Set("Content-Type", "application/json")
	return p.Status, errorBody(jsonrpc.ID{}, &jsonrpc.Error{Code: int64(code), Message: p.Detail, Data: data})
}

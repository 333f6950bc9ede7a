package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Relay serves one client that writes to in and reads from out, a message a line, until the
// client closes in or ctx is done. It passes each message on by send, which posts it to the
// Path of a server and returns the answer, whatever its status.
func Relay(ctx context.Context, send func(ctx context.Context, header http.Header, message []byte) (*http.Response, error), in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &relay{send: send, out: out, calls: map[string]context.CancelFunc{}}
	ended := make(chan error, 1)
	go func() { // a read can't be called off
		err := r.read(ctx, bufio.NewReader(in))
		r.running.Wait()
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

type relay struct {
	send    func(context.Context, http.Header, []byte) (*http.Response, error)
	running sync.WaitGroup

	mu      sync.Mutex
	out     io.Writer
	version string                        // of the protocol, once the client knows it
	calls   map[string]context.CancelFunc // that run, by their ids
}

// relayed is what a relay reads of a message.
type relayed struct {
	ID     json.RawMessage `json:"id"` // nil of a notification
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		URI       string          `json:"uri"`
		RequestID json.RawMessage `json:"requestId"` // of a call that the client has given up
		Meta      struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	} `json:"params"`
}

// read passes on what the client writes. A client that begins has its first answer before
// its next message is read, because that tells the version.
func (r *relay) read(ctx context.Context, in *bufio.Reader) error {
	for {
		line, err := in.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			var m relayed
			_ = json.Unmarshal(line, &m) // what is none, the server refuses
			if m.Method == "notifications/cancelled" {
				r.cancel(m.Params.RequestID)
				continue
			}
			ctx, done := r.begin(ctx, m.ID)
			if m.Method == "initialize" {
				r.pass(ctx, m, line)
				done()
			} else {
				r.running.Go(func() {
					defer done()
					r.pass(ctx, m, line)
				})
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// begin gives the context of a call, which ends when the client cancels it.
func (r *relay) begin(ctx context.Context, id json.RawMessage) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	if id == nil {
		return ctx, cancel
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls[string(id)] = cancel
	return ctx, func() {
		r.cancel(id)
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.calls, string(id))
	}
}

func (r *relay) cancel(id json.RawMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel := r.calls[string(id)]; cancel != nil {
		cancel()
	}
}

// pass sends a message, and writes the answer.
func (r *relay) pass(ctx context.Context, m relayed, line []byte) {
	answer, err := r.ask(ctx, m, line)
	notice := m.ID == nil && m.Method != "" // has no answer, not even a refusal
	if ctx.Err() != nil || notice || err == nil && len(answer) == 0 {
		return
	}
	if err != nil {
		answer = errorBody(jsonrpc.ID{}, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()})
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(answer, &members) != nil {
		answer = errorBody(jsonrpc.ID{}, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "The server doesn't answer in JSON-RPC: check its address."})
		_ = json.Unmarshal(answer, &members) // an object
	}
	if id := members["id"]; m.ID != nil && (id == nil || string(id) == "null") {
		members["id"] = m.ID
		answer, _ = json.Marshal(members) // of JSON
	}
	var text bytes.Buffer
	_ = json.Compact(&text, answer) // of JSON
	text.WriteByte('\n')
	r.mu.Lock()
	defer r.mu.Unlock()
	if m.Method == "initialize" {
		var began struct {
			Version string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(members["result"], &began) // absent of an error
		r.version = began.Version
	}
	_, _ = r.out.Write(text.Bytes()) // a client that left closes in, too
}

// ask sends a message, and reads the answer; nil for none.
func (r *relay) ask(ctx context.Context, m relayed, line []byte) ([]byte, error) {
	header := http.Header{"Accept": {"application/json, text/event-stream"}, "Content-Type": {"application/json"}}
	r.mu.Lock()
	version := r.version
	r.mu.Unlock()
	if m.Params.Meta.Version != "" {
		version = m.Params.Meta.Version
	}
	if version != "" {
		header.Set("MCP-Protocol-Version", version)
	}
	if version >= statuses {
		header.Set("Mcp-Method", m.Method)
		if name := m.Params.Name + m.Params.URI; name != "" {
			header.Set("Mcp-Name", name)
		}
	}
	res, err := r.send(ctx, header, line)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	return io.ReadAll(res.Body)
}

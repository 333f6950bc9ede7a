package llmtest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// A Server is an OpenAI-compatible server on loopback that follows a script:
// each request gets the next behaviour. It ends with its test, even if a
// behaviour still hangs.
type Server struct {
	unscripted func(requests int) // a request beyond the script; nil for a server outside a test
	http       *httptest.Server
	closed     chan struct{}
	closing    sync.Once

	mu        sync.Mutex
	key       string
	script    []Behaviour
	otherwise *Behaviour
	requests  []Request
	abandoned int
}

// A Request is a request that a client sent.
type Request struct {
	Header http.Header // without Authorization
	Body   []byte      // as it came

	Model               string
	Messages            []json.RawMessage
	Stream              bool
	Temperature         *float64 // nil if it wasn't sent
	MaxTokens           int      // of max_tokens; 0 if it wasn't sent
	MaxCompletionTokens int      // of max_completion_tokens; 0 if it wasn't sent
}

// NewServer starts a server with a script. A request beyond the script's end
// fails the test, unless Otherwise was called.
func NewServer(t testing.TB, script ...Behaviour) *Server {
	t.Helper()
	s := &Server{closed: make(chan struct{}), script: script}
	s.unscripted = func(requests int) {
		t.Errorf("llmtest: request %d has no behaviour in the server's script", requests)
	}
	s.listen()
	t.Cleanup(s.Close)
	return s
}

// Start starts a server outside a test. Every request gets the same behaviour;
// use Reply to choose one by the request. The server runs until Close. It
// records no requests, because it may get millions of them.
func Start(b Behaviour) *Server {
	s := &Server{closed: make(chan struct{}), otherwise: &b}
	s.listen()
	return s
}

// Close ends the server, even if a behaviour still hangs. A test's server ends
// without it.
func (s *Server) Close() {
	s.closing.Do(func() {
		close(s.closed) // lets go of what hangs, which the other Close waits for
		s.http.Close()
	})
}

func (s *Server) listen() {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", s.serve)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeFailure(w, Failure{Status: http.StatusNotFound, Type: "invalid_request_error", Message: "Unknown request URL: " + r.URL.Path})
	})
	s.http = httptest.NewServer(mux)
}

// URL returns the base URL for a client. It ends in /v1.
func (s *Server) URL() string { return s.http.URL + "/v1" }

// Client returns an HTTP client whose connections end with the server, so that
// a test that counts goroutines finds none of them left.
func (s *Server) Client() *http.Client { return s.http.Client() }

// RequireKey makes the server answer 401 to any other API key. Such a request
// uses up no behaviour, but is recorded, like a request that can't be read.
func (s *Server) RequireKey(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.key = key
}

// Script adds behaviours for the next requests.
func (s *Server) Script(more ...Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, more...)
}

// Otherwise sets the behaviour for requests beyond the script's end.
func (s *Server) Otherwise(b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.otherwise = &b
}

// Requests returns the requests that came, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Abandoned returns how many requests lost their client before the answer was
// whole.
func (s *Server) Abandoned() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.abandoned
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	req, valid := parse(r.Header, body)
	b := s.next(req, valid, r.Header.Get("Authorization"))
	x := &exchange{w: w, req: req, closed: s.closed, gone: r.Context().Done()}
	// Some behaviours end in a panic that cuts the connection.
	defer func() {
		if x.left() {
			s.mu.Lock()
			s.abandoned++
			s.mu.Unlock()
		}
	}()
	b.serve(x)
}

// next records a request and returns what to do with it. As real servers do,
// the refusals quote what was wrong.
func (s *Server) next(req Request, valid bool, authorization string) (b Behaviour) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unscripted != nil {
		s.requests = append(s.requests, req)
	}
	switch {
	case s.key != "" && authorization != "Bearer "+s.key:
		return FailWith(Failure{Status: http.StatusUnauthorized, Type: "invalid_request_error", Code: "invalid_api_key",
			Message: "Incorrect API key provided: " + strings.TrimPrefix(authorization, "Bearer ")})
	case !valid:
		return FailWith(Failure{Status: http.StatusBadRequest, Type: "invalid_request_error",
			Message: "We could not parse the JSON body of your request: " + string(req.Body)})
	case len(s.script) > 0:
		b, s.script = s.script[0], s.script[1:]
		return b
	case s.otherwise != nil:
		return *s.otherwise
	}
	s.unscripted(len(s.requests))
	return Fail(http.StatusInternalServerError)
}

func parse(header http.Header, body []byte) (Request, bool) {
	req := Request{Header: header.Clone(), Body: body}
	req.Header.Del("Authorization")
	var members struct {
		Model               string
		Messages            []json.RawMessage
		Stream              bool
		Temperature         *float64
		MaxTokens           int `json:"max_tokens"`
		MaxCompletionTokens int `json:"max_completion_tokens"`
	}
	if json.Unmarshal(body, &members) != nil || len(members.Messages) == 0 {
		return req, false
	}
	req.Model, req.Messages, req.Stream = members.Model, members.Messages, members.Stream
	req.Temperature, req.MaxTokens, req.MaxCompletionTokens = members.Temperature, members.MaxTokens, members.MaxCompletionTokens
	return req, true
}

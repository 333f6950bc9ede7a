package openai

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
)

// The SDKs send a request again where its answer didn't reach them, with nothing
// but X-Stainless-Retry-Count to tell it from a new one. A retry gets the answer
// that an earlier try of the same bytes began, and adds nothing to the tree. The
// same bytes without that header are a new request: its answer is a sibling.

// retryCount is how often a client sent a request before.
func retryCount(h http.Header) int {
	n, _ := strconv.Atoi(h.Get("X-Stainless-Retry-Count"))
	return n
}

const (
	retryWindow = 15 * time.Minute // after the end of a try; SDKs wait up to 8 s between two
	maxTries    = 10_000           // that are remembered
)

// tries remembers requests, so that a retry finds what came of them.
type tries struct {
	mu    sync.Mutex
	by    map[string][]*try
	queue []*try // as they came
}

// A try is a request, or the retry of one.
type try struct {
	all   *tries
	key   string // of the request's tenant, path and bytes
	retry bool

	// Under the lock of all.
	outcome outcome
	ended   time.Time
	reply   *NodeID // that it began, or got; nil for none
}

// An outcome is what became of a try.
type outcome int

const (
	running  outcome = iota
	answered         // the whole answer was written
	deserted         // its client left before
	refused          // its answer was an error
)

// retried makes a handler that knows the retries of its requests.
func (all *tries) retried(handle func(r *server.Request, body []byte, t *try) (server.Answer, error)) server.Handler {
	return func(r *server.Request) (server.Answer, error) {
		body, err := r.ReadJSON()
		if err != nil {
			return nil, err
		}
		t := all.begin(r, body)
		a, err := handle(r, body, t)
		if err != nil {
			t.end(r, refused)
			return nil, err
		}
		return triedAnswer{a, r, t}, nil
	}
}

// A triedAnswer takes note of whether it was written.
type triedAnswer struct {
	server.Answer
	request *server.Request
	try     *try
}

// Write writes the answer.
func (a triedAnswer) Write(w http.ResponseWriter) error {
	outcome := deserted
	defer func() { a.try.end(a.request, outcome) }()
	err := a.Answer.Write(w)
	if err == nil {
		outcome = answered
	}
	return err
}

// begin takes note of a request.
func (all *tries) begin(r *server.Request, body []byte) *try {
	sum := sha256.New()
	for _, part := range []string{r.Tenant(), r.URL.Path, r.Header.Get("X-Coppice-Session")} {
		sum.Write([]byte(part + "\x00"))
	}
	sum.Write(body)
	t := &try{all: all, key: base64.RawURLEncoding.EncodeToString(sum.Sum(nil)), retry: retryCount(r.Header) > 0}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.forget(time.Now())
	if t.retry {
		t.reply = all.earlier(t.key)
	}
	if all.by == nil {
		all.by = map[string][]*try{}
	}
	all.by[t.key] = append(all.by[t.key], t)
	all.queue = append(all.queue, t)
	return t
}

// earlier gives the reply that a retry of a request is to have: that of a client
// which left, else none where a try was refused, else the newest. Of several
// requests of the same bytes at a time, each retry so has an answer of its own.
func (all *tries) earlier(key string) (found *NodeID) {
	list := all.by[key]
	for _, want := range []outcome{deserted, refused} {
		for _, t := range list {
			if t.outcome == want {
				found = t.reply
				all.drop(t)
				return found
			}
		}
	}
	for _, t := range list {
		if t.reply != nil {
			found = t.reply
		}
	}
	return found
}

// forget drops tries that are long over, and the oldest of too many.
func (all *tries) forget(now time.Time) {
	for len(all.queue) > 0 {
		t := all.queue[0]
		if len(all.queue) < maxTries && (t.outcome == running || now.Sub(t.ended) < retryWindow) {
			return
		}
		all.drop(t)
		all.queue = all.queue[1:]
	}
}

// drop takes a try from those of its request.
func (all *tries) drop(t *try) {
	list := all.by[t.key]
	for i, other := range list {
		if other == t {
			list = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	if all.by[t.key] = list; len(list) == 0 {
		delete(all.by, t.key)
	}
}

func (t *try) end(r *server.Request, o outcome) {
	if r.Context().Err() != nil && o == refused {
		o = deserted
	}
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	t.outcome, t.ended = o, time.Now()
	if o == refused {
		t.reply = nil // the next try is a new one
	}
}

// answer gives the reply that an earlier try began, or else the one that start
// begins.
func (t *try) answer(r *server.Request, start func() (*reply.Reply, error)) (*reply.Reply, error) {
	if n := t.reply; n != nil {
		rep, err := r.Replies().Find(r.Context(), n.Conversation, n.Node)
		if err == nil || !errors.Is(err, fault.NotFound) {
			return rep, err
		}
	}
	rep, err := start()
	if err == nil {
		n := NodeID{rep.ConversationID(), rep.MessageID()}
		t.all.mu.Lock()
		defer t.all.mu.Unlock()
		t.reply = &n
	}
	return rep, err
}

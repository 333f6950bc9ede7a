package openai

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/server"
)

// The SDKs send a request again where its answer didn't reach them, with nothing
// but X-Stainless-Retry-Count to tell it from a new one. A retry gets the answer
// that an earlier attempt of the same bytes began, and adds nothing to the tree. The
// same bytes without that header are a new request: its answer is a sibling.
// This file remembers the requests of this server. earlier.go finds in the tree
// what came of those of other servers.

// idempotencyKey is the header by which a client names a request itself. Each
// request with the same one and the same bytes is an attempt of that request.
const idempotencyKey = "Idempotency-Key"

// retryHeader is the header in which SDKs say how often they sent a request before.
const retryHeader = "X-Stainless-Retry-Count"

// retryCount is how often a client sent a request before.
func retryCount(h http.Header) int {
	n, _ := strconv.Atoi(h.Get(retryHeader))
	return n
}

const (
	retryWindow = 15 * time.Minute // after the end of an attempt; SDKs wait up to 8 s between two
	maxAttempts = 10_000           // that are remembered
)

// attempts remembers requests, so that a retry finds what came of them.
type attempts struct {
	mu    sync.Mutex
	by    map[string][]*attempt
	queue []*attempt // as they came
}

// An attempt is a request, or the retry of one.
type attempt struct {
	all   *attempts
	key   string // of the request's tenant, path, session and bytes
	retry bool
	begun chan struct{} // closed once reply is set, or is known to be none

	// Of a retry: what this server knows of the earlier attempts.
	delivered bool // the answer of reply was written whole

	// Under the lock of all.
	outcome outcome
	ended   time.Time
	reply   *NodeID // that it began, or got; nil for none
}

// An outcome is the result of an attempt.
type outcome int

const (
	running  outcome = iota
	answered         // the whole answer was written
	deserted         // its client left before
	refused          // its answer was an error
)

// retried makes a handler that knows the retries of its requests.
func (all *attempts) retried(handle func(r *server.Request, body []byte, t *attempt) (server.Answer, error)) server.Handler {
	return func(r *server.Request) (server.Answer, error) {
		body, err := r.ReadJSON()
		if err != nil {
			return nil, err
		}
		t := all.begin(r, body)
		var a server.Answer
		if err = t.join(r.Context()); err == nil {
			a, err = handle(r, body, t)
		}
		if err != nil {
			t.end(r, refused)
			return nil, err
		}
		return attemptedAnswer{a, r, t}, nil
	}
}

// A attemptedAnswer takes note of whether it was written.
type attemptedAnswer struct {
	server.Answer
	request *server.Request
	attempt *attempt
}

// Write writes the answer.
func (a attemptedAnswer) Write(w http.ResponseWriter) error {
	outcome := deserted
	defer func() { a.attempt.end(a.request, outcome) }()
	err := a.Answer.Write(w)
	if err == nil {
		outcome = answered
	}
	return err
}

// begin takes note of a request.
func (all *attempts) begin(r *server.Request, body []byte) *attempt {
	sum := sha256.New()
	parts := []string{r.Tenant(), r.URL.Path, r.Header.Get(idempotencyKey)}
	for _, name := range sessionHeaders {
		parts = append(parts, r.Header.Get(name))
	}
	for _, part := range parts {
		sum.Write([]byte(part + "\x00"))
	}
	sum.Write(body)
	t := &attempt{
		all: all, key: base64.RawURLEncoding.EncodeToString(sum.Sum(nil)), begun: make(chan struct{}),
		retry: retryCount(r.Header) > 0 || r.Header.Get(idempotencyKey) != "",
	}
	all.mu.Lock()
	defer all.mu.Unlock()
	all.forget(time.Now())
	if all.by == nil {
		all.by = map[string][]*attempt{}
	}
	all.by[t.key] = append(all.by[t.key], t)
	all.queue = append(all.queue, t)
	return t
}

// join gives a retry the reply that it is to have, as far as this server knows. It
// waits for earlier attempts that are about to begin one.
func (t *attempt) join(ctx context.Context) error {
	for t.retry {
		t.all.mu.Lock()
		earlier := t.all.by[t.key]
		if i := slices.Index(earlier, t); i >= 0 {
			earlier = earlier[:i]
		}
		i := slices.IndexFunc(earlier, func(e *attempt) bool { return e.starting() })
		if i < 0 {
			t.take(earlier)
			t.all.mu.Unlock()
			return nil
		}
		begun := earlier[i].begun
		t.all.mu.Unlock()
		select {
		case <-begun:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (t *attempt) starting() bool {
	select {
	case <-t.begun:
		return false
	default:
		return true
	}
}

// take takes the reply of one of the earlier attempts of a request. It prefers an
// attempt whose client disconnected. After a refusal the retry starts anew. Else it
// takes the newest attempt. So of several requests of the same bytes at a time,
// each retry has an answer of its own.
func (t *attempt) take(earlier []*attempt) {
	for _, want := range []outcome{deserted, refused} {
		for _, e := range earlier {
			if e.outcome == want {
				t.reply = e.reply
				t.all.drop(e)
				return
			}
		}
	}
	for _, e := range earlier {
		if e.reply != nil {
			t.reply, t.delivered = e.reply, e.outcome == answered
		}
	}
}

// begins takes note of the reply that an attempt began; nil for one that nobody can
// join.
func (t *attempt) begins(n *NodeID) {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	t.reply = n
	if t.starting() {
		close(t.begun)
	}
}

// forget drops attempts that are long over, and the oldest of too many.
func (all *attempts) forget(now time.Time) {
	for len(all.queue) > 0 {
		t := all.queue[0]
		if len(all.queue) < maxAttempts && (t.outcome == running || now.Sub(t.ended) < retryWindow) {
			return
		}
		all.drop(t)
		all.queue = all.queue[1:]
	}
}

// drop takes an attempt from those of its request.
func (all *attempts) drop(t *attempt) {
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

func (t *attempt) end(r *server.Request, o outcome) {
	if r.Context().Err() != nil && o == refused {
		o = deserted
	}
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	t.outcome, t.ended = o, time.Now()
	if o == refused {
		t.reply = nil // the next attempt is a new one
	}
	if t.starting() {
		close(t.begun)
	}
}

// answer gives the reply that an earlier attempt began, or else the one that start
// begins or finds.
func (t *attempt) answer(r *server.Request, start func() (*reply.Reply, error)) (*reply.Reply, error) {
	if n := t.reply; n != nil {
		rep, err := r.Replies().Find(r.Context(), n.Conversation, n.Node)
		if err == nil {
			t.begins(n)
		}
		if err == nil || !errors.Is(err, fault.NotFound) {
			return rep, err
		}
	}
	rep, err := start()
	if err == nil {
		t.begins(&NodeID{rep.ConversationID(), rep.MessageID()})
	}
	return rep, err
}

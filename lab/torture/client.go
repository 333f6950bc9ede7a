package torture

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// requestTimeout is how long a client waits, longer than the servers'
// --request-timeout.
const requestTimeout = 20 * time.Second

// A client sends requests to the servers, and now and then goes away before
// the answer.
type client struct {
	http     *http.Client
	programs []*program
	report   *recorder
	dropping *atomic.Int32 // requests in a hundred whose client goes away
	tenant   *tenant       // whose key the requests have
	trying   string        // the key that they have instead, which may be a bad one

	header map[string]string // that requests have besides
	seen   *positions
}

// as gives the client with a tenant's key.
func (c *client) as(t *tenant) *client {
	copied := *c
	copied.tenant, copied.trying = t, ""
	return &copied
}

// saying gives the client with further headers.
func (c *client) saying(header map[string]string) *client {
	copied := *c
	copied.header = header
	return &copied
}

// withOwnPositions gives a client that shares no positions with others.
func (c *client) withOwnPositions() *client {
	copied := *c
	copied.seen = newPositions()
	return &copied
}

// with gives the client with a key that may be good for nothing.
func (c *client) with(secret string) *client {
	copied := *c
	copied.tenant, copied.trying = nil, secret
	return &copied
}

// sign puts the key into a request, and gives it.
func (c *client) sign(req *http.Request) (secret string) {
	secret = c.trying
	if c.tenant != nil {
		secret = c.tenant.secret()
	}
	if secret != "" {
		req.Header.Set("Authorization", "Bearer "+secret)
	}
	if req.Method == http.MethodGet && c.tenant != nil {
		c.seen.say(c.tenant, req)
	}
	for name, value := range c.header {
		req.Header.Set(name, value)
	}
	return secret
}

func newClient(programs []*program, report *recorder) *client {
	transport := &http.Transport{MaxIdleConnsPerHost: 32, IdleConnTimeout: 30 * time.Second}
	return &client{http: &http.Client{Transport: transport}, programs: programs, report: report, dropping: new(atomic.Int32), seen: newPositions()}
}

func (c *client) close() { c.http.CloseIdleConnections() }

// An answer is what came of a request.
type answer struct {
	status  int    // 0 where there was none
	code    string // of a problem
	detail  string
	body    []byte
	header  http.Header
	dropped bool // the client went away
	revoked bool // the key was replaced while the request was under way
	sentAt  time.Time
	at      time.Time // of the answer
	err     error
}

// outcome tells what the answer says of what was asked.
func (a answer) outcome() outcome {
	switch {
	case a.err != nil, a.status >= 500, a.revoked:
		return unknown
	case a.status < 300:
		return acknowledged
	}
	return refused
}

// again tells whether the request should be sent once more: it may have been
// done, or it surely wasn't but could be.
func (a answer) again() bool {
	return a.outcome() == unknown || a.status == http.StatusTooManyRequests || a.code == "changed_meanwhile"
}

// do sends a request to a server and reads the answer, into out where it is a
// success and out isn't nil.
func (c *client) do(ctx context.Context, rng *rand.Rand, server int, method, path string, body, out any) (a answer) {
	whole := ctx
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	if rng != nil && int32(rng.IntN(100)) < c.dropping.Load() {
		a.dropped = true
		timer := time.AfterFunc(time.Duration(rng.IntN(30_000))*time.Microsecond, cancel)
		defer timer.Stop()
	}
	var content io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			panic(fmt.Sprintf("torture: %v", err)) // only values made here
		}
		content = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.programs[server].url()+path, content)
	if err != nil {
		panic(fmt.Sprintf("torture: %v", err)) // only paths made here
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	secret := c.sign(req)
	a.sentAt = time.Now()
	res, err := c.http.Do(req)
	if err == nil {
		defer res.Body.Close()
		a.status, a.header = res.StatusCode, res.Header
		a.body, err = io.ReadAll(res.Body)
		c.seen.heard(c.tenant, a.sentAt, res.Header, res.Trailer)
	}
	a.err, a.at = err, time.Now()
	c.note(whole, &a, secret, method, path, ctx.Err() != nil)
	if a.err == nil && a.status < 300 && out != nil {
		if err := json.Unmarshal(a.body, out); err != nil {
			c.report.violate("bad answer", "%s %s: %v: %.200s", method, path, err, a.body)
			a.err = err
		}
	}
	return a
}

// note counts an answer that is no success, and reads its problem.
func (c *client) note(ctx context.Context, a *answer, secret, method, path string, gone bool) {
	key := ""
	switch {
	case a.err != nil && gone && a.dropped:
		key = "the client went away"
	case a.err != nil && ctx.Err() != nil:
		key = "the run ended"
	case a.err != nil && gone:
		key = fmt.Sprintf("none within %s", requestTimeout)
	case a.err != nil:
		key = "none: " + reasonOf(a.err)
	case a.status < 300:
		return
	default:
		a.code, a.detail = problemIn(path, a.body)
		if a.code == "" {
			c.report.violate("bad answer", "%s %s: status %d without a problem: %.200s", method, path, a.status, a.body)
		}
		key = fmt.Sprintf("%d %s", a.status, a.code)
	}
	c.report.count(func(r *Report) { r.Answers[key]++ })
	a.revoked = a.status == http.StatusUnauthorized && c.tenant != nil && c.tenant.isRetired(secret)
	switch {
	case a.revoked, c.trying != "":
	case a.status == http.StatusInternalServerError:
		c.report.violate("internal error", "%s %s: %s", method, pathPattern(path), a.body)
	case a.code == "head_not_found": // by its status a bad request, and no more than a message that was pruned
	case a.status >= 400 && a.status < 500 && a.status != http.StatusNotFound && a.status != http.StatusConflict && a.status != http.StatusTooManyRequests:
		c.report.violate("bad answer", "%s %s: %s", method, pathPattern(path), a.body)
	}
}

// problemIn reads the answer of an error, in the form of the surface that gave it.
func problemIn(path string, body []byte) (code, detail string) {
	var native struct{ Code, Detail string }
	var openai struct {
		Error struct{ Code, Type, Message string }
	}
	var rpc struct {
		Error struct {
			Message string
			Data    struct{ Code string }
		}
	}
	switch {
	case strings.HasPrefix(path, openaiPath):
		_ = json.Unmarshal(body, &openai) // what can't be read has no code
		if code = openai.Error.Code; code == "" {
			code = openai.Error.Type
		}
		return code, openai.Error.Message
	case path == mcpPath:
		_ = json.Unmarshal(body, &rpc)
		return rpc.Error.Data.Code, rpc.Error.Message
	}
	_ = json.Unmarshal(body, &native)
	return native.Code, native.Detail
}

// reasonOf is the kind of a connection's error.
func reasonOf(err error) string {
	text := err.Error()
	for _, reason := range []string{"connection refused", "connection reset", "EOF", "broken pipe"} {
		if strings.Contains(text, reason) {
			return reason
		}
	}
	return "other"
}

// pathPattern is a path whose ids are left out.
func pathPattern(path string) string {
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if len(part) == 36 {
			parts[i] = "…"
		}
	}
	return strings.Join(parts, "/")
}

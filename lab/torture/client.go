package torture

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

// requestTimeout is how long a client waits, longer than the servers'
// --request-timeout.
const requestTimeout = 20 * time.Second

// An answer is what came of a request.
type answer struct {
	status  int    // 0 where there was none
	code    string // of a problem
	body    []byte
	header  http.Header
	dropped bool // the client went away
	sentAt  time.Time
	err     error
}

// outcome tells what the answer says of what was asked.
func (a answer) outcome() outcome {
	switch {
	case a.err != nil, a.status >= 500:
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

// A request is one to a server.
type request struct {
	tenant *tenant
	server *server // nil for one or another
	method string
	path   string
	body   any // nil for none
	header map[string]string
	out    any        // where a success goes, nil for nowhere
	drop   *rand.Rand // says whether the client goes away before the answer; nil for never

	c     *conversation
	about *message // that c must have, unless somebody asked to prune it; nil for none
}

// open sends a request and gives the response, whose body the caller closes.
func (r *run) open(ctx context.Context, q request) (*http.Response, error) {
	if q.server == nil {
		q.server = r.any()
	}
	var content io.Reader
	if q.body != nil {
		b, _ := json.Marshal(q.body) // values made here have JSON
		content = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, q.method, "http://"+q.server.addr+q.path, content)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if q.tenant != nil {
		req.Header.Set("Authorization", "Bearer "+q.tenant.key)
	}
	for name, value := range q.header {
		req.Header.Set(name, value)
	}
	return r.http.Do(req)
}

// do sends a request and reads the answer.
func (r *run) do(ctx context.Context, q request) (a answer) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	a.dropped = drops(q.drop, dropped, 30*time.Millisecond, cancel)
	a.sentAt = time.Now()
	res, err := r.open(ctx, q)
	if err == nil {
		defer res.Body.Close()
		a.status, a.header = res.StatusCode, res.Header
		a.body, err = io.ReadAll(res.Body)
	}
	a.err = err
	r.note(q, &a)
	if a.outcome() == acknowledged && q.out != nil {
		if err := json.Unmarshal(a.body, q.out); err != nil {
			r.report.violate("bad answer", "%s %s: %v: %s", q.method, q.path, err, clip(string(a.body), 200))
			a.err = err
		}
	}
	return a
}

// drops has a client go away within a time, in so many of a hundred cases.
func drops(rng *rand.Rand, percent int, within time.Duration, leave func()) bool {
	if rng == nil || rng.IntN(100) >= percent {
		return false
	}
	time.AfterFunc(time.Duration(rng.Int64N(int64(within))), leave)
	return true
}

// get reads from any server.
func (r *run) get(ctx context.Context, q request, out any) answer {
	q.method, q.out = http.MethodGet, out
	return r.do(ctx, q)
}

// note reads the problem of an answer that is no success.
func (r *run) note(q request, a *answer) {
	if a.err != nil || a.status < 300 {
		return
	}
	var problem struct {
		Code  string
		Error struct{ Code, Type string } // of OpenAI's API
	}
	_ = json.Unmarshal(a.body, &problem) // a body that can't be read has no code
	a.code = cmp.Or(problem.Code, problem.Error.Code, problem.Error.Type)
	fine := []int{http.StatusNotFound, http.StatusConflict, http.StatusTooManyRequests}
	switch {
	case a.code == "", a.status == http.StatusInternalServerError, a.status < 500 && !slices.Contains(fine, a.status) && a.code != "head_not_found": // a pruned message
		r.report.violate("bad answer", "%s %s: status %d: %s", q.method, q.path, a.status, clip(string(a.body), 300))
	case a.code == "message_not_found" && q.about != nil:
		q.c.mu.Lock()
		defer q.c.mu.Unlock()
		if !q.c.mayBePruned(q.about) && q.c.deleted == refused {
			q.c.violate("lost", "%s %s: message %s isn't there, was acknowledged and never pruned", q.method, q.path, q.about.id)
		}
	}
}

const (
	attemptsBound = 60 // of one operation
	dropped       = 3  // requests in a hundred whose client goes away before the answer
)

// persist sends a request until it is answered for good, and says how often it
// did, as OpenAI's SDKs do. Sometimes a client that went away doesn't come back.
func (r *run) persist(ctx context.Context, rng *rand.Rand, q request) (a answer, attempts int) {
	q.drop, q.header = rng, map[string]string{}
	for attempts = 1; ; attempts++ {
		q.server, q.header["X-Stainless-Retry-Count"] = r.servers[rng.IntN(len(r.servers))], fmt.Sprint(attempts-1)
		a = r.do(ctx, q)
		if !a.again() || ctx.Err() != nil || attempts == attemptsBound || a.dropped && rng.IntN(5) == 0 {
			return a, attempts
		}
		sleep(ctx, time.Duration(20+rng.IntN(130))*time.Millisecond)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// clip is the beginning of a text.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

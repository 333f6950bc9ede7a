package server

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

// held returns how many units a key holds, and how many requests wait.
func (l *limiter[K]) heldBy(key K) (units, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int(l.byKey[key].units), len(l.waiting)
}

const mebibyte = 1 << 20

// TestStalledBodiesAreBounded has a tenant begin many large bodies that lack a byte.
// They hold no more bytes than the tenant's half, and the others aren't read. A small
// body and another tenant's large one don't wait. Each body that ends lets the next in.
func TestStalledBodiesAreBounded(t *testing.T) {
	t.Parallel()
	const bodies = 10
	a := newAPI(t, func(c *Config) { c.MaxBytesInFlight = 4 * mebibyte })
	plant(t, a.store.ForTenant("busy"), "c")
	plant(t, a.store.ForTenant("other"), "other")
	_, busy := a.newKey("busy")
	_, other := a.newKey("other")
	body := `{"role":"user","content":"` + strings.Repeat("a ", mebibyte/2-100)
	body += strings.Repeat("a", mebibyte-len(body)-2) + `"}`
	answered := make(chan int, bodies)
	var rest [bodies]*io.PipeWriter
	for i := range rest {
		from, to := io.Pipe()
		rest[i] = to
		req := a.newRequest(request{method: "POST", path: fill(appendPath), body: body}.as(busy))
		req.Body = from
		go func() { answered <- a.statusOf(req) }()
		go func() { _, _ = io.WriteString(to, body[:len(body)-1]) }()
	}
	limit := a.server.limits.bodies
	check.Eventually(t, "all but two bodies that wait", func() bool { _, waiting := limit.heldBy("busy"); return waiting == bodies-2 })
	held, _ := limit.heldBy("busy")
	check.Equal(t, "bytes held", held, 2*mebibyte)
	a.must(201, nil, request{method: "POST", path: fill(appendPath), header: bearer(busy), body: fill(message(userMessage))})
	a.must(201, nil, request{method: "POST", path: "/v1/conversations/" + named("other").String() + "/messages", header: bearer(other), body: body})
	for _, to := range rest {
		go func() {
			_, _ = io.WriteString(to, body[len(body)-1:])
			to.Close()
		}()
	}
	for range rest {
		check.Equal(t, "a body that waited gets", <-answered, 201)
	}
	check.Eventually(t, "no bytes that are held", func() bool { return limit.underWay() == 0 })
}

// A slowAnswer is a mebibyte whose client doesn't read it for a time.
type slowAnswer struct{ writing, read chan struct{} }

func (slowAnswer) Size() int { return mebibyte }

func (a slowAnswer) Write(w http.ResponseWriter) error {
	a.writing <- struct{}{}
	<-a.read
	w.WriteHeader(http.StatusOK)
	return nil
}

// TestUnreadAnswersAreBounded has a tenant ask for many large answers, which nobody
// reads. Those that are sent hold the tenant's half, few more are made, and the others
// wait until they may be made. Another tenant's answer is sent at once.
func TestUnreadAnswersAreBounded(t *testing.T) {
	t.Parallel()
	const requests, sent, made = 10, 2, 4
	var answers atomic.Int64
	slow := slowAnswer{make(chan struct{}, requests+1), make(chan struct{})}
	a := newAPI(t, func(c *Config) {
		c.MaxBytesInFlight, c.MaxReads = 2*sent*mebibyte, made/2
		c.APIs = []API{{Prefix: "/slow/", Refuse: refuseNatively, Routes: []Route{{Method: "GET", Pattern: "/slow/answer", Handle: func(*Request) (Answer, error) {
			answers.Add(1)
			return slow, nil
		}}}}}
	})
	_, busy := a.newKey("busy")
	_, other := a.newKey("other")
	answered := make(chan int, requests+1)
	ask := func(key string) { answered <- a.statusOf(a.newRequest(get("/slow/answer").as(key))) }
	for range requests {
		go ask(busy)
	}
	for range sent {
		<-slow.writing
	}
	check.Eventually(t, "requests that wait to be answered", func() bool {
		_, waiting := a.server.limits.making.heldBy("busy")
		_, ready := a.server.limits.answers.heldBy("busy")
		return waiting == requests-sent-made && ready == made
	})
	check.Equal(t, "answers that are sent, or wait for it", answers.Load(), sent+made)
	go ask(other)
	<-slow.writing
	close(slow.read)
	for range requests + 1 {
		check.Equal(t, "status", <-answered, 200)
	}
}

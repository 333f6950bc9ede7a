package server

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/tree"
)

// watchful looks at keys often.
func watchful(c *Config) { c.KeyCheck = 5 * time.Millisecond }

// TestRevokedKeyEndsItsStreams revokes a key amid replies: the streams that its
// holder reads end and say why, no further request passes, and the reply, which
// is the tenant's, goes on.
func TestRevokedKeyEndsItsStreams(t *testing.T) {
	t.Parallel()
	m := paced{make(chan string)}
	a := newAPI(t, withModels(nil, m), watchful)
	plant(t, a.store, "c")
	key, secret := a.newKey(tree.DefaultTenant)
	_, another := a.newKey(tree.DefaultTenant)

	r := ask(replyPathOf, `{"id":"{{x}}"}`)
	r.header = bearer(secret)
	asked := a.listen(t.Context(), r)
	events := request{method: "GET", path: fill(conversationPathOf + "/replies/{{x}}/events"), header: bearer(secret)}
	read := a.listen(t.Context(), events)
	events.header = bearer(another)
	others := a.listen(t.Context(), events)
	m.pieces <- "A wood "
	for _, l := range []*listener{asked, read, others} {
		l.until(7)
	}
	// One that waits for the whole answer.
	whole := make(chan response)
	go func() {
		r := ask(replyPathOf, `{"id":"{{x}}","stream":false}`)
		r.header = bearer(secret)
		whole <- a.send(r)
	}()
	check.Eventually(t, "the one that waits", func() bool {
		return strings.Contains(string(a.must(200, nil, request{method: "GET", path: "/metrics"}).body), "coppice_http_requests_in_flight 5\n")
	})

	check.Must(a.keys.Revoke(t.Context(), key.ID))(t)
	for _, l := range []*listener{asked, read} {
		end := l.toEnd()
		var p Problem
		if err := json.Unmarshal([]byte(end.data), &p); err != nil || end.name != "stream.closed" || end.id != "" || p.Code != CodeInvalidKey || p.Status != 401 {
			t.Errorf("%v: %+v", err, end)
		}
	}
	if res := <-whole; res.StatusCode != 401 || a.problem(res).Code != CodeInvalidKey {
		t.Errorf("%d: %s", res.StatusCode, res.body)
	}
	for _, r := range []request{{method: "GET", path: events.path}, {method: "GET", path: "/v1/conversations"}, ask(replyPathOf, "")} {
		r.header = bearer(secret)
		a.refused(401, CodeInvalidKey, r)
	}
	m.pieces <- "that grows again."
	close(m.pieces)
	if end := others.toEnd(); end.name != "reply.completed" || others.text != "A wood that grows again." {
		t.Errorf("%s after %q", end.name, others.text)
	}
}

// TestRevokedKeyCutsFiles revokes a key amid an import.
func TestRevokedKeyCutsFiles(t *testing.T) {
	t.Parallel()
	a := newAPI(t, watchful)
	plant(t, a.store, "c")
	_, _ = a.newKey(tree.DefaultTenant)
	before := a.state()
	key, secret := a.newKey(tree.DefaultTenant)
	conn := a.dial() // http.Transport loses an answer that comes while it still sends
	chunk := func(text string) error {
		_, err := fmt.Fprintf(conn, "%x\r\n%s\r\n", len(text), text)
		return err
	}
	_, err := io.WriteString(conn, "POST /v1/imports HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/octet-stream\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\nAuthorization: Bearer "+secret+"\r\n\r\n")
	check.NoError(t, err)
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute)) // the piece would take ten
	in := bufio.NewReader(conn)
	if res, err := http.ReadResponse(in, nil); err != nil || res.StatusCode != 100 { // the key is sound
		t.Fatal(res, err)
	}
	check.NoError(t, chunk(`[{"role":"user","content":"x"}`))
	check.Must(a.keys.Revoke(t.Context(), key.ID))(t)
	go func() { // as slowly as it may, until the server hangs up
		for chunk(" ") == nil {
			time.Sleep(10 * time.Millisecond)
		}
	}()
	res := check.Must(http.ReadResponse(in, nil))(t)
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != 401 || !strings.Contains(string(answer), "invalid_key") {
		t.Errorf("%d, %v: %s", res.StatusCode, err, answer)
	}
	check.Equal(t, "what is stored", a.state(), before)
}

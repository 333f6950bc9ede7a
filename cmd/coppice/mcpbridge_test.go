package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strconv"
	"sync"
	"testing"
)

// withKey is a server that adds a key to each request for another one. The
// conformance suite has no way to send one.
func withKey(t *testing.T, to, key string) string {
	t.Helper()
	at, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(at)
		r.Out.Host = r.In.Host // which a scenario forges
		r.Out.Header.Set("Authorization", "Bearer "+key)
	}})
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// A bridge answers requests over HTTP with what a program says to them over its
// standard input and output. The conformance suite only speaks HTTP.
type bridge struct {
	in      io.Writer
	mu      sync.Mutex
	last    int
	waiting map[string]chan map[string]json.RawMessage // by the ids that the program is given
}

// overPipes starts a program, and serves it until the test ends.
func overPipes(t *testing.T, program string) string {
	t.Helper()
	cmd := exec.Command(program) // which ends with its input
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b := &bridge{in: in, waiting: map[string]chan map[string]json.RawMessage{}}
	var read sync.WaitGroup
	read.Go(func() { b.read(t, out) })
	web := httptest.NewServer(b)
	t.Cleanup(func() {
		in.Close()
		read.Wait()
		if err := cmd.Wait(); err != nil {
			t.Error("coppice mcp: ", err)
		}
		web.Close()
	})
	return web.URL
}

// read hands out the program's answers.
func (b *bridge) read(t *testing.T, out io.Reader) {
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(line, &m); err != nil {
			t.Errorf("no message: %s", line)
			continue
		}
		b.mu.Lock()
		id := string(m["id"])
		if asked, found := b.waiting[id]; found && m["method"] == nil {
			delete(b.waiting, id)
			asked <- m // whose it is from here on
		}
		b.mu.Unlock()
	}
}

func (b *bridge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m map[string]json.RawMessage
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
		http.Error(w, "only a message of the protocol can be posted", http.StatusMethodNotAllowed)
		return
	}
	theirs := m["id"]
	var answer chan map[string]json.RawMessage
	b.mu.Lock()
	if theirs != nil { // which is the client's, of which there may be several
		b.last++
		m["id"] = json.RawMessage(strconv.Itoa(b.last))
		answer = make(chan map[string]json.RawMessage, 1)
		b.waiting[string(m["id"])] = answer
	}
	line, err := json.Marshal(m)
	if err == nil {
		_, err = b.in.Write(append(bytes.TrimSpace(line), '\n'))
	}
	b.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	if answer == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	select {
	case m := <-answer:
		m["id"] = theirs
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(m)
	case <-r.Context().Done():
	}
}

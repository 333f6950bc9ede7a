package firsttoken

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"time"
)

// upstream is a fake model: it reads a request, and streams an answer of so many
// pieces at a pace.
type upstream struct {
	server *httptest.Server
	proxy  *httptest.Server // before it
	pieces atomic.Int64
	pause  atomic.Int64           // between two pieces, in nanoseconds
	prompt atomic.Pointer[[]byte] // of the last request, as it came
}

func startUpstream() (*upstream, error) {
	u := &upstream{}
	u.pieces.Store(4)
	u.server = httptest.NewServer(http.HandlerFunc(u.serve))
	target, err := url.Parse(u.server.URL)
	if err != nil {
		u.server.Close()
		return nil, err
	}
	u.proxy = httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1, // at once
		ErrorLog:      log.New(io.Discard, "", 0),
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     &http.Transport{MaxIdleConnsPerHost: 1000},
	})
	return u, nil
}

func (u *upstream) close() {
	u.proxy.Close()
	u.server.Close()
}

func (u *upstream) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client went away
	}
	u.prompt.Store(&body)
	w.Header().Set("Content-Type", "text/event-stream")
	const event = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"fake","choices":[{"index":0,"delta":%s,"finish_reason":%s}]}` + "\n\n"
	flusher := http.NewResponseController(w)
	write := func(delta, finish string) bool {
		_, err := fmt.Fprintf(w, event, delta, finish)
		return err == nil && flusher.Flush() == nil
	}
	if !write(`{"role":"assistant","content":""}`, "null") {
		return
	}
	pause := time.Duration(u.pause.Load())
	for i := range u.pieces.Load() {
		if i > 0 && pause > 0 {
			time.Sleep(pause)
		}
		if !write(`{"content":"token "}`, "null") {
			return
		}
	}
	write("{}", `"stop"`)
	_, _ = io.WriteString(w, "data: [DONE]\n\n") // who asked knows when it fails
}

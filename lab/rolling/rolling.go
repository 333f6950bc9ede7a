// Package rolling tries what happens while a new version of the program is rolled
// out: servers of two versions work on one database, the newer of which has
// migrated it. Each does all kinds of work on what the other one stored.
package rolling

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// A Server is one of the two.
type Server struct {
	Name string // for people
	Addr string // host:port
}

// A Count is of the requests of one kind that a server was sent.
type Count struct {
	Server, Kind string
	Right, Wrong int    // wrong is another status, or another answer, than it should be
	First        string // what the first wrong one said
}

// Config says what is tried.
type Config struct {
	Servers [2]Server
	Rounds  int // how many conversations
	Clients int // at a time
}

// Run has clients talk to both servers by turns, and counts what came of each kind
// of request.
func Run(ctx context.Context, cfg Config) ([]Count, error) {
	t := &tally{counts: map[[2]string]*Count{}}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var clients sync.WaitGroup
	for client := range cfg.Clients {
		clients.Go(func() {
			for i := client; i < cfg.Rounds && ctx.Err() == nil; i += cfg.Clients {
				if err := talk(ctx, t, i, cfg.Servers[i%2], cfg.Servers[1-i%2]); err != nil {
					cancel(err)
				}
			}
		})
	}
	clients.Wait()
	return t.list(cfg.Servers), context.Cause(ctx)
}

// talk holds a conversation, each message of which goes to the other server than
// the one before, and is read on both.
func talk(ctx context.Context, t *tally, number int, one, other Server) error {
	word := fmt.Sprintf("hazel%dgrove", number)
	var c struct{ ID string }
	if err := t.do(ctx, one, "create", "POST", "/v1/conversations", map[string]any{"title": word}, 201, &c); err != nil || c.ID == "" {
		return err
	}
	path := "/v1/conversations/" + c.ID
	var parent any
	for turn := range 4 {
		s := []Server{one, other}[turn%2]
		var m struct{ ID string }
		body := map[string]any{"parent_id": parent, "role": []string{"user", "assistant"}[turn%2], "content": fmt.Sprint("Turn ", turn, " of ", word)}
		if err := t.do(ctx, s, "append", "POST", path+"/messages", body, 201, &m); err != nil || m.ID == "" {
			return err
		}
		parent = m.ID
	}
	for _, s := range []Server{other, one} {
		var m struct{ ID, Content string }
		err := t.do(ctx, s, "reply", "POST", path+"/branches/active/replies", map[string]any{"stream": false, "message": map[string]any{"role": "user", "content": "And " + word + "?"}}, 201, &m)
		if err != nil || m.ID == "" {
			return err
		}
		for _, reader := range []Server{one, other} {
			var read struct{ ID, Content string }
			if err := t.do(ctx, reader, "read a reply", "GET", path+"/messages/"+m.ID, nil, 200, &read); err != nil {
				return err
			}
			if read != m {
				t.note(reader, "read a reply", fmt.Sprintf("%v, and the server that made it gave %v", read, m))
			}
			if err := t.do(ctx, reader, "events of a reply", "GET", path+"/replies/"+m.ID+"/events", nil, 200, nil); err != nil {
				return err
			}
		}
	}
	for _, s := range []Server{one, other} {
		var found struct {
			Data []struct {
				Message struct {
					ConversationID string `json:"conversation_id"`
				}
			}
		}
		if err := t.do(ctx, s, "search", "GET", "/v1/search?query="+url.QueryEscape(word), nil, 200, &found); err != nil {
			return err
		}
		if len(found.Data) == 0 || found.Data[0].Message.ConversationID != c.ID {
			t.note(s, "search", fmt.Sprintf("%q isn't found: %+v", word, found))
		}
		var transcript struct{ Data []json.RawMessage }
		if err := t.do(ctx, s, "transcript", "GET", path+"/branches/active/transcript", nil, 200, &transcript); err != nil {
			return err
		}
		if len(transcript.Data) != 8 {
			t.note(s, "transcript", fmt.Sprintf("%d messages, want 8", len(transcript.Data)))
		}
		for kind, read := range map[string]string{
			"context": "/branches/active/context", "recall": "/branches/active/recall?query=" + word, "tree": "/tree", "explain": "/branches/active/explain",
		} {
			if err := t.do(ctx, s, kind, "GET", path+read, nil, 200, nil); err != nil {
				return err
			}
		}
		if err := t.do(ctx, s, "compaction", "POST", path+"/branches/active/compactions", map[string]any{"keep_recent_messages": 1}, 200, nil); err != nil {
			return err
		}
	}
	return nil
}

// A tally counts what came of requests.
type tally struct {
	mu     sync.Mutex
	counts map[[2]string]*Count
}

// add changes the count of a kind of request.
func (t *tally) add(s Server, kind string, f func(*Count)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := [2]string{s.Name, kind}
	if t.counts[key] == nil {
		t.counts[key] = &Count{Server: s.Name, Kind: kind}
	}
	f(t.counts[key])
}

// note counts an answer that came and is wrong.
func (t *tally) note(s Server, kind, why string) {
	t.add(s, kind, func(c *Count) {
		c.Wrong++
		if c.First == "" {
			c.First = why
		}
	})
}

// do sends a request. An answer of another status is counted. An error is one of
// the whole run.
func (t *tally) do(ctx context.Context, s Server, kind, method, path string, body any, status int, out any) error {
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+s.Addr+path, bytes.NewReader(content))
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %s: %w", s.Name, kind, err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode == status && out != nil {
		err = json.Unmarshal(answer, out)
	}
	if err != nil || res.StatusCode != status {
		t.note(s, kind, strings.TrimSpace(fmt.Sprintf("%d: %.300s %v", res.StatusCode, answer, errors.Join(err))))
		return nil
	}
	t.add(s, kind, func(c *Count) { c.Right++ })
	return nil
}

// Ready tells whether a server says that it can take requests.
func Ready(ctx context.Context, s Server) (bool, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr+"/readyz", nil)
	if err != nil {
		return false, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return false, err
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK, nil
}

func (t *tally) list(servers [2]Server) (list []Count) {
	for _, s := range servers {
		for _, kind := range []string{"create", "append", "reply", "read a reply", "events of a reply", "search", "transcript", "context", "recall", "tree", "explain", "compaction"} {
			if c := t.counts[[2]string{s.Name, kind}]; c != nil {
				list = append(list, *c)
			}
		}
	}
	return list
}

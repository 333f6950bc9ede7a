package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// ask makes a conversation and begins a reply in it.
func (s *served) ask(t *testing.T, text string) (conversation string, events *http.Response) {
	t.Helper()
	var c struct{ ID string }
	call(t, http.MethodPost, s.url+"/v1/conversations", nil, http.StatusCreated, &c)
	body := check.Must(json.Marshal(map[string]any{"stream": true, "message": map[string]string{"role": "user", "content": text}}))(t)
	req := check.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/conversations/"+c.ID+"/branches/active/replies", strings.NewReader(string(body))))(t)
	req.Header.Set("Content-Type", "application/json")
	res := check.Must(http.DefaultClient.Do(req))(t)
	t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		answer, _ := io.ReadAll(res.Body)
		t.Fatalf("status %d: %s", res.StatusCode, answer)
	}
	return c.ID, res
}

// A server that is told to stop gives running replies a while, and keeps what
// came of those that take longer. Their clients hear of it, however short the while
// is.
func TestServeStoresRepliesWhenItStops(t *testing.T) {
	t.Parallel()
	fake := llmtest.NewServer(t, llmtest.HangMidway(strings.Repeat("Hazel and ash. ", 20)))
	env := []string{"DATABASE_URL=" + dbtest.URL(t), "OPENAI_API_KEY=", "OPENAI_BASE_URL=" + fake.URL()}
	s := serve(t, env, "--reply-model", "gpt-4o", "--shutdown-timeout", "1ms")
	conversation, res := s.ask(t, "What grows there?")
	events := bufio.NewReader(res.Body)
	for {
		line := check.Must(events.ReadString('\n'))(t)
		if line == "event: reply.delta\n" {
			break
		}
	}
	s.signal(t, syscall.SIGTERM)
	rest, err := io.ReadAll(events)
	check.That(t, err == nil && strings.Contains(string(rest), "event: reply.stopped\n"),
		"the stream ended with %v:\n%s", err, rest)
	if code := s.wait(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, s.logged())
	}

	s = serve(t, env)
	var transcript struct {
		Data []struct {
			Content  string
			Metadata struct{ Reply struct{ Status string } }
		}
	}
	call(t, http.MethodGet, s.url+"/v1/conversations/"+conversation+"/branches/active/transcript", nil, http.StatusOK, &transcript)
	if n := len(transcript.Data); n != 2 || !strings.HasPrefix(transcript.Data[1].Content, "Hazel and ash. ") || transcript.Data[1].Metadata.Reply.Status != "stopped" {
		t.Errorf("%+v", transcript)
	}
}

package main

import (
	"bufio"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// A program that is killed amid an answer has what came of it after its next
// start, marked as interrupted. The answer can be asked for again, as a sibling.
func TestKillAmidAnAnswer(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("Hazel and ash. ", 20)
	fake := llmtest.NewServer(t, llmtest.HangMidway(text))
	url := dbtest.URL(t)
	env := []string{"DATABASE_URL=" + url, "OPENAI_API_KEY=", "OPENAI_BASE_URL=" + fake.URL()}
	s := serve(t, env, "--reply-model", "gpt-4o")
	conversation, res := s.ask(t, "What grows there?")
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	streamed, begin := make(chan string, 1), time.Now()
	go func() {
		lines := bufio.NewScanner(res.Body)
		var all strings.Builder
		for lines.Scan() {
			all.WriteString(lines.Text() + "\n")
		}
		streamed <- all.String()
	}()
	var saved string
	for half := text[:len(text)/2]; saved != half; time.Sleep(5 * time.Millisecond) {
		if err := conn.QueryRow(t.Context(), "select coalesce(max(content), '') from reply_checkpoints").Scan(&saved); err != nil {
			t.Fatal(err)
		}
		if time.Since(begin) > patience {
			t.Fatalf("saved is %q, want %q", saved, half)
		}
	}
	s.signal(t, syscall.SIGKILL)
	s.wait(t)
	if events := <-streamed; !strings.Contains(events, "event: reply.delta") || strings.Contains(events, "event: reply.stopped") {
		t.Errorf("%s", events)
	}

	// The offline model answers now. By its address the program knows what it left.
	s = serve(t, env, "--addr", strings.TrimPrefix(s.url, "http://"))
	var transcript struct {
		Data []struct {
			ID       string
			Content  string
			Siblings struct{ Count int }
			Metadata struct {
				Reply struct {
					Status       string
					FinishReason string `json:"finish_reason"`
				}
			}
		}
	}
	branch := s.url + "/v1/conversations/" + conversation + "/branches/"
	for begin := time.Now(); len(transcript.Data) < 2; time.Sleep(20 * time.Millisecond) {
		call(t, http.MethodGet, branch+"active/transcript", nil, http.StatusOK, &transcript)
		if time.Since(begin) > patience {
			t.Fatalf("%+v\n%s", transcript, s.logged())
		}
	}
	if m := transcript.Data[1]; m.Content != saved || m.Metadata.Reply.Status != "stopped" || m.Metadata.Reply.FinishReason != "interrupted" {
		t.Errorf("%+v", m)
	}
	call(t, http.MethodPost, branch+transcript.Data[0].ID+"/replies", nil, http.StatusCreated, nil)
	call(t, http.MethodGet, branch+"active/transcript", nil, http.StatusOK, &transcript)
	if n := len(transcript.Data); n != 2 || transcript.Data[1].Siblings.Count != 2 || transcript.Data[1].Content == saved {
		t.Errorf("%+v", transcript)
	}
	var left int
	if err := conn.QueryRow(t.Context(), "select count(*) from reply_checkpoints").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d checkpoints are left, %v", left, err)
	}
}

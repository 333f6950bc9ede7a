package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm/llmtest"
)

// chatModels answers what chats ask: with the question and the number of times
// that it was asked, or as the question says. The model of summaries gives titles.
func chatModels(t *testing.T) *llmtest.Server {
	var mu sync.Mutex
	asked := map[string]int{}
	s := llmtest.NewServer(t)
	s.Otherwise(llmtest.Reply(func(r llmtest.Request) llmtest.Behaviour {
		if r.Model == "gpt-4o-mini" {
			return llmtest.Answer("Trees, cut and grown again")
		}
		var last struct{ Content any }
		if err := json.Unmarshal(r.Messages[len(r.Messages)-1], &last); err != nil {
			t.Error(err)
		}
		text := fmt.Sprint(last.Content)
		mu.Lock()
		asked[text]++
		n := asked[text]
		mu.Unlock()
		answer := fmt.Sprintf("Answer %d of %s to %q, after %d messages.", n, r.Model, text, len(r.Messages)-1)
		switch {
		case strings.HasPrefix(text, "Think"):
			return llmtest.Think("First this.\nThen that.", answer)
		case strings.HasPrefix(text, "Fail") && n == 1:
			return llmtest.Fail(401)
		case strings.HasPrefix(text, "Steer"):
			return llmtest.Answer("\x1b[2JGone.\r\nNot gone.")
		case strings.HasPrefix(text, "Hang"):
			return llmtest.HangMidway(strings.Repeat("Hazel and ash. ", 20))
		}
		return llmtest.Answer(answer)
	}))
	return s
}

func chatEnv(t *testing.T, models *llmtest.Server) []string {
	return []string{"DATABASE_URL=" + dbtest.URL(t), "OPENAI_API_KEY=", "OPENAI_BASE_URL=" + models.URL()}
}

var (
	anyID    = regexp.MustCompile(`\b0[0-9a-f]{7}(-[0-9a-f]+)*-?`)
	anyTime  = regexp.MustCompile(`20\d\d-\d\d-\d\d \d\d:\d\d`)
	anyBlank = regexp.MustCompile(` {2,}`)
	anyCut   = regexp.MustCompile(`(?m)^(.{30}).*…  ← ID`)
)

// withoutIDs is what a chat shows, without what differs from run to run: ids, and
// with their lengths the widths of columns and the text that has room beside them,
// and times.
func withoutIDs(s string) string {
	s = anyTime.ReplaceAllString(anyID.ReplaceAllString(s, "ID"), "TIME")
	return anyCut.ReplaceAllString(anyBlank.ReplaceAllString(s, "  "), "$1…  ← ID")
}

// Chats by scripts, one after the other on one database.
func TestChat(t *testing.T) {
	t.Parallel()
	env := chatEnv(t, chatModels(t))
	for _, tt := range []struct {
		name   string
		args   []string
		script string
	}{
		{"new", nil, "What is a coppice?\nAnd a\\\npollard?\n/quit\nNever read.\n"},
		{"branches", []string{"cut and GROWN"}, "/edit 1\nWhat is a hedge?\n/regenerate\n/switch\n/switch 3\n/edit\nAnd an orchard?\n/map\n/switch 9\n/switch zzzz\n"},
		{"models", []string{"cut and grown", "--reply-model", "gpt-4o", "--reply-model", "o3"}, "/model\n/model o3\n/model\nThink about it.\n/model nobody\n/regenerate gpt-4o\n"},
		{"folded", []string{"cut and grown", "--no-reasoning"}, "Think again.\n"},
		{"mistakes", []string{"cut and grown"}, "/chop\n/edit 99\n/edit zero\n/edit\n\n/show zero\n/show 1\n//quit is no command here\n/help\n"},
		{"failure", nil, "/edit\n/regenerate\n/switch\n/map\n/title A title\nFail, please.\n/regenerate\n/title Of my own\n"},
		{"hostile", nil, "Steer my\x1b[31m terminal.\n"},
		{"unknown", []string{"zebra"}, "Hello\n"},
		{"bad_flags", []string{"--reply-timeout", "0s"}, ""},
	} {
		args := append([]string{"chat"}, tt.args...)
		if !strings.Contains(strings.Join(args, " "), "--reply-model") {
			args = append(args, "--reply-model", "gpt-4o")
		}
		args = append(args, "--summary-model", "gpt-4o-mini")
		r := runProgram(t, env, strings.NewReader(tt.script), args...)
		golden(t, "chat/"+tt.name, withoutIDs(commandText(append([]string{"chat"}, tt.args...), r)))
	}
	if out := mustRun(t, env, "list"); !strings.Contains(out, "Of my own") || strings.Count(out, "Trees, cut and grown again") != 2 {
		t.Errorf("the conversations are:\n%s", out)
	}
}

// Two models answer at once. The chat stays, until one answer is kept.
func TestChatCompare(t *testing.T) {
	t.Parallel()
	env := chatEnv(t, chatModels(t))
	script := "What is a coppice?\n/compare gpt-4o o3\n/title Compared\n/show 1\n/switch 2\n/compare one\n"
	r := runProgram(t, env, strings.NewReader(script), "chat", "--reply-model", "gpt-4o", "--reply-model", "o3", "--titles", "off")
	_, compared, _ := strings.Cut(r.stdout, "── gpt-4o\n")
	before, kept, _ := strings.Cut(compared, "Compared")
	if strings.Count(before, "of gpt-4o to") != 1 || strings.Count(before, "of o3 to") != 1 || !strings.Contains(before, "(2)\n") {
		t.Errorf("the answers are:\n%s", r.stdout)
	}
	if stays, switched, _ := strings.Cut(kept, "of gpt-4o to"); strings.Contains(stays, "of o3 to") || !strings.Contains(switched, "of o3 to") || !strings.Contains(switched, "2 to 8 answers") {
		t.Errorf("after the comparison:\n%s", kept)
	}
}

// A branch is switched to by the start of its id, and the active head follows.
func TestChatSwitchByID(t *testing.T) {
	t.Parallel()
	env := chatEnv(t, chatModels(t))
	mustRun(t, env, "import", hedgeFile)
	const hedge = "A hedge for the shade"
	var tree struct {
		HeadID string `json:"head_id"`
		Data   []struct{ ID, Preview string }
	}
	check.NoError(t, json.Unmarshal([]byte(mustRun(t, env, "tree", "--json", hedge)), &tree))
	r := runProgram(t, env, strings.NewReader("/edit 1\nAnother beginning\n/switch "+tree.Data[1].ID+"\n/title\n"), "chat", "hedge for", "--reply-model", "gpt-4o")
	check.Need(t, r.code == 0 && strings.Contains(r.stdout, "Another beginning"),
		"exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	check.Lacks(t, "the active branch is", mustRun(t, env, "show", hedge), "Another beginning")
}

// An edit keeps the pictures of the message.
func TestChatEditKeepsPictures(t *testing.T) {
	t.Parallel()
	env := chatEnv(t, chatModels(t))
	const picture, name = "https://example.com/tree.png", "What tree?"
	talk := `{"title":"` + name + `","messages":[{"role":"user","content":[{"type":"text","text":"What tree?"},{"type":"image_url","image_url":{"url":"` + picture + `"}}]},{"role":"assistant","content":"A hazel."}]}`
	r := runProgram(t, env, strings.NewReader(talk+"\n"), "import", "--format", "messages", "-")
	check.Need(t, r.code == 0, "%v", r.stderr)
	if r := runProgram(t, env, strings.NewReader("/edit\nWhich tree?\n"), "chat", name, "--reply-model", "gpt-4o"); r.code != 0 {
		t.Fatal(r.stderr)
	}
	if out := mustRun(t, env, "context", "--messages", name); !strings.Contains(out, "Which tree?") || !strings.Contains(out, picture) {
		t.Errorf("after the edit the branch is\n%s", out)
	}
}

// A chatting is a chat that a test drives.
type chatting struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	all strings.Builder
}

func chatWith(t *testing.T, env []string, args ...string) *chatting {
	t.Helper()
	c := &chatting{cmd: command(t, env, append([]string{"chat", "--reply-model", "gpt-4o"}, args...)...)}
	c.cmd.Stderr = &c.all
	in := check.Must(c.cmd.StdinPipe())(t)
	out := check.Must(c.cmd.StdoutPipe())(t)
	c.in, c.out = in, bufio.NewReader(out)
	check.NoError(t, c.cmd.Start())
	t.Cleanup(func() { c.cmd.Process.Kill() })
	return c
}

// await reads until the chat has shown a text.
func (c *chatting) await(t *testing.T, text string) {
	t.Helper()
	var seen strings.Builder
	for !strings.Contains(seen.String(), text) {
		b, err := c.out.ReadByte()
		if err != nil {
			t.Fatalf("%v; the chat showed no %q:\n%s", err, text, seen.String())
		}
		seen.WriteByte(b)
	}
}

// end gives what the chat shows to its end, and its exit code.
func (c *chatting) end(t *testing.T) (string, int) {
	t.Helper()
	rest := check.Must(io.ReadAll(c.out))(t)
	_ = c.cmd.Wait() // whose error is the exit code
	return string(rest), c.cmd.ProcessState.ExitCode()
}

// Ctrl-C stops an answer, whose text is kept, and not the chat. At the prompt it
// ends the chat. A signal that ends the program amid an answer leaves what came of it.
func TestChatInterrupt(t *testing.T) {
	t.Parallel()
	env := chatEnv(t, chatModels(t))
	c := chatWith(t, env)
	io.WriteString(c.in, "Hang on.\n")
	c.await(t, "Hazel and ash.")
	c.cmd.Process.Signal(syscall.SIGINT)
	c.await(t, "stopped, what came is kept")
	io.WriteString(c.in, "What now?\n")
	c.await(t, "after 2 messages.")
	c.in.Close()
	rest, code := c.end(t)
	check.That(t, code == 0, "exit code %d\n%s%s", code, rest, &c.all)
	check.Has(t, "the conversation is", mustRun(t, env, "show", "Hang on"), "Hazel and ash.", "What now?")

	c = chatWith(t, env)
	c.await(t, "/help lists the commands.")
	c.cmd.Process.Signal(syscall.SIGINT)
	rest, code = c.end(t)
	check.That(t, code == exitInterrupt, "at the prompt: exit code %d\n%s%s", code, rest, &c.all)

	c = chatWith(t, env)
	io.WriteString(c.in, "Hang for good.\n")
	c.await(t, "Hazel and ash.")
	c.cmd.Process.Signal(syscall.SIGTERM)
	rest, code = c.end(t)
	check.That(t, code == exitInterrupt, "terminated: exit code %d\n%s%s", code, rest, &c.all)
	check.Has(t, "the conversation is", mustRun(t, env, "show", "Hang for good"), "Hazel and ash.")
}

// The keys of a line editor.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	k := &keyboard{in: strings.NewReader("ab\x03c\x03"), typed: []byte("old")}
	for _, size := range []int{64, 2} {
		got, err := io.ReadAll(readerOf{k, size})
		if want := map[int]string{64: "oldab\x05\x15c\x05\x15", 2: "x\x05\x15"}[size]; err != nil || string(got) != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
		k = &keyboard{in: strings.NewReader("x\x03")}
	}
	for line, want := range map[string]string{"/ed": "/edit ", "/re": "/regenerate ", "/m": "", "/ma": "/map ", "/x": "", "ed": ""} {
		if got, pos, ok := completeCommandName(line, len(line), '\t'); got != want || ok != (want != "") || pos != len(want) {
			t.Errorf("%q: %q, %d, %v", line, got, pos, ok)
		}
	}
}

// readerOf reads at most so many bytes at a time.
type readerOf struct {
	io.Reader
	size int
}

func (r readerOf) Read(p []byte) (int, error) { return r.Reader.Read(p[:min(len(p), r.size)]) }

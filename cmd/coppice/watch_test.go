package main

import (
	"bufio"
	"bytes"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/tree"
)

// A watching is a command with --watch.
type watching struct {
	name string
	cmd  *exec.Cmd
	out  *bufio.Reader
}

func watchWith(t *testing.T, env []string, args ...string) *watching {
	t.Helper()
	w := &watching{name: args[0], cmd: command(t, env, append(args, "--watch")...)}
	out := check.Must(w.cmd.StdoutPipe())(t)
	w.out = bufio.NewReader(out)
	check.NoError(t, w.cmd.Start())
	t.Cleanup(func() { w.cmd.Process.Kill() })
	return w
}

// bounded ends the command where it doesn't show in time what a test waits for.
func (w *watching) bounded() *time.Timer {
	return time.AfterFunc(2*timeout, func() { w.cmd.Process.Kill() })
}

// await reads until the command has shown a text, and gives what it showed.
func (w *watching) await(t *testing.T, text string) string {
	t.Helper()
	defer w.bounded().Stop()
	var seen strings.Builder
	for !strings.Contains(seen.String(), text) {
		b, err := w.out.ReadByte()
		if err != nil {
			t.Fatalf("%v; %s shows no %q:\n%s", err, w.name, text, seen.String())
		}
		seen.WriteByte(b)
	}
	return seen.String()
}

// end interrupts the command, which then ends well.
func (w *watching) end(t *testing.T) {
	t.Helper()
	w.cmd.Process.Signal(syscall.SIGINT)
	w.ends(t)
}

// ends waits for the command to end well.
func (w *watching) ends(t *testing.T) {
	t.Helper()
	defer w.bounded().Stop()
	rest := check.Must(io.ReadAll(w.out))(t)
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("%s: %v\n%s", w.name, err, rest)
	}
}

// --watch shows what others add, until Ctrl-C or until the conversation is deleted.
func TestWatch(t *testing.T) {
	t.Parallel()
	env := chatEnv(t, chatModels(t))
	mustRun(t, env, "import", hedgeFile)
	const hedge = "A hedge for the shade"
	list, branches, show := watchWith(t, env, "list"), watchWith(t, env, "tree", hedge), watchWith(t, env, "show", hedge, "--limit", "1")
	list.await(t, hedge)
	branches.await(t, "active\n")
	shown := show.await(t, "above …")

	c := chatWith(t, env, hedge)
	io.WriteString(c.in, "One more.\n")
	branches.await(t, `Answer 1 of gpt-4o to "One more."`)
	shown += show.await(t, `Answer 1 of gpt-4o to "One more."`)
	check.That(t, !strings.Contains(shown, "another branch") && strings.Count(shown, "── ") == 3,
		"show has shown:\n%s", shown)
	io.WriteString(c.in, "/edit 1\nAnother beginning\n/title A new title\n")
	list.await(t, "A new title")
	if shown := show.await(t, `to "Another beginning"`); !strings.Contains(shown, "⑂ another branch, ") {
		t.Errorf("show tells of no other branch:\n%s", shown)
	}
	branches.await(t, "A new title")
	c.in.Close()
	rest, code := c.end(t)
	check.That(t, code == 0, "exit code %d\n%s%s", code, rest, &c.all)
	list.end(t)
	deleteConversation(t, env, "A new title")
	branches.ends(t)
	show.ends(t)
}

// deleteConversation does what a server does that is asked for it.
func deleteConversation(t *testing.T, env []string, title string) {
	t.Helper()
	url, _ := strings.CutPrefix(env[0], "DATABASE_URL=")
	pool := check.Must(db.Open(t.Context(), db.Config{URL: url}))(t)
	defer pool.Close()
	store := tree.New(pool)
	found, err := store.FindConversation(t.Context(), title)
	check.Need(t, err == nil && len(found) == 1, "%d conversations, %v", len(found), err)
	check.NoError(t, store.DeleteConversation(t.Context(), found[0].ID))
}

// What is drawn again is shown only where it differs.
func TestRedrawn(t *testing.T) {
	t.Parallel()
	var shown bytes.Buffer
	out := &terminal.Console{Writer: bufio.NewWriter(&shown)}
	text := ""
	draw := redrawn(out, func(page *terminal.Console) error { return second(page.WriteString(text)) })
	for _, text = range []string{"a\n", "a\n", "b\n", "b\n", "a\n"} {
		check.NoError(t, draw())
	}
	if err := out.Flush(); err != nil || shown.String() != "a\n\nb\n\na\n" {
		t.Errorf("%q, %v", shown.String(), err)
	}
}

func second[T any](_ T, err error) error { return err }

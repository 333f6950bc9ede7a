package main

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
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
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	w.out = bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.cmd.Process.Kill() })
	return w
}

// await reads until the command has shown a text, and gives what it showed.
func (w *watching) await(t *testing.T, text string) string {
	t.Helper()
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
	rest, err := io.ReadAll(w.out)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("%s: %v\n%s", w.name, err, rest)
	}
}

// Commands with --watch show what another program adds, until Ctrl-C.
func TestWatch(t *testing.T) {
	t.Parallel()
	env := chatEnv(t, chatModels(t))
	mustRun(t, env, "import", hedgeFile)
	const hedge = "A hedge for the shade"
	list, tree, show := watchWith(t, env, "list"), watchWith(t, env, "tree", hedge), watchWith(t, env, "show", hedge, "--limit", "1")
	list.await(t, hedge)
	tree.await(t, "active\n")
	shown := show.await(t, "above …")

	c := chatWith(t, env, hedge)
	io.WriteString(c.in, "One more.\n")
	tree.await(t, `Answer 1 of gpt-4o to "One more."`)
	shown += show.await(t, `Answer 1 of gpt-4o to "One more."`)
	if strings.Contains(shown, "another branch") || strings.Count(shown, "── ") != 3 {
		t.Errorf("show has shown:\n%s", shown)
	}
	io.WriteString(c.in, "/edit 1\nAnother beginning\n/title A new title\n")
	list.await(t, "A new title")
	show.await(t, "⑂ another branch, below ")
	show.await(t, `to "Another beginning"`)
	tree.await(t, "A new title")
	c.in.Close()
	if rest, code := c.end(t); code != 0 {
		t.Errorf("exit code %d\n%s%s", code, rest, &c.all)
	}
	for _, w := range []*watching{list, tree, show} {
		w.end(t)
	}
}

func TestWatchRefuses(t *testing.T) {
	t.Parallel()
	env := []string{"DATABASE_URL=" + dbtest.URL(t)}
	for _, command := range []string{"list", "tree x", "show x"} {
		r := runProgram(t, env, nil, append(strings.Fields(command), "--watch", "--json")...)
		if r.code != exitUsage || !strings.Contains(r.stderr, "GET /v1/events") {
			t.Errorf("%s: exit code %d\n%s", command, r.code, r.stderr)
		}
	}
}

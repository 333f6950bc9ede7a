package prompt

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tree"
)

// How a call ended is read from its result, and from nothing that a result is
// about.
func TestEnded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a line of a file\n", 100)
	for text, want := range map[string]string{
		"":                                         "",
		"3 radiators":                              "",
		"Error: no such file":                      "error",
		"Exit code 1\nmake: ***":                   "error, exit status 1",
		"ok\n\n[Process exited with code 0]":       "exit status 0",
		"<returncode>2</returncode>\n<output>":     "error, exit status 2",
		"done\nexit status 101":                    "error, exit status 101",
		"Command returned non-zero exit status 7.": "error, exit status 7",
		`{"output":"x","metadata":{"exit_code":3,"duration_seconds":0.1}}`: "error, exit status 3",
		`{"exitCode":0,"stdout":"x"}`:                                      "exit status 0",
		`{"exit_code":"many"}`:                                             "error",
		`{"exit_code":null}`:                                               "",
		"    return 1":                                                     "",
		"returncode = 1":                                                   "",
		"It says that exit code 1 means a failure of the test.":            "",
		long + "Exit code: 1\n" + long:                                     "", // another program's, which the text is about
		long + "Exit code: 1\n":                                            "error, exit status 1",
	} {
		if got := Read(prompttest.ToolSays("run", text)).Ended(); got != want {
			t.Errorf("%.80q ended with %q, want %q", text, got, want)
		}
	}
	if got := Read(prompttest.UserSays("Exit code 1")).Ended(); got != "" {
		t.Errorf("a user's message ended with %q", got)
	}
}

// testRun is what a run of tests prints: the failure stands in the middle.
func testRun(lines int) string {
	var b strings.Builder
	for n := range lines {
		if n == lines/2 {
			b.WriteString("--- FAIL: TestHedge (0.02s)\n    hedge_test.go:12: got 11 posts, want 12\n")
		}
		fmt.Fprintf(&b, "=== RUN   TestPost%04d in the field behind the barn\n", n)
	}
	return b.String() + "FAIL\nexit status 1\n"
}

// A long result keeps its beginning, its end, and of its middle what tells how it
// ended.
func TestCutResult(t *testing.T) {
	t.Parallel()
	got := CutResult(testRun(300), 2000)
	for _, want := range []string{"=== RUN   TestPost0000 ", "--- FAIL: TestHedge (0.02s)\n    hedge_test.go:12: got 11 posts, want 12\n", "FAIL\nexit status 1\n", "characters cut out, among them these lines: …]\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is lost:\n%s", want, got)
		}
	}
	if n := utf8.RuneCountInString(got); n > 2100 {
		t.Errorf("%d characters", n)
	}
	many := CutResult(strings.Repeat("error: first\n", 300)+strings.Repeat("x\n", 3000)+strings.Repeat("error: last\n", 300), 900)
	if !strings.Contains(many, "[…]\nerror: last\n") || utf8.RuneCountInString(many) > 1000 {
		t.Errorf("of many lines stay\n%s", many)
	}
	for _, c := range []struct {
		text  string
		limit int
	}{{"short", 2000}, {testRun(300), 399}, {strings.Repeat("plain words\n", 1000), 2000}, {strings.Repeat("error ", 1000), 2000}} {
		if got := CutResult(c.text, c.limit); got != CutMiddle(c.text, c.limit) {
			t.Errorf("%.20q in %d characters is %q", c.text, c.limit, got)
		}
	}
}

// What a model reads of an agent's calls.
func TestTranscriptOfCallsGolden(t *testing.T) {
	t.Parallel()
	check.Golden(t, "testdata/calls.golden", newTranscriber(fullLimits, Input{Nonce: prompttest.Nonce}).messages([]tree.Message{
		prompttest.UserSays("Mend the test of the hedge."),
		prompttest.AssistantCalls("run_tests", `{"package": "./hedge", "count": 1}`), prompttest.ToolSays("run_tests", testRun(120)),
		prompttest.AssistantCalls("edit", `{"file": "hedge.go", "line": 40}`), prompttest.ToolSays("edit", "The file hedge.go has been updated."),
		prompttest.AssistantCalls("shell", `{"command":["go","vet","./..."]}`), prompttest.ToolSays("shell", `{"output":"","metadata":{"exit_code":0}}`),
		prompttest.AssistantCalls("fetch", `{"url":"https://example.org/posts"}`), prompttest.ToolSays("fetch", "Error: timed out after 30 s"),
	}))
}

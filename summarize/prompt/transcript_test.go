package prompt

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tree"
)

// Of testdata/transcripts.txt each case is its name, messages, and what is made of them.
func TestTranscribe(t *testing.T) {
	t.Parallel()
	transcribed := func(m ...tree.Message) string {
		return newTranscriber(fullLimits, Input{Nonce: prompttest.Nonce}).messages(m)
	}
	for of := range strings.SplitSeq(string(check.Must(os.ReadFile("testdata/transcripts.txt"))(t)), "\n\n") {
		name, want, _ := strings.Cut(strings.TrimSuffix(of, "\n"), "\n")
		var messages []tree.Message
		for strings.HasPrefix(want, "{") {
			var body string
			body, want, _ = strings.Cut(want, "\n")
			messages = append(messages, tree.Message{Role: chat.Read([]byte(body)).Role, Body: []byte(body)})
		}
		got := transcribed(messages...)
		check.That(t, got == want+"\n", "%s:\n got %q\nwant %q", name, got, want)
	}
	check.Equal(t, "no JSON", transcribed(tree.Message{Role: tree.RoleUser, Body: []byte("oops \xff")}), "user:\n| oops \ufffd\n")
}

func TestTranscribeLimits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		message tree.Message
		most    int
	}{
		{"text", prompttest.UserSays(strings.Repeat("word ", 100_000)), 40_200},
		{"arguments", prompttest.AssistantCalls("write", `{"text":"`+strings.Repeat("x", 100_000)+`"}`), 700},
		{"result", prompttest.ToolSays("read", strings.Repeat("line\n", 100_000)), 3_000},
		{"tool name", prompttest.AssistantCalls(strings.Repeat("n", 1000), "{}"), 200},
	} {
		got := newTranscriber(fullLimits, Input{Nonce: prompttest.Nonce}).messages([]tree.Message{c.message})
		check.That(t, len(got) <= c.most && strings.Contains(got, "characters cut out …]"),
			"%s: %d bytes, want at most %d, with a mark: %.200q", c.name, len(got), c.most, got)
	}
}

func TestToolErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want bool
	}{
		{"Error: file not found", true}, {"error", true}, {"  ERROR [12] x", true}, {"Errors: 0", false}, {"errorless", false},
		{"Traceback (most recent call last):\n", true}, {"fatal: not a git repository", true}, {"panic: runtime error", true},
		{"<tool_use_error>String not found</tool_use_error>", true}, {"Exit code 0", false},
		{`{"error":"timeout"}`, true}, {`{"error":null,"data":[]}`, false}, {`{"error":""}`, false}, {`{"errors":[]}`, false}, {`{"errors":["x"]}`, true},
		{`{"is_error":true}`, true}, {`{"isError":false}`, false}, {`{"success":false}`, true}, {`{"ok":true}`, false}, {`{"status":"failed"}`, true},
		{`{"error"`, false}, {"No errors found.", false}, {"", false}, {"Exception in thread main", true},
	} {
		if got := Read(prompttest.ToolSays("x", c.text)).Failed; got != c.want {
			t.Errorf("%q: error %v, want %v", c.text, got, c.want)
		}
	}
	m := prompttest.ToolSays("x", "File not read.")
	for metadata, want := range map[string]bool{
		`{"source":{"is_error":true}}`: true, `{"source":{"isError":true}}`: true, `{"source":{"is_error":false}}`: false, `{"error":true}`: false, ``: false, `{"source":"error"}`: false,
	} {
		m.Metadata = json.RawMessage(metadata)
		if got := Read(m).Failed; got != want {
			t.Errorf("metadata %s: error %v, want %v", metadata, got, want)
		}
	}
	m = prompttest.Message(tree.RoleTool, map[string]any{"tool_call_id": "x", "content": "no", "is_error": true})
	check.That(t, Read(m).Failed, "is_error of the message itself is not seen")
	check.That(t, !Read(prompttest.UserSays("Error: it says")).Failed, "a user's message can't be a tool's error")
}

func TestCutMiddle(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text  string
		limit int
		want  string
	}{
		{"short", 5, "short"},
		{"abcdefghi", 6, "abcd [… 3 characters cut out …] hi"},
		{"äöüßéèêëñ", 9, "äöüßéèêëñ"},
		{"äöüßéèêëñ", 6, "äöüß [… 3 characters cut out …] ëñ"},
		{"abc", 0, " [… 3 characters cut out …] "},
		{"abc", -1, " [… 3 characters cut out …] "},
		{"", 0, ""},
		{"ab👩‍👩‍👧cdefgh", 5, "ab [… 9 characters cut out …] gh"}, // the family stays together, or goes
		{"ae\u0301bcdefgh", 3, "a [… 8 characters cut out …] h"}, // so do a letter and its accent
	} {
		got := CutMiddle(c.text, c.limit)
		check.That(t, got == c.want, "CutMiddle(%q, %d)\n got %q\nwant %q", c.text, c.limit, got, c.want)
	}
}

// How a call ended is read from its result, and from nothing that a result is about.
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
		got := Read(prompttest.ToolSays("run", text)).Ended()
		check.That(t, got == want, "%.80q ended with %q, want %q", text, got, want)
	}
	check.Equal(t, "the end of a user's message", Read(prompttest.UserSays("Exit code 1")).Ended(), "")
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

// A long result keeps its beginning, its end, and of its middle what tells how it ended.
func TestCutResult(t *testing.T) {
	t.Parallel()
	got := CutResult(testRun(300), 2000)
	for _, want := range []string{"=== RUN   TestPost0000 ", "--- FAIL: TestHedge (0.02s)\n    hedge_test.go:12: got 11 posts, want 12\n", "FAIL\nexit status 1\n", "characters cut out, among them these lines: …]\n"} {
		check.That(t, strings.Contains(got, want), "%q is lost:\n%s", want, got)
	}
	n := utf8.RuneCountInString(got)
	check.That(t, n <= 2100, "%d characters", n)
	many := CutResult(strings.Repeat("error: first\n", 300)+strings.Repeat("x\n", 3000)+strings.Repeat("error: last\n", 300), 900)
	check.That(t, strings.Contains(many, "[…]\nerror: last\n") && utf8.RuneCountInString(many) <= 1000,
		"of many lines stay\n%s", many)
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

// Files that tools read and changed are listed, carried on and bounded; failures and searches name none.
func TestWithPaths(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ tool, arguments, want string }{
		{"Read", `{"file_path":"/a.go","limit":40}`, "- read /a.go"},
		{"MultiEdit", `{"file_path":"/a.go","edits":[{"old_string":"x","new_string":"path"}]}`, "- changed /a.go"},
		{"str_replace_based_edit_tool", `{"command":"view","path":"/a.go"}`, "- read /a.go"},
		{"str_replace_based_edit_tool", `{"command":"insert","path":"/a.go"}`, "- changed /a.go"},
		{"read_multiple_files", `{"paths":["a","b"]}`, "- read a\n- read b"},
		{"move_file", `{"source":"a","destination":"b"}`, "- changed a\n- changed b"},
		{"apply_patch", `{"input":"*** Begin Patch\n*** Update File: a.go\n@@\n-x\n+y\n"}`, "- changed a.go"},
		{"apply_patch", "*** Begin Patch\n*** Add File: b.go\n+x\n", "- changed b.go"},
		{"grep", `{"pattern":"x","path":"src"}`, ""},
		{"bash", `{"command":"cat a.go"}`, ""},
		{"TodoWrite", `{"todos":[{"content":"read a.go"}]}`, ""},
		{"read", `{"path":"two\nlines"}`, ""},
	} {
		in := Input{TargetTokens: 1000, Fold: []tree.Message{prompttest.AssistantCalls(test.tool, test.arguments)}}
		text, list := CutPaths(WithPaths("Said.", in, prompttest.Quarters{}))
		check.That(t, text == "Said." && list == test.want,
			"%s %s is listed as %q below %q, want %q", test.tool, test.arguments, list, text, test.want)
	}
	fold := []tree.Message{
		prompttest.AssistantCalls("read", `{"path":"a"}`), prompttest.AssistantCalls("edit", `{"path":"gone"}`), prompttest.ToolSays("edit", "Error: no such file"),
		prompttest.AssistantCalls("read", `{"path":"c"}`),
	}
	in := Input{TargetTokens: 1000, Fold: fold, Paths: "- changed a\n- read b"}
	summary := WithPaths("Said.", in, prompttest.Quarters{})
	if want := "Said.\n\n## Files that tools used\n- read b\n- changed a\n- read c"; summary != want {
		t.Errorf("carried on, the list is %q, want %q", summary, want)
	}
	in.TargetTokens = 8 * (prompttest.Quarters{}.Count(pathsHeading) + 8)
	if _, list := CutPaths(WithPaths("Said.", in, prompttest.Quarters{})); list != "- changed a\n- read c" {
		t.Errorf("in little room, the list is %q", list)
	}
	if text, list := CutPaths(summary + pathsHeading + "- read d"); text != summary || list != "- read d" {
		t.Errorf("below a text that ends with such a list, %q is cut", list)
	}
	paths := make([]string, 100_000)
	for i := range paths {
		paths[i] = strconv.Itoa(i)
	}
	arguments, _ := json.Marshal(map[string]any{"paths": paths}) // texts always marshal
	var counter calls
	_, list := CutPaths(WithPaths("Said.", Input{TargetTokens: 1000, Fold: []tree.Message{prompttest.AssistantCalls("read", string(arguments))}}, &counter))
	check.That(t, counter <= 100 && strings.HasSuffix(list, "- read 99999"),
		"of 100,000 files %d are counted, and the list is %.200q", counter, list)
	if text, list := CutPaths(summary + "\nMore."); list != "" || !strings.HasSuffix(text, "More.") {
		t.Errorf("of what isn't the list, %q is cut", list)
	}
}

// calls counts how often it counts.
type calls int

func (c *calls) Count(text string) int {
	*c++
	return prompttest.Quarters{}.Count(text)
}

package prompt

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tree"
)

// TestWithPaths lists the files that tools read and changed, carries the list on, and
// bounds it. Calls that failed, searches and other arguments name none.
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
		if text != "Said." || list != test.want {
			t.Errorf("%s %s is listed as %q below %q, want %q", test.tool, test.arguments, list, text, test.want)
		}
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
	if counter > 100 || !strings.HasSuffix(list, "- read 99999") {
		t.Errorf("of 100,000 files %d are counted, and the list is %.200q", counter, list)
	}
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

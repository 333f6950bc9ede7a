package format

import (
	"strings"
	"testing"
)

// Providers take letters, digits, _ and - in the name of a function, and 64 of
// them at most.
func TestToolName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"": "tool", "look_up-2": "look_up-2", "mcp.files/read file": "mcp_files_read_file", "wëb": "w_b",
		strings.Repeat("x", 64): strings.Repeat("x", 64), strings.Repeat("x", 65): strings.Repeat("x", 64),
	} {
		if got := toolName(name); got != want {
			t.Errorf("%q becomes %q, want %q", name, got, want)
		}
	}
}

// What is cut off ends with a whole character.
func TestCutEnd(t *testing.T) {
	t.Parallel()
	for keep, want := range []string{"", "a", "a", "aé", "aé", "aé", "aé", "aé🌳", "aé🌳"} {
		if got := CutEnd("aé🌳", keep); got != want {
			t.Errorf("to %d bytes: %q, want %q", keep, got, want)
		}
	}
}

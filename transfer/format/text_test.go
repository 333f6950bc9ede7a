package format

import (
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

// Providers take letters, digits, _ and - in the name of a function, and 64 of
// them at most.
func TestToolName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"": "tool", "look_up-2": "look_up-2", "mcp.files/read file": "mcp_files_read_file", "wëb": "w_b",
		strings.Repeat("x", 64): strings.Repeat("x", 64), strings.Repeat("x", 65): strings.Repeat("x", 64),
	} {
		got := toolName(name)
		check.That(t, got == want, "%q becomes %q, want %q", name, got, want)
	}
}

// What is cut off ends with a whole character.
func TestCutEnd(t *testing.T) {
	t.Parallel()
	for keep, want := range []string{"", "a", "a", "aé", "aé", "aé", "aé", "aé🌳", "aé🌳"} {
		got := CutEnd("aé🌳", keep)
		check.That(t, got == want, "to %d bytes: %q, want %q", keep, got, want)
	}
}

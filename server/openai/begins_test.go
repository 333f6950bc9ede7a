package openai

import (
	"fmt"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

// Texts of side requests begin as the operator says, however their lines are broken.
func TestBegins(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text, beginning string
		want            bool
	}{
		{"### Task:\nGenerate a title", "### Task: Generate", true},
		{"### Task:\r\n\n  Generate", "### Task: Generate", true},
		{"### Task: Generate", "### Task:\n\tGen", true},
		{"### Task:\nRespond to the user query", "### Task: Generate", false},
		{" ### Task: Generate", "### Task: Generate", true},
		{"### Task:", "### Task: Generate", false},
		{"Título: é", "Título:\u00a0é", true},
		{"", "x", false},
		{"x", "", true},
	} {
		check.Equal(t, fmt.Sprintf("%q begins with %q", test.text, test.beginning), begins(test.text, test.beginning), test.want)
	}
}

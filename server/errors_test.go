package server

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

// TestEveryCodeIsDocumented holds openapi.yaml's list of codes, of which every answer
// of the tests has one, equal to its table, of which the manual is made. The table
// has the server's own codes with their status.
func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	doc := check.Must(document())(t)
	table := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^ +\\| `([a-z0-9_]+)` \\| (\\d+) \\| .+ \\|$").FindAllStringSubmatch(string(Spec), -1) {
		table[m[1]] = m[2]
	}
	listed := doc.Components.Schemas["Code"].Value.Enum
	for _, code := range listed {
		check.Equal(t, fmt.Sprint("that the table lacks ", code), table[code.(string)] == "", false)
	}
	if len(listed) != len(table) || len(table) < 60 {
		t.Errorf("openapi.yaml lists %d codes, and its table has %d", len(listed), len(table))
	}
	for code, kind := range kinds {
		check.Equal(t, "the table's status of "+string(code), table[string(code)], fmt.Sprint(answers[kind].status))
	}
}

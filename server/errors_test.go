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
		if table[code.(string)] == "" {
			t.Errorf("openapi.yaml's table lacks %s", code)
		}
	}
	if len(listed) != len(table) || len(table) < 60 {
		t.Errorf("openapi.yaml lists %d codes, and its table has %d", len(listed), len(table))
	}
	for code, kind := range kinds {
		if status := fmt.Sprint(answers[kind].status); table[string(code)] != status {
			t.Errorf("openapi.yaml's table says %s of %s, and it is %s", table[string(code)], code, status)
		}
	}
}

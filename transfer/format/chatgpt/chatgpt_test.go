package chatgpt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/transfer/formattest"
)

// What was thought before an answer stands with each of its versions, and not with
// thousands, which would take thousands of times the bytes of the file.
func TestThoughtsOfManyVersions(t *testing.T) {
	t.Parallel()
	thought := strings.Repeat("x ", 10_000)
	file := func(versions int) string {
		nodes := `"r":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["Why?"]}}}`
		for i, parent := range []string{"r", "t0"} {
			nodes += fmt.Sprintf(`,"t%d":{"parent":"%s","message":{"author":{"role":"assistant"},"content":{"content_type":"thoughts","thoughts":[{"content":"%s"}]}}}`, i, parent, thought)
		}
		for i := range versions {
			nodes += fmt.Sprintf(`,"v%d":{"parent":"t1","message":{"author":{"role":"assistant"},"content":{"content_type":"text","parts":["So."]}}}`, i)
		}
		return `[{"conversation_id":"c","title":"T","mapping":{` + nodes + `}}]`
	}
	for versions, want := range map[int]int{3: 4, 100: 0} {
		report, err := transfer.Import(t.Context(), nil, strings.NewReader(file(versions)), transfer.Options{DryRun: true})
		if (err != nil) != (want == 0) || report.Messages != want {
			t.Errorf("%d versions: %d messages, %v\n%s", versions, report.Messages, err, formattest.Notes(report))
		}
	}
}

package wire

import (
	"testing"

	"github.com/coppice-chat/coppice/fault"
)

// TestCompaction holds that the content of a compaction item is read again, and that
// anything else is refused.
func TestCompaction(t *testing.T) {
	t.Parallel()
	want := Compaction{someSummary, someNode.Node, "They said <b>é\"."}
	content := want.Content()
	if got, err := ReadCompaction(content); err != nil || got != want {
		t.Errorf("%+v became %+v: %v", want, got, err)
	}
	for _, other := range []string{"gAAAAABo", contentPrefix, content[len(contentPrefix):], content[:len(content)-8], content + "="} {
		if _, err := ReadCompaction(other); fault.Of(err).Field != "encrypted_content" || fault.Of(err).Kind != fault.Invalid {
			t.Errorf("%q: %v", other, err)
		}
	}
}

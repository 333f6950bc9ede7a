package wire

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/fault"
)

// TestSignedCompaction holds that what was sealed is read, that nothing else is, and that a
// changed character is found wherever it is.
func TestSignedCompaction(t *testing.T) {
	t.Parallel()
	key, other := []byte(strings.Repeat("a", 32)), []byte(strings.Repeat("b", 32))
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		want := SignedCompaction{someSummary, someNode.Node, text}
		content := want.Sign(key)
		got, err := VerifyCompaction(key, content)
		if err != nil || got != want {
			t.Fatalf("%+v became %+v: %v", want, got, err)
		}
		at := rapid.IntRange(len(tokenPrefix), len(content)-1).Draw(t, "at")
		for _, forged := range []string{
			content[:at] + string(rune(content[at])^1) + content[at+1:], content[:at], content + "A", content[:at] + "\n" + content[at:], tokenPrefix, content + "=",
			strings.Replace(content, tokenPrefix, "coppice.v2.", 1), strings.Replace(content, tokenPrefix, "", 1), want.Sign(other), "gAAAAABo", "",
		} {
			if _, err := VerifyCompaction(key, forged); fault.Of(err) == nil || fault.Of(err).Field != "encrypted_content" || fault.Of(err).Kind != fault.Invalid {
				t.Fatalf("%q was taken for %q: %v", forged, content, err)
			}
		}
	})
}

package wire

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/fault"
)

func newSigner(t *testing.T, keys ...string) *Signer {
	t.Helper()
	var all [][]byte
	for _, key := range keys {
		all = append(all, []byte(strings.Repeat(key, 32)))
	}
	s, err := NewSigner(all...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSigner holds that what was sealed is read, that nothing else is, and that a
// changed character is found wherever it is.
func TestSigner(t *testing.T) {
	t.Parallel()
	signer, other := newSigner(t, "a"), newSigner(t, "b")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		want := SignedCompaction{someSummary, someNode.Node, text}
		content := signer.Sign(want)
		got, err := signer.Verify(content)
		if err != nil || got != want {
			t.Fatalf("%+v became %+v: %v", want, got, err)
		}
		at := rapid.IntRange(len(tokenPrefix), len(content)-1).Draw(t, "at")
		for _, forged := range []string{
			content[:at] + string(rune(content[at])^1) + content[at+1:], content[:at], content + "A", content[:at] + "\n" + content[at:], tokenPrefix, content + "=",
			strings.Replace(content, tokenPrefix, "coppice.v2.", 1), strings.Replace(content, tokenPrefix, "", 1), other.Sign(want), "gAAAAABo", "",
		} {
			if _, err := signer.Verify(forged); fault.Of(err) == nil || fault.Of(err).Field != "encrypted_content" || fault.Of(err).Kind != fault.Invalid {
				t.Fatalf("%q was taken for %q: %v", forged, content, err)
			}
		}
	})
}

func TestSignerKeys(t *testing.T) {
	t.Parallel()
	old, renewed := newSigner(t, "a"), newSigner(t, "b", "a")
	if got, err := renewed.Verify(old.Sign(SignedCompaction{Text: "x"})); err != nil || got.Text != "x" {
		t.Errorf("what the old key signed is lost: %v", err)
	}
	if _, err := old.Verify(renewed.Sign(SignedCompaction{Text: "x"})); err == nil {
		t.Error("the old key signs on")
	}
	if _, err := NewSigner(); err == nil {
		t.Error("a seal without a key")
	}
	if _, err := NewSigner(make([]byte, 31)); err == nil {
		t.Error("a seal with a short key")
	}
}

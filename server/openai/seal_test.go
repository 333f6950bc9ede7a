package openai

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/fault"
)

func newSeal(t *testing.T, keys ...string) *Seal {
	t.Helper()
	var all [][]byte
	for _, key := range keys {
		all = append(all, []byte(strings.Repeat(key, 32)))
	}
	s, err := NewSeal(all...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSeal holds that what was sealed is read, that nothing else is, and that a
// changed character is found wherever it is.
func TestSeal(t *testing.T) {
	t.Parallel()
	seal, other := newSeal(t, "a"), newSeal(t, "b")
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		want := Sealed{someSummary, someNode.Node, text}
		content := seal.Close(want)
		got, err := seal.Open(content)
		if err != nil || got != want {
			t.Fatalf("%+v became %+v: %v", want, got, err)
		}
		at := rapid.IntRange(len(sealMark), len(content)-1).Draw(t, "at")
		for _, forged := range []string{
			content[:at] + string(rune(content[at])^1) + content[at+1:], content[:at], content + "A", content[:at] + "\n" + content[at:], sealMark, content + "=",
			strings.Replace(content, sealMark, "coppice.v2.", 1), strings.Replace(content, sealMark, "", 1), other.Close(want), "gAAAAABo", "",
		} {
			if _, err := seal.Open(forged); fault.Of(err) == nil || fault.Of(err).Field != "encrypted_content" || fault.Of(err).Kind != fault.Invalid {
				t.Fatalf("%q was taken for %q: %v", forged, content, err)
			}
		}
	})
}

func TestSealKeys(t *testing.T) {
	t.Parallel()
	old, renewed := newSeal(t, "a"), newSeal(t, "b", "a")
	if got, err := renewed.Open(old.Close(Sealed{Text: "x"})); err != nil || got.Text != "x" {
		t.Errorf("what the old key signed is lost: %v", err)
	}
	if _, err := old.Open(renewed.Close(Sealed{Text: "x"})); err == nil {
		t.Error("the old key signs on")
	}
	if _, err := NewSeal(); err == nil {
		t.Error("a seal without a key")
	}
	if _, err := NewSeal(make([]byte, 31)); err == nil {
		t.Error("a seal with a short key")
	}
}

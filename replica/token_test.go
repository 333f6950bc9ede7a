package replica

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/fault"
)

func testTokens(t interface{ Fatal(...any) }) tokens {
	made, err := newTokens([]byte(strings.Repeat("k", 32)))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Tokens come back as the furthest of their positions, to their tenant only.
func TestTokens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := testTokens(t)
		furthest, sent := db.Position(0), []string{}
		for _, p := range rapid.SliceOfN(rapid.Int64Min(0), 1, 5).Draw(t, "positions") {
			furthest = max(furthest, db.Position(p))
			sent = append(sent, k.seal("a", db.Position(p)))
		}
		header := strings.Join(sent, rapid.SampledFrom([]string{",", ", ", " ,,"}).Draw(t, "between"))
		if p, err := k.furthest("a", header); err != nil || p != furthest {
			t.Fatalf("%d, %v, want %d", p, err, furthest)
		}
		if _, err := k.furthest("b", header); !errors.Is(err, fault.Invalid) {
			t.Fatalf("another tenant's token: %v", err)
		}
		at := rapid.IntRange(0, len(sent[0])-1).Draw(t, "changed")
		changed := sent[0][:at] + string(sent[0][at]^1) + sent[0][at+1:]
		if _, err := k.furthest("a", changed); err == nil && at < len(changed)-1 { // the last character has unused bits
			t.Fatalf("a changed token was taken: %q", changed)
		}
	})
}

// Nobody learns from two tokens whether something was written between.
func TestTokensTellNothing(t *testing.T) {
	t.Parallel()
	k := testTokens(t)
	seen := map[string]bool{}
	for range 100 {
		seen[k.seal("a", 7)] = true
	}
	if len(seen) != 100 {
		t.Errorf("%d different tokens of one position in 100", len(seen))
	}
	for _, wrong := range []string{"x", "AAAA", strings.Repeat("A", 48), "0/3000148", "é"} {
		if _, err := k.furthest("a", wrong); !errors.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	if p, err := k.furthest("a", ""); p != 0 || err != nil {
		t.Errorf("no token: %d, %v", p, err)
	}
}

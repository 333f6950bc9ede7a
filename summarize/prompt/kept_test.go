package prompt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/summarize/prompt/prompttest"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// A kept message that is cut costs no more than its limit, in any script.
func TestKeptCharacters(t *testing.T) {
	t.Parallel()
	count := tokens.O200k()
	for name, text := range map[string]string{
		"english": strings.Repeat("Remember that the order number is 4711 and the colour green. ", 200),
		"chinese": strings.Repeat("请记住订单号是4711，颜色是绿色。", 300),
		"emoji":   strings.Repeat("👩‍👩‍👧 ", 500),
	} {
		m := prompttest.Message(tree.RoleUser, map[string]any{"name": "Ada", "content": text})
		for _, limit := range []int{64, 200, 1000} {
			said := Read(cutTo(m, keptCharacters(m, limit, count)))
			shown := said.Text
			if n := count.Count(shown); n > limit || n < limit/2 {
				t.Errorf("%s cut to %d tokens has %d", name, limit, n)
			}
			if !strings.Contains(shown, "characters cut out") || said.Name != "Ada" {
				t.Errorf("%s is cut without a mark, or without the name %q: %q", name, said.Name, shown)
			}
		}
		if n := keptCharacters(m, 1<<20, count); n != 0 {
			t.Errorf("%s fits whole and is cut to %d characters", name, n)
		}
	}
}

// A summary's message is below the limit in bytes, whatever tokens say of what
// is kept: long messages are cut, and where there are too many for that the
// oldest don't stay.
func TestSummaryWithinItsBytes(t *testing.T) {
	t.Parallel()
	const limit = 50_000 // a smaller one, that is quicker to reach
	const written = "The user and the assistant spoke about what there is to say, turn by turn."
	said := func(n int, text string) (kept []tree.Message) {
		for i := range n {
			kept = append(kept, prompttest.UserSays(fmt.Sprintf("%d. %s", i, text)))
		}
		return kept
	}
	for _, test := range []struct {
		name    string
		kept    []tree.Message
		dropped func(int) bool
		cut     bool
	}{
		{"small", said(3, "Be brief."), func(n int) bool { return n == 0 }, false},
		{"long", append(said(2, strings.Repeat(" ", 30_000)+"."), said(1, "Be brief.")...), func(n int) bool { return n == 0 }, true},
		{"long when escaped", said(2, strings.Repeat(`"`, 20_000)), func(n int) bool { return n == 0 }, true},
		{"a call with long arguments", []tree.Message{prompttest.AssistantCalls("f", strings.Repeat("x", 100_000))}, func(n int) bool { return n == 0 }, true},
		{"very many", said(2_000, "Be brief."), func(n int) bool { return n > 0 && n < 2_000 }, false},
	} {
		body, dropped := wrapWithin(written, test.kept, limit)
		text := Read(tree.Message{Role: tree.RoleUser, Body: body}).Text
		if len(body) > limit || !test.dropped(dropped) || strings.Contains(text, "characters cut out") != test.cut {
			t.Errorf("%s: %d bytes, %d of %d don't stay", test.name, len(body), dropped, len(test.kept))
		}
		if n := strings.Count(text, "user:\n|") + strings.Count(text, "assistant:\n|"); n != len(test.kept)-dropped {
			t.Errorf("%s: it shows %d messages of %d", test.name, n, len(test.kept)-dropped)
		}
	}
	if body, _ := wrapWithin(strings.Repeat("x", 100_000), said(3, "Be brief."), limit); len(body) < 100_000 {
		t.Error("the summary's own text was cut, which nobody would know")
	}
	var kept []Kept
	for _, m := range said(2, strings.Repeat(`"`, 400_000)) {
		kept = append(kept, Kept{Message: m})
	}
	if body, _ := Wrap(written, kept, prompttest.Quarters{}); len(body) > mostSummaryBytes {
		t.Errorf("the summary that is to be stored has %d bytes, and %d are the most", len(body), mostSummaryBytes)
	}
}

func TestIdle(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"Thanks!": true, "Ok, thank you so much, bye 👋": true, "Vielen Dank dir!": true, "谢谢！": true, "[Request interrupted by user for tool use]": true,
		"Thanks, but make it 5.": false, "Thanks to Ada it works.": false, "ok": false, "Goodbye at 5?": false, "Perfect": false, "": false,
	} {
		if got := Idle(prompttest.UserSays(text)); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

package summarize

import (
	"strings"
	"testing"

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
		m := tree.Message{Role: tree.RoleUser, Body: messageBody("user", text)}
		for _, limit := range []int{64, 200, 1000} {
			shown := readSpoken(cutTo(m, keptCharacters(m, limit, count))).text
			if n := count.Count(shown); n > limit || n < limit/2 {
				t.Errorf("%s cut to %d tokens has %d", name, limit, n)
			}
			if !strings.Contains(shown, "characters cut out") {
				t.Errorf("%s is cut without a mark: %q", name, shown)
			}
		}
		if n := keptCharacters(m, 1<<20, count); n != 0 {
			t.Errorf("%s fits whole and is cut to %d characters", name, n)
		}
	}
}

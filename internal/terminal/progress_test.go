package terminal

import (
	"bufio"
	"bytes"
	"testing"
	"time"
)

// Without a terminal progress is a line now and then, and nothing for what is
// done quickly.
func TestProgressLines(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	p := (&Console{Writer: bufio.NewWriter(&b), Errors: &b}).Progress("big.json", 4_000_000)
	p.Read(1_000_000)
	if b.Len() > 0 {
		t.Errorf("at once it says %q", b.String())
	}
	p.shown = time.Now().Add(-2 * progressInterval)
	p.Read(2_000_000)
	p.Read(3_000_000)
	p.End()
	if want := "big.json: read 2.0 MB of 4.0 MB, 50%\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

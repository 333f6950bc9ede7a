package prompt

import (
	"testing"

	"github.com/google/uuid"
)

func TestFenceNonce(t *testing.T) {
	t.Parallel()
	a, b := uuid.MustParse("0198f000-0000-7000-8000-000000000001"), uuid.MustParse("0198f000-0000-7000-8000-000000000002")
	first, again, other := Nonce(a), Nonce(a), Nonce(b)
	if len(first) != 16 || first != again || first == other {
		t.Errorf("nonces %q, %q and %q", first, again, other)
	}
}

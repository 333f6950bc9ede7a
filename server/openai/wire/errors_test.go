package wire

import (
	"fmt"
	"strings"
	"testing"
)

func TestErrorBody(t *testing.T) {
	t.Parallel()
	var table strings.Builder
	for _, status := range []int{400, 401, 403, 404, 409, 413, 429, 499, 500, 503} {
		e := NewError(status, "some_code", "", "So it is.")
		fmt.Fprintf(&table, "%s %s\n", e.JSON(), e.failure())
	}
	fmt.Fprintf(&table, "%s\n%s\n", NewError(400, "prompt_too_long", "input", "Too long.").JSON(), NewError(500, "", "", "Never.").JSON())
	golden(t, "errors.txt", table.String())
}

package server

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
)

// TestEveryCodeIsDocumented holds openapi.yaml's list of codes, of which every answer
// of the tests has one, equal to its table, of which the manual is made. The table
// has the server's own codes with their status.
func TestEveryCodeIsDocumented(t *testing.T) {
	t.Parallel()
	doc := check.Must(document())(t)
	table := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^ +\\| `([a-z0-9_]+)` \\| (\\d+) \\| .+ \\|$").FindAllStringSubmatch(string(Spec), -1) {
		table[m[1]] = m[2]
	}
	listed := doc.Components.Schemas["Code"].Value.Enum
	for _, code := range listed {
		if table[code.(string)] == "" {
			t.Errorf("openapi.yaml's table lacks %s", code)
		}
	}
	if len(listed) != len(table) || len(table) < 60 {
		t.Errorf("openapi.yaml lists %d codes, and its table has %d", len(listed), len(table))
	}
	for code, kind := range kinds {
		if status := fmt.Sprint(answers[kind].status); table[string(code)] != status {
			t.Errorf("openapi.yaml's table says %s of %s, and it is %s", table[string(code)], code, status)
		}
	}
}

// Every kind has a status. Those that a client can't fix have an answer, too.
func TestEveryKindIsAnswered(t *testing.T) {
	t.Parallel()
	for _, kind := range []fault.Kind{
		fault.Invalid, fault.NotFound, fault.Conflict, fault.TooLarge, fault.Full, fault.Unauthorized, fault.TooMany, fault.Unavailable,
		fault.Timeout, fault.Canceled, fault.Permanent, fault.Model, fault.ModelBusy, fault.ModelTimeout, fault.Internal,
	} {
		p := toProblem(fault.New(kind, "", "field", "secret"))
		if p.Status < 400 || !p.Code.Valid() || p.Detail == "" || strings.Contains(p.Detail, "secret") {
			t.Errorf("%s without a code: %+v", kind, p)
		}
		if kind == fault.Permanent || kind == fault.Internal {
			continue
		}
		p = toProblem(fmt.Errorf("wrapped: %w", fault.New(kind, "id_conflict", "id", "Send another.")))
		if p.Status != answers[kind].status || p.Code != CodeIDConflict || p.Detail != "Send another." || *p.Field != "id" {
			t.Errorf("%s with a code: %+v", kind, p)
		}
	}
}

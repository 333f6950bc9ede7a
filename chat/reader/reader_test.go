package reader

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
)

// TestReader holds that the first thing that is wrong is told, and where it is. What the
// packages wire read by a Reader, their own tests try.
func TestReader(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range maxMembers + 1 {
		many = append(many, fmt.Sprintf(`"m%d":1`, i))
	}
	for _, test := range []struct{ body, said, wrong string }{
		{`{"name":"a","name":"b","list":[{"kind":"x"},{}],"rest":1}`, "b x", " "},
		{`{"name":null,"list":{}}`, " ", "name missing_field"},
		{`{"name":"b","list":[{"kind":"x"},{"kind":3}]}`, "b x", "list[1].kind wrong_type"},
		{`{"name":"b","list":[{"kind":"x"},3]}`, "b x", "list[1] wrong_type"},
		{`{"name":"b","list":[{},{},{}]}`, "b ", "list invalid_value"},
		{`{"name":"b","inner":{"n":7}}`, "b ", "inner.n invalid_value"},
		{`{"name":"b","inner":"n"}`, "b ", "inner wrong_type"},
		{`[]`, " ", " wrong_type"},
		{"{" + strings.Join(many, ",") + "}", " ", " invalid_value"},
	} {
		o := Open([]byte(test.body))
		said := o.Required("name") + " "
		for _, e := range o.Objects("list", 2) {
			said += e.String("kind")
		}
		o.Inner("inner").Integer("n", 1, 6)
		wrong := fault.Of(o.Failed())
		if wrong == nil {
			wrong = &fault.Error{}
		}
		got := wrong.Field + " " + wrong.Code
		check.That(t, said == test.said && got == test.wrong, "%.60s: said %q, wrong %q", test.body, said, got)
	}
}

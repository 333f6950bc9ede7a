package tree

import "testing"

// TestMergePatch has the cases of RFC 7396, appendix A, whose target is an object. The
// last ones are of bytes that stay, of a name that stands twice, and of blanks.
func TestMergePatch(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`},
		{`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`},
		{`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`},
		{`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`},
		{`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`{"e":null}`, `{"a":1}`, `{"e":null,"a":1}`},
		{`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
		{`{"a": 1.50, "b":[1, 2]}`, `{"c":2}`, `{"a":1.50,"b":[1, 2],"c":2}`},
		{`{"a":1,"b":2,"a":3}`, `{"a":4}`, `{"b":2,"a":4}`},
		{`{"a":1,"a":3}`, `{"a":null}`, `{}`},
		{` {"a":1}`, ` {"b":2}`, `{"a":1,"b":2}`},
	} {
		if got := string(mergePatch([]byte(c[0]), []byte(c[1]))); got != c[2] {
			t.Errorf("%s changed by %s is %s, want %s", c[0], c[1], got, c[2])
		}
	}
}

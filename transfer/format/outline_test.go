package format

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// An outline names the paths of what is there, wherever the file is cut off, and
// passes over elements that are no JSON.
func TestOutline(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		head     string
		has, not []string
		allSpeak bool
	}{
		{`[{"a":{"b":[{"c":1}]}},{"d":null}]`, []string{"a", "a.b", "a.b[]", "a.b[].c", "d"}, []string{"b", "c"}, false},
		{`{"a":1}` + "\n" + `{"b":`, []string{"a"}, []string{"c"}, false},
		{`{"role":"user","content":"hi"}` + "\n" + `{"role":"ass`, []string{"role", "content"}, nil, true},
		{`[[{"role":"user"}],[{"x":1}]]`, []string{"role", "x"}, nil, false},
		{`{"a":None,"b":1}{"c":1}`, []string{"c"}, nil, false},
		{`{"list":[{"a":None},{"b":1}],"c":1}`, []string{"list[].b", "c"}, nil, false},
		{`[{"a":[}]},{"b":1}]`, []string{"a", "b"}, nil, false},
		{"{\"a\":\"cut o\n{\"b\":1}\n", []string{"b"}, nil, false},
		{`{"\u0061":1}`, []string{"a"}, nil, false},
		{"", nil, []string{"a"}, true},
		{"Dear diary", nil, []string{"a"}, true},
	} {
		o := OutlineOf([]byte(test.head))
		if !o.Has(test.has...) || o.AllSpeak() != test.allSpeak {
			t.Errorf("%s: %v, all speak: %t", test.head, o.paths, o.AllSpeak())
		}
		for _, path := range test.not {
			if o.Has(path) {
				t.Errorf("%s has %s: %v", test.head, path, o.paths)
			}
		}
	}
}

// Of sound JSON every path is found, and whatever the bytes are, reading them ends.
func TestOutlineProperties(t *testing.T) {
	t.Parallel()
	piece := rapid.SampledFrom([]string{"{", "}", "[", "]", ",", ":", `"a"`, `"`, "\\", "1", "null", "x", "\n", "\n{", " "})
	rapid.Check(t, func(t *rapid.T) {
		head := []byte(strings.Join(rapid.SliceOfN(piece, 0, 30).Draw(t, "head"), ""))
		o := OutlineOf(head)
		var whole map[string]any
		if json.Unmarshal(head, &whole) != nil {
			return
		}
		for name := range whole {
			if _, there := o.paths[name]; !there && name != "" {
				t.Fatalf("%s has no path %q: %v", head, name, o.paths)
			}
		}
	})
}

// No head takes long, whatever it is.
func TestOutlineIsLinear(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"{N},", "{\n", "{\"a\":[{N},", "{\"a\":{", "{\"a\":\"\n{"} {
		head := []byte("[" + strings.Repeat(piece, 1<<20/len(piece)))
		began := time.Now()
		OutlineOf(head)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%q over and over took %v", piece, took)
		}
	}
}

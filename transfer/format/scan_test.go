package format

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/check"
)

// FuzzScan takes objects and arrays apart as encoding/json does, wherever the
// buffers end in which a value comes.
func FuzzScan(f *testing.F) {
	for _, value := range []string{`{}`, ` [ ] `, `{"a":"\\","b":"\"","\u0063":[1,{"d":"}"}],"e":-1.5e3}`, `["\\\"",null,true,[[]],"]"]`, `{"a":1,"a":2}`, `"\ud83d\ude00\ud83d"`} {
		f.Add([]byte(value), 3)
	}
	f.Fuzz(func(t *testing.T, value []byte, size int) {
		if value = bytes.TrimSpace(value); !json.Valid(value) {
			return
		}
		var w walker
		read, ended := 0, false
		for size = max(size, 1); read < len(value) && !ended; {
			n := 0
			n, ended = w.walk(value[read:min(read+size, len(value))])
			read += n
		}
		if read != len(value) || !ended && !w.bare {
			t.Fatalf("%s ends at %d", value, read)
		}
		same := func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }
		switch value[0] {
		case '{':
			var want map[string]json.RawMessage
			check.NoError(t, json.Unmarshal(value, &want))
			if got := ObjectUpTo(value, len(value)); !maps.EqualFunc(got, want, same) {
				t.Fatalf("%s has the members %s", value, got)
			}
		case '[':
			var want, got []json.RawMessage
			check.NoError(t, json.Unmarshal(value, &want))
			for _, element := range ElementsOf(value) {
				got = append(got, element)
			}
			if !slices.EqualFunc(got, want, same) {
				t.Fatalf("%s has the elements %s", value, got)
			}
		case '"':
			var want string
			check.NoError(t, json.Unmarshal(value, &want))
			if got, ok := StringOf(value); !ok || got != want {
				t.Fatalf("%s is read as %q", value, got)
			}
		}
	})
}

// FuzzNested finds the objects of a tree that encoding/json finds, with their
// parents and their members.
func FuzzNested(f *testing.F) {
	for _, value := range []string{
		`{}`, ` [ ] `, `{"c":[]}`, `[{"a":1,"c":[{"a":2},{"c":[ {"a":"]"} ] , "a":3}],"b":"}"},null,7]`, `{"c":[{"c":[{"c":[{}]}]}]}`,
		`{"c":{"c":[1]},"d":[{"c":[]}]}`, `{"\u0063":[{"x":"\\"}]}`, `[[{"c":[]}],"c",{"c":[[1],{"c":null}]}]`,
	} {
		f.Add([]byte(value))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		first := strings.TrimLeft(string(value), " \t\r\n")
		if !json.Valid(value) || first[0] != '{' && first[0] != '[' {
			t.Skip()
		}
		want, sound := treeOf(value)
		if !sound {
			t.Skip("a name that stands twice")
		}
		var got []string
		trimmed := []byte(strings.TrimSpace(string(value)))
		for _, n := range nestedIn(trimmed, "c", func() bool { return true }) {
			line := fmt.Sprintf("%d %s", n.parent, n.value)
			if n.value[0] == '{' {
				for name, member := range members(n.value, n.gap, n.gapEnd) {
					line += fmt.Sprintf(" %s=%s", nameOf(name), member)
				}
			}
			got = append(got, line)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s gives\n%s\nnot\n%s", value, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// treeOf is nestedIn by members and elements, which read a value once for each level
// above it.
func treeOf(value []byte) (all []string, sound bool) {
	sound = true
	var add func(value []byte, parent int)
	add = func(value []byte, parent int) {
		line, at := fmt.Sprintf("%d %s", parent, value), len(all)
		all = append(all, "")
		if value[0] == '{' {
			names := map[string]bool{}
			for quoted, member := range members(value, 0, 0) {
				name := nameOf(quoted)
				sound = sound && !names[name]
				names[name] = true
				line += fmt.Sprintf(" %s=%s", name, member)
				if name == "c" && member[0] == '[' {
					for element := range chat.Elements(member) {
						add(element, at)
					}
				}
			}
		}
		all[at] = line
	}
	trimmed := []byte(strings.TrimSpace(string(value)))
	if trimmed[0] == '{' {
		add(trimmed, -1)
		return all, sound
	}
	for element := range chat.Elements(trimmed) {
		add(element, -1)
	}
	return all, sound
}

// A tree costs time in proportion to its bytes, however deep it is: more is
// asked once for each object, and the members of all of them together are read
// once.
func TestNestedDeep(t *testing.T) {
	t.Parallel()
	const depth = 5000
	value := []byte(strings.Repeat(`{"a":1,"c":[`, depth) + strings.Repeat(`]}`, depth))
	count := 0
	all := nestedIn(value, "c", func() bool { return true })
	for _, n := range all {
		for range members(n.value, n.gap, n.gapEnd) {
			count++
		}
	}
	if len(all) != depth || count != 2*depth || all[depth-1].depth != depth-1 {
		t.Errorf("%d objects, %d members", len(all), count)
	}
	if nestedIn(value, "c", func() bool { return false }) != nil {
		t.Error("objects although more said no")
	}
}

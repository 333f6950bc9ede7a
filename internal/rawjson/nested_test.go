package rawjson

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// FuzzTree finds the objects of a tree that encoding/json finds, with their
// parents and their members.
func FuzzTree(f *testing.F) {
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
		for _, n := range Tree(value, "c", func() bool { return true }) {
			line := fmt.Sprintf("%d %s", n.Parent, n.Value)
			if n.Value[0] == '{' {
				for name, member := range n.Members() {
					line += fmt.Sprintf(" %s=%s", Name(name), member)
				}
			}
			got = append(got, line)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%s gives\n%s\nnot\n%s", value, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// treeOf is Tree by Members and Elements, which read a value once for each level
// above it.
func treeOf(value []byte) (all []string, sound bool) {
	sound = true
	var add func(value []byte, parent int)
	add = func(value []byte, parent int) {
		line, at := fmt.Sprintf("%d %s", parent, value), len(all)
		all = append(all, "")
		if value[0] == '{' {
			names := map[string]bool{}
			for quoted, member := range Members(value) {
				name := string(Name(quoted))
				sound = sound && !names[name]
				names[name] = true
				line += fmt.Sprintf(" %s=%s", name, member)
				if name == "c" && member[0] == '[' {
					for element := range Elements(member) {
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
	for element := range Elements(trimmed) {
		add(element, -1)
	}
	return all, sound
}

// A tree costs time in proportion to its bytes, however deep it is: more is
// asked once for each object, and the members of all of them together are read
// once.
func TestTreeDeep(t *testing.T) {
	t.Parallel()
	const depth = 5000
	value := []byte(strings.Repeat(`{"a":1,"c":[`, depth) + strings.Repeat(`]}`, depth))
	members := 0
	all := Tree(value, "c", func() bool { return true })
	for _, n := range all {
		for range n.Members() {
			members++
		}
	}
	if len(all) != depth || members != 2*depth || all[depth-1].Depth != depth-1 {
		t.Errorf("%d objects, %d members", len(all), members)
	}
	if Tree(value, "c", func() bool { return false }) != nil {
		t.Error("objects although more said no")
	}
}

package rawjson

import "iter"

// A Nested is one value of a tree of objects that stand in each other.
type Nested struct {
	Value  []byte // with all that is nested in it
	Parent int    // index of the object around it; -1 for none
	Depth  int    // objects around it

	from        int // where Value begins in the whole
	gap, gapEnd int // where the list of children stands in Value; -1 for none
}

// Members is Members of the object, which passes over the children at once.
func (n Nested) Members() iter.Seq2[[]byte, []byte] { return members(n.Value, n.gap, n.gapEnd) }

// Tree gives the objects of a valid value, an object or a list of them, and of
// the lists that each has as its member children: a parent before its children.
// It reads every byte once, however deep the objects stand. It ends early where
// more, which it asks before each, says no.
func Tree(value []byte, children string, more func() bool) (all []Nested) {
	var open []int // objects whose children are being read
	i := skipSpace(value, 0)
	list := value[i] == '['
	if list {
		i++
	}
	at := -1 // the object whose members are being read; -1 in a list
	for {
		i = skipSpace(value, i)
		switch c := value[i]; {
		case c == ',':
			i++
		case at < 0 && c == ']':
			if i++; len(open) == 0 {
				return all
			}
			at, open = open[len(open)-1], open[:len(open)-1]
			all[at].gapEnd = i - all[at].from
		case at < 0:
			if !more() {
				return nil
			}
			n := Nested{Parent: -1, Depth: len(open), from: i, gap: -1}
			if len(open) > 0 {
				n.Parent = open[len(open)-1]
			}
			all = append(all, n)
			if c == '{' {
				at, i = len(all)-1, i+1
				continue
			}
			i = skipValue(value, i)
			all[len(all)-1].Value = value[n.from:i]
		case c == '}':
			i++
			all[at].Value = value[all[at].from:i]
			if at = -1; len(open) == 0 && !list {
				return all
			}
		default:
			nameEnd := skipString(value, i)
			name := value[i:nameEnd]
			i = skipSpace(value, skipSpace(value, nameEnd)+1)
			if all[at].gap < 0 && value[i] == '[' && string(Name(name)) == children {
				all[at].gap = i - all[at].from
				open = append(open, at)
				at, i = -1, i+1
				continue
			}
			i = skipValue(value, i)
		}
	}
}

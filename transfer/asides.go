package transfer

import (
	"iter"
	"strconv"
	"strings"
)

// asides are lines of a file that don't come along, by what they are. A
// session of a coding agent has thousands, and one note for each sort with all
// its lines says the same as thousands.
type asides struct {
	lines map[string]*lineSet
	order []string // keys of lines in the order of the file
}

func (a *asides) add(what, place string) {
	if a.lines[what] == nil {
		if a.lines == nil {
			a.lines = map[string]*lineSet{}
		}
		a.lines[what] = &lineSet{}
		a.order = append(a.order, what)
	}
	a.lines[what].add(place)
}

// all gives each sort with its places.
func (a *asides) all() iter.Seq2[string, string] {
	return func(yield func(what, places string) bool) {
		for _, what := range a.order {
			if !yield(what, a.lines[what].String()) {
				return
			}
		}
	}
}

// A lineSet collects places as eachLine gives them, and shows them as
// "lines 3-5, 9".
type lineSet struct{ lines []int }

func (s *lineSet) add(place string) {
	if n, err := strconv.Atoi(strings.TrimPrefix(place, "line ")); err == nil {
		s.lines = append(s.lines, n)
	}
}

func (s *lineSet) String() string {
	var ranges []string
	for i := 0; i < len(s.lines); {
		j := i
		for j+1 < len(s.lines) && s.lines[j+1] == s.lines[j]+1 {
			j++
		}
		r := strconv.Itoa(s.lines[i])
		if j > i {
			r += "-" + strconv.Itoa(s.lines[j])
		}
		ranges = append(ranges, r)
		i = j + 1
	}
	if len(s.lines) == 1 {
		return "line " + ranges[0]
	}
	return "lines " + strings.Join(ranges, ", ")
}

// named gives the conversation with what its notes call it, which a parser may
// find out last.
func (c *Conversation) named() Conversation {
	for i := range c.Notes {
		c.Notes[i].Conversation = c.name()
	}
	return *c
}

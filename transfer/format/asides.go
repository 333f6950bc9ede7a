package format

import (
	"iter"
	"strconv"
	"strings"
)

// asides are nodes of a file that are the program's own, by sort. A session of a
// coding agent has thousands of them. One note for each sort, with all its places,
// says the same as thousands of notes.
type asides struct {
	lines map[string]*LineSet
	order []string // keys of lines in the order of the file
}

func (a *asides) add(what, place string) {
	const sorts = 100 // more than any program has
	if a.lines[what] == nil && len(a.order) >= sorts {
		what = "lines of other sorts"
	}
	if a.lines[what] == nil {
		if a.lines == nil {
			a.lines = map[string]*LineSet{}
		}
		a.lines[what] = &LineSet{}
		a.order = append(a.order, what)
	}
	a.lines[what].Add(place)
}

// all returns each sort with its places.
func (a *asides) all() iter.Seq2[string, string] {
	return func(yield func(what, places string) bool) {
		for _, what := range a.order {
			if !yield(what, a.lines[what].String()) {
				return
			}
		}
	}
}

// A LineSet collects places as EachLine gives them, and shows them as
// "lines 3-5, 9" or "elements 3-5, 9".
type LineSet struct {
	noun   string // of the places
	ranges [][2]int32
	Count  int // of all lines, also those that no range holds
}

// maxRanges is how many ranges a lineSet keeps.
const maxRanges = 1000

func (s *LineSet) Add(place string) {
	noun, number, _ := strings.Cut(place, " ")
	n, err := strconv.Atoi(number)
	if err != nil {
		return
	}
	s.noun = noun
	s.Count++
	line, last := int32(n), len(s.ranges)-1
	switch {
	case last >= 0 && s.ranges[last][1] == line-1:
		s.ranges[last][1] = line
	case last < maxRanges:
		s.ranges = append(s.ranges, [2]int32{line, line})
	}
}

func (s *LineSet) String() string {
	var ranges []string
	for _, r := range s.ranges {
		text := strconv.Itoa(int(r[0]))
		if r[1] > r[0] {
			text += "-" + strconv.Itoa(int(r[1]))
		}
		ranges = append(ranges, text)
	}
	if s.Count == 1 {
		return s.noun + " " + ranges[0]
	}
	if len(ranges) > maxRanges {
		ranges = append(ranges, "and more")
	}
	return s.noun + "s " + strings.Join(ranges, ", ")
}

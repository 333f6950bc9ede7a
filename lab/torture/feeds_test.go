package torture

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
)

// A tenant's stream may tell of changes twice, and of some in another order. What
// it leaves out is noted, until it is told.
func TestSequences(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ told, missing []int }{
		"one after the other":  {[]int{7, 8, 9}, nil},
		"twice":                {[]int{7, 8, 7, 8, 9}, nil},
		"in another order":     {[]int{7, 9, 8, 10}, nil},
		"one left out":         {[]int{7, 9, 10}, []int{8}},
		"two, one told later":  {[]int{7, 10, 9}, []int{8}},
		"before the first one": {[]int{7, 5}, nil},
	} {
		s, c := newSequences(), uuid.New()
		s.take(uuid.New(), 100, 1)
		fresh := map[int]int{}
		for _, sequence := range test.told {
			if s.take(c, sequence, 1) {
				fresh[sequence]++
			}
		}
		for sequence, times := range fresh {
			if times > 1 {
				t.Errorf("%s: %d was new %d times", name, sequence, times)
			}
		}
		var missing []int
		for _, m := range slices.SortedFunc(maps.Keys(s.missing), func(a, b changeID) int { return a.sequence - b.sequence }) {
			missing = append(missing, m.sequence)
		}
		if !slices.Equal(missing, test.missing) {
			t.Errorf("%s: %v are missing", name, missing)
		}
	}
}

// A stream may miss only what was noted long before the event after which it was read on.
func TestMayMiss(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, test := range map[string]struct {
		after int64
		noted time.Time
		may   bool
	}{
		"long before":         {now.UnixMicro(), now.Add(-11 * time.Second), true},
		"shortly before":      {now.UnixMicro(), now.Add(-9 * time.Second), false},
		"after":               {now.UnixMicro(), now.Add(time.Second), false},
		"in the first stream": {0, now.Add(-time.Hour), false},
	} {
		if mayMiss(test.after, test.noted) != test.may {
			t.Errorf("%s: %t", name, !test.may)
		}
	}
}

// A list that is shown is compared with the list as it is.
func TestListsDiffer(t *testing.T) {
	t.Parallel()
	a, b, head := uuid.New(), uuid.New(), uuid.New()
	is := map[uuid.UUID]listed{a: {"one", head}, b: {"two", head}}
	for name, test := range map[string]struct {
		shown map[uuid.UUID]listed
		wrong bool
	}{
		"the same":       {maps.Clone(is), false},
		"one less":       {map[uuid.UUID]listed{a: {"one", head}}, true},
		"one more":       {map[uuid.UUID]listed{a: {"one", head}, b: {"two", head}, head: {}}, true},
		"an old title":   {map[uuid.UUID]listed{a: {"uno", head}, b: {"two", head}}, true},
		"another head":   {map[uuid.UUID]listed{a: {"one", a}, b: {"two", head}}, true},
		"nothing at all": {nil, true},
	} {
		if wrong := differs(test.shown, is); (wrong != "") != test.wrong {
			t.Errorf("%s: %q", name, wrong)
		}
	}
}

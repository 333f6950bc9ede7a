package tree

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"
)

// A message finds the one of any depth above it, and in a path of thousands it takes
// some tens of jumps.
func TestJumpsFindWhatIsAbove(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for name, parentOf := range map[string]func(i int) int{
		"a path":     func(i int) int { return i - 1 },
		"a tree":     func(i int) int { return random.IntN(i) },
		"with roots": func(i int) int { return max(i-1-random.IntN(3), -1) },
	} {
		const n = 4000
		im := &importer{known: map[uuid.UUID]known{}}
		var ids []uuid.UUID
		for i := range n {
			id, parentID, depth := uuid.NewSHA1(uuid.Nil, fmt.Append(nil, i)), uuid.Nil, 0
			if i > 0 {
				if at := parentOf(i); at >= 0 {
					parentID = ids[at]
					depth = im.known[parentID].depth + 1
				}
			}
			im.known[id] = known{parentState: parentState{id: id, depth: depth}, parentID: parentID, jump: im.jumpBelow(id, parentID)}
			ids = append(ids, id)
		}
		for range 200 {
			from := im.known[ids[random.IntN(n)]]
			depth := random.IntN(from.depth + 1)
			want, jumps := from, 0
			for want.depth > depth {
				want = im.known[want.parentID]
			}
			if got := im.above(from, depth); got.id != want.id {
				t.Fatalf("%s: above %d at depth %d is one at %d", name, from.depth, depth, got.depth)
			}
			for at := from; at.depth > 0; jumps++ {
				at = im.known[at.jump]
			}
			if jumps > 30 {
				t.Errorf("%s: %d jumps from depth %d to the root", name, jumps, from.depth)
			}
		}
	}
}

package search

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/tree"
)

// Where one match of each conversation is enough, no second one is read together with
// the first, and none of a conversation that is found.
func TestOneOfEach(t *testing.T) {
	t.Parallel()
	of := func(conversations ...byte) (all []candidate) {
		for i, c := range conversations {
			all = append(all, candidate{Place: tree.Place{ConversationID: uuid.UUID{c}}, at: int64(-i)})
		}
		return all
	}
	some, left, n := oneOfEach(of(1, 1, 2, 3, 3, 4, 1), 6, map[uuid.UUID]bool{{2}: true})
	at := func(all []candidate) (at []int64) {
		for _, c := range all {
			at = append(at, -c.at)
		}
		return at
	}
	if !slices.Equal(at(some), []int64{0, 3, 5}) || !slices.Equal(at(left), []int64{1, 4, 6}) || n != 2 {
		t.Errorf("of the candidates %v are read, and %v stay, %d of the first", at(some), at(left), n)
	}
}

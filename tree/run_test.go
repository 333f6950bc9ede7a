package tree

import "testing"

// TestSameAgainAndAgain holds that no message of a branch is compared twice with the same
// one of a history, also where all say the same: such a history took 31 s.
func TestSameAgainAndAgain(t *testing.T) {
	t.Parallel()
	const rows, messages = 263, 202
	compared, ends := map[[2]int]int{}, map[int]int{}
	for last := messages - 2; last > messages-2-2*maxRunAnswers; last -= 2 {
		_, length := longestRun(rows, last, ends, func(row, message int) bool {
			compared[[2]int{row, message}]++
			return row < rows && message > 0 && row%2 == message%2
		})
		if length != last {
			t.Fatalf("a run of %d messages ends at message %d", length, last)
		}
	}
	for pair, times := range compared {
		if times > 1 {
			t.Fatalf("row %d and message %d are compared %d times", pair[0], pair[1], times)
		}
	}
}

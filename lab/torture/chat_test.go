package torture

import (
	"testing"

	"github.com/google/uuid"
)

func says(role string) chatMessage { return chatMessage{Role: role} }

func callsTools(ids ...string) chatMessage {
	m := says("assistant")
	for _, id := range ids {
		m.ToolCalls = append(m.ToolCalls, chatCall{ID: id})
	}
	return m
}

func answersCall(id string) chatMessage { return chatMessage{Role: "tool", ToolCallID: id} }

func TestCheckChat(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		messages []chatMessage
		pending  bool
		pairs    int
		valid    bool
	}{
		{"no tools", []chatMessage{says("system"), says("user"), says("assistant")}, false, 0, true},
		{"calls with their results", []chatMessage{says("user"), callsTools("a", "b"), answersCall("b"), answersCall("a"), says("assistant")}, false, 2, true},
		{"calls at the end of a context", []chatMessage{says("user"), callsTools("a", "b"), answersCall("b")}, true, 1, true},
		{"calls at the end of a prompt", []chatMessage{says("user"), callsTools("a", "b"), answersCall("b")}, false, 1, false},
		{"a result without its call", []chatMessage{says("user"), answersCall("a")}, true, 0, false},
		{"a second result", []chatMessage{callsTools("a"), answersCall("a"), answersCall("a")}, true, 1, false},
		{"a call without its result", []chatMessage{callsTools("a"), says("user")}, true, 0, false},
		{"a result after somebody else spoke", []chatMessage{callsTools("a"), says("user"), answersCall("a")}, true, 0, false},
		{"calls of a user", []chatMessage{{Role: "user", ToolCalls: []chatCall{{ID: "a"}}}}, true, 0, false},
		{"a role of no model", []chatMessage{says("summary")}, true, 0, false},
	} {
		pairs, wrong := checkChat(test.messages, test.pending)
		if pairs != test.pairs || (wrong == "") != test.valid {
			t.Errorf("%s: %d pairs, %q", test.name, pairs, wrong)
		}
	}
}

// An agent at work: u1 is followed by calls x and y of a1, and their results;
// then a2 calls z, and the user goes on without a result.
func toolPath() (path []*message) {
	add := func(role, answers string, calls ...call) {
		m := &message{id: uuid.New(), role: role, answers: answers, calls: calls, depth: len(path)}
		if len(path) > 0 {
			m.parent = path[len(path)-1].id
		}
		path = append(path, m)
	}
	add("user", "")
	add("assistant", "", call{ID: "x"}, call{ID: "y"})
	add("tool", "x")
	add("tool", "y")
	add("assistant", "", call{ID: "z"})
	add("user", "")
	return path
}

func TestOpenCalls(t *testing.T) {
	t.Parallel()
	path := toolPath()
	for length, want := range map[int]int{1: 0, 2: 2, 3: 1, 4: 0, 5: 1, 6: 0} {
		if got := openCalls(path[:length]); len(got) != want {
			t.Errorf("after %d messages %v are open, want %d", length, got, want)
		}
	}
	if got := orphaned(path); len(got) != 1 || got[path[4].id][0].ID != "z" {
		t.Errorf("orphaned %v", got)
	}
	if got := orphaned(path[:5]); len(got) != 0 {
		t.Errorf("orphaned %v, and the branch may go on with the result", got)
	}
}

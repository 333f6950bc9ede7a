package torture

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

func streamOf(ids ...int) (events []event) {
	for _, id := range ids {
		events = append(events, event{id, "reply.delta", fmt.Sprintf(`{"content":"%d"}`, id)})
	}
	return events
}

func TestEventsIn(t *testing.T) {
	t.Parallel()
	text := ": a comment\n\nid: 1\nevent: reply.started\ndata: {\"a\": \"b: c\"}\n\n: still here\n\nevent: stream.closed\ndata: {}\n\nid: 3\nevent: cut off\n"
	var err error
	got := slices.Collect(eventsIn(strings.NewReader(text), &err))
	want := []event{{1, "reply.started", `{"a": "b: c"}`}, {0, "stream.closed", "{}"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("read %+v, %v", got, err)
	}
}

// Events that are heard over several connections follow one another.
func TestHearing(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		ids   []int
		wrong int
		whole string
	}{
		{"all", []int{1, 2, 3}, 0, "123"},
		{"a gap", []int{1, 3}, 1, ""},
		{"a repeat", []int{1, 2, 2, 3}, 1, ""},
		{"not from the first", []int{2, 3}, 1, ""},
		{"no id", []int{1, 0}, 1, ""},
		{"what another server stored", []int{1, 2, onlyTheEnd}, 0, ""},
	} {
		var h hearing
		wrong := 0
		for _, e := range streamOf(test.ids...) {
			if h.hear(e, fmt.Sprint(e.id)) != "" {
				wrong++
			}
		}
		if wrong != test.wrong || h.whole() != test.whole {
			t.Errorf("%s: %d wrong, whole text %q", test.name, wrong, h.whole())
		}
	}
}

func TestCheckReplay(t *testing.T) {
	t.Parallel()
	heard := streamOf(1, 2, 3, 4)
	changed := streamOf(3, 4)
	changed[0].data = `{"content":"other"}`
	later := streamOf(3, 4)
	heard[3].data, later[1].data = `{"usage":{},"position":"a"}`, `{"usage":{},"position":"b"}`
	whole := slices.Clone(heard)
	for _, test := range []struct {
		name   string
		after  int
		got    []event
		status int
		right  bool
	}{
		{"from the first", 0, whole, http.StatusOK, true},
		{"from the middle", 2, whole[2:], http.StatusOK, true},
		{"at a later position", 2, later, http.StatusOK, true},
		{"after the last", 4, nil, http.StatusNoContent, true},
		{"the event itself once more", 2, streamOf(2, 3, 4), http.StatusOK, false},
		{"an event too few", 2, streamOf(4), http.StatusOK, false},
		{"cut off", 2, streamOf(3), http.StatusOK, false},
		{"an event twice", 2, streamOf(3, 3, 4), http.StatusOK, false},
		{"another text", 2, changed, http.StatusOK, false},
		{"nothing, and there is something", 3, nil, http.StatusNoContent, false},
		{"the last once more", 4, streamOf(4), http.StatusOK, false},
		{"nothing without saying so", 4, nil, http.StatusOK, false},
	} {
		if wrong := checkReplay(heard, test.after, test.got, test.status); (wrong == "") != test.right {
			t.Errorf("%s: %q", test.name, wrong)
		}
	}
}

package summarize

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

// agent appends rounds of an agent's work: a call, its result, and a word on it.
func agent(t *testing.T, s *tree.Store, id, parent uuid.UUID, rounds int) (last tree.Message) {
	t.Helper()
	for i := range rounds {
		call := fmt.Sprintf(`{"role":"assistant","content":null,"tool_calls":[{"id":"c%d","type":"function","function":{"name":"look","arguments":"{}"}}]}`, i)
		m := add(t, s, id, parent, call)
		m = add(t, s, id, m.ID, fmt.Sprintf(`{"role":"tool","tool_call_id":"c%d","content":%q}`, i, strings.Repeat("There are oaks. ", 12)))
		last = add(t, s, id, m.ID, `{"role":"assistant","content":"There are oaks here, too, and I go on to look at the next part of the wood."}`)
		parent = last.ID
	}
	return last
}

// The task that an agent was given stays word for word through all compactions,
// and a first message that no tool was called for doesn't, unless the settings say
// otherwise.
func TestTaskStays(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	for _, test := range []struct {
		setting KeepFirst
		agent   bool
		stays   bool
	}{
		{KeepFirstAuto, true, true}, {KeepFirstAuto, false, false}, {KeepFirstAlways, false, true}, {KeepFirstNever, true, false},
	} {
		settings := smallSettings()
		settings.KeepFirstUser, settings.KeepUserCapTokens = test.setting, 60
		s := service(t, store, Config{Settings: settings})
		id := conversation(t, store)
		greeting := add(t, store, id, uuid.Nil, `{"role":"assistant","content":"Hello, what is to be done?"}`)
		const task = "Count the oaks of the wood, part by part, and keep a list of what you found."
		body, err := json.Marshal(map[string]string{"role": "user", "content": task})
		if err != nil {
			t.Fatal(err)
		}
		first := add(t, store, id, greeting.ID, string(body))
		head := first
		if test.agent {
			head = agent(t, store, id, head.ID, 1)
		}
		for round := range 4 {
			if test.agent {
				head = agent(t, store, id, head.ID, 8)
			}
			head = talk(t, store, id, head.ID, 30)
			if k, err := s.Compact(t.Context(), id, head.ID, TriggerAppend, nil); err != nil || k.Outcome != tree.OutcomeSaved {
				t.Fatalf("%s: %s, %v", k.Outcome, k.Reason, err)
			}
			c := contextOf(t, s, id, head.ID)
			if stays := slices.Contains(c.Summary.KeptIDs, first.ID); stays != test.stays {
				t.Errorf("%+v, compaction %d: it stays: %v", test, round+1, stays)
			}
		}
	}
}

// What is pinned and has no room any more is named, before the compaction and
// after it.
func TestUnheldPins(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	s := service(t, store, Config{})
	id := conversation(t, store)
	var pinned []uuid.UUID
	parent := uuid.Nil
	for i := range 12 {
		m, _, err := store.Append(t.Context(), id, parent, tree.NewMessage{
			Body: messageBody([]string{"user", "assistant"}[i%2], strings.Repeat("This is pinned and must not be lost. ", 12)), Pinned: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		pinned, parent = append(pinned, m.ID), m.ID
	}
	head := talk(t, store, id, parent, 20)
	e, err := s.Explain(t.Context(), id, head.ID)
	if err != nil || e.Plan == nil || len(e.Plan.UnheldIDs) == 0 || len(e.UnheldIDs) != 0 {
		t.Fatalf("%+v, %v", e, err)
	}
	k, err := s.Compact(t.Context(), id, head.ID, TriggerRequest, &Demand{})
	if err != nil || k.Outcome != tree.OutcomeSaved {
		t.Fatal(k.Outcome, err)
	}
	after, err := s.Explain(t.Context(), id, head.ID)
	if err != nil || !slices.Equal(after.UnheldIDs, e.Plan.UnheldIDs) || !slices.Equal(after.UnheldIDs, pinned[:len(after.UnheldIDs)]) {
		t.Errorf("planned to let go of %v, and now not held are %v, %v", e.Plan.UnheldIDs, after.UnheldIDs, err)
	}
	if c := contextOf(t, s, id, head.ID); len(c.Summary.KeptIDs) == 0 || slices.ContainsFunc(after.UnheldIDs, func(id uuid.UUID) bool { return slices.Contains(c.Summary.KeptIDs, id) }) {
		t.Errorf("kept %v, not held %v", c.Summary.KeptIDs, after.UnheldIDs)
	}
}

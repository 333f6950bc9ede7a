package summarize

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/tree"
)

// scribe is a model that numbers its summaries.
func scribe() *llmtest.Model {
	n := 0
	return &llmtest.Model{ModelName: "scribe", Answer: func(context.Context, llm.Request) (llm.Response, error) {
		n++
		return llmtest.Response(fmt.Sprintf("Summary number %d of what was said so far.", n)), nil
	}}
}

func replay(t *testing.T, s *Service, k tree.Compaction, window int) Replayed {
	t.Helper()
	r, err := s.Replay(t.Context(), k, window)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// compact is a compaction on demand that has to save.
func compact(t *testing.T, s *Service, id, head uuid.UUID, d Demand) tree.Compaction {
	t.Helper()
	k, err := s.Compact(t.Context(), id, head, TriggerRequest, &d)
	if err != nil || k.Outcome != tree.OutcomeSaved {
		t.Fatalf("%s: %s, %v", k.Outcome, k.Reason, err)
	}
	return k
}

// sameMessages tells whether a step is what a model was sent.
func sameMessages(step ReplayedStep, sent llm.Request) bool {
	return slices.EqualFunc(step.Messages, sent.Messages, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
}

// A replay has the prompts byte for byte, of first and later compactions, and
// with whatever was asked for.
func TestReplay(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	model := scribe()
	s := service(t, store, Config{Summarizer: Cascade{Models: []Model{{Model: model, Window: 100_000}}}, Settings: withoutDigest(smallSettings())})
	id := conversation(t, store)
	head := talk(t, store, id, uuid.Nil, 12)
	demands := []Demand{{}, {KeepRecentMessages: 3, Instructions: "Keep the <names>."}, {LookAhead: LookAheadNone}}
	for i, d := range demands {
		k := compact(t, s, id, head.ID, d)
		head = talk(t, store, id, head.ID, 6) // what comes later changes nothing
		r := replay(t, s, k, 100_000)
		if len(r.Missing) > 0 || len(r.LeakedTags) > 0 || len(r.Steps) != 1 || r.Summary != fmt.Sprintf("Summary number %d of what was said so far.", i+1) {
			t.Errorf("%d: missing %q, leaked %q, %d steps, summary %q", i, r.Missing, r.LeakedTags, len(r.Steps), r.Summary)
		}
		if !sameMessages(r.Steps[0], model.Requests()[i]) {
			t.Errorf("%d: replayed\n%s\nsent\n%s", i, r.Steps[0].Messages, model.Requests()[i].Messages)
		}
		if whole := replay(t, s, k, 0); !sameMessages(whole.Steps[0], model.Requests()[i]) {
			t.Errorf("%d: without a window the replay differs", i)
		}
		if (i > 0) != (r.Input.Prior != "") || !strings.Contains(r.Transcript, "user:\n| ") || r.Steps[0].System == "" || len(r.Steps[0].User) < 3 {
			t.Errorf("%d: %+v", i, r)
		}
	}
}

// A branch that is too long for a window takes several compactions, each of
// which replays as it was sent. In a smaller window than it was made in, the
// replay of one has several steps, and says what they lack.
func TestReplayInSteps(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	model := scribe()
	const window = 2500
	s := service(t, store, Config{Summarizer: Cascade{Models: []Model{{Model: model, Window: window}}}, Settings: withoutDigest(smallSettings())})
	id := conversation(t, store)
	head := talk(t, store, id, uuid.Nil, 30)
	compact(t, s, id, head.ID, Demand{})
	sent := model.Requests()
	ran, err := store.Compactions(t.Context(), id, tree.Paging{})
	if err != nil || len(sent) < 2 || len(ran.Data) != len(sent) {
		t.Fatalf("%d prompts, and compactions %+v, %v", len(sent), ran.Data, err)
	}
	slices.Reverse(ran.Data)
	for i, k := range ran.Data {
		if r := replay(t, s, k, window); len(r.Missing) > 0 || len(r.Steps) != 1 || !sameMessages(r.Steps[0], sent[i]) {
			t.Errorf("step %d: missing %q, replayed\n%v\nsent\n%s", i, r.Missing, r.Steps, sent[i].Messages)
		}
	}
	k := ran.Data[0]
	r := replay(t, s, k, window-200)
	if len(r.Steps) < 2 || len(r.Missing) != 1 || !strings.Contains(string(r.Steps[1].Messages[1]), "isn't stored") {
		t.Errorf("in a smaller window: missing %q, steps %v", r.Missing, r.Steps)
	}
	if tiny := replay(t, s, k, 100); len(tiny.Steps) != 0 || len(tiny.Missing) != 1 {
		t.Errorf("in a tiny window: %d steps, missing %q", len(tiny.Steps), tiny.Missing)
	}
}

// A replay says what was deleted since, and gives the rest.
func TestReplayOfWhatIsGone(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := tree.New(dbtest.New(t))
	model := scribe()
	s := service(t, store, Config{Summarizer: Cascade{Models: []Model{{Model: model, Window: 100_000}}}, Settings: withoutDigest(smallSettings())})
	id := conversation(t, store)
	head := talk(t, store, id, uuid.Nil, 12)
	first := compact(t, s, id, head.ID, Demand{})
	head = talk(t, store, id, head.ID, 6)
	second := compact(t, s, id, head.ID, Demand{})
	if second.AnchorID == second.CutoffID {
		t.Fatal("the second compaction looked at nothing ahead, so this test shows nothing")
	}
	prune := func(node uuid.UUID) {
		t.Helper()
		if _, err := store.Prune(ctx, id, node); err != nil {
			t.Fatal(err)
		}
	}
	check := func(k tree.Compaction, missing ...string) Replayed {
		t.Helper()
		r := replay(t, s, k, 0)
		said := strings.Join(r.Missing, "\n")
		for _, want := range missing {
			if !strings.Contains(said, want) {
				t.Errorf("it doesn't say %q but %q", want, said)
			}
		}
		if len(r.Missing) != len(missing) {
			t.Errorf("missing %q, want %q", said, missing)
		}
		return r
	}
	prune(first.SummaryID)
	if r := check(second, "to be merged"); r.Input.Prior != "" || len(r.Input.Fold) != second.FoldedMessages {
		t.Errorf("without the summary before: %d messages, prior %q", len(r.Input.Fold), r.Input.Prior)
	}
	check(first, "that was saved")
	prune(second.AnchorID)
	if r := check(second, "to be merged", "look-ahead", "that was saved"); len(r.Input.Fold) != second.FoldedMessages || len(r.Input.LookAhead) != 0 {
		t.Errorf("without the anchor: %d messages, %d ahead", len(r.Input.Fold), len(r.Input.LookAhead))
	}
	prune(second.CutoffID)
	if r := check(second, "to be merged", "look-ahead", "cutoff", "that was saved"); len(r.Steps) != 0 {
		t.Errorf("without the cutoff: %d steps", len(r.Steps))
	}
	failed, err := s.Compact(ctx, id, head.ID, TriggerRequest, &Demand{})
	if err == nil {
		t.Errorf("compacted what is gone: %+v", failed)
	}
	if r := check(tree.Compaction{ConversationID: id, ID: first.ID, Outcome: tree.OutcomeNothingToDo}); len(r.Steps) != 0 {
		t.Errorf("nothing planned: %d steps", len(r.Steps))
	}
}

func TestRewrite(t *testing.T) {
	t.Parallel()
	store := tree.New(dbtest.New(t))
	s := service(t, store, Config{Summarizer: Cascade{Models: []Model{{Model: scribe(), Window: 100_000}}}})
	id := conversation(t, store)
	head := talk(t, store, id, uuid.Nil, 12)
	k := compact(t, s, id, head.ID, Demand{})
	r := replay(t, s, k, 0)

	other := &llmtest.Model{ModelName: "other", Answer: func(context.Context, llm.Request) (llm.Response, error) {
		return llmtest.Response("What another model makes of the same messages."), nil
	}}
	w, err := s.Rewrite(t.Context(), r, Cascade{Models: []Model{{Model: other, Window: 100_000}}})
	if err != nil || w.Text != "What another model makes of the same messages." || w.Tokens == 0 || len(w.Attempts) != 1 || !sameMessages(r.Steps[0], other.Requests()[0]) {
		t.Errorf("%+v, %v", w, err)
	}
	if w, err := s.Rewrite(t.Context(), r, digest.Summarizer{}); err != nil || w.Text == "" || w.Attempts[0].Model != digest.Name {
		t.Errorf("by the digest: %+v, %v", w, err)
	}
	mute := &llmtest.Model{Answer: func(context.Context, llm.Request) (llm.Response, error) { return llmtest.Response(""), nil }}
	if w, err := s.Rewrite(t.Context(), r, Cascade{Models: []Model{{Model: mute, Window: 100_000}}}); err != nil || w.Text != "" || w.Attempts[0].Error == "" {
		t.Errorf("by a mute model: %+v, %v", w, err)
	}
	if _, err := s.Rewrite(t.Context(), Replayed{}, digest.Summarizer{}); err == nil {
		t.Error("rewrote nothing")
	}
	page, err := store.Compactions(t.Context(), id, tree.Paging{})
	if err != nil || len(page.Data) != 1 {
		t.Errorf("%d compactions are stored, %v", len(page.Data), err)
	}
}

package summarize

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/tree"
)

// A moody model is a witness that a test has fail.
type moody struct {
	witness
	name string
	mood func(llm.Request) (llm.Response, error) // nil: it answers
	got  []llm.Request
}

func (m *moody) Name() string {
	if m.name == "" {
		return m.witness.Name()
	}
	return m.name
}

func (m *moody) Complete(ctx context.Context, req llm.Request) (llm.Response, error) {
	m.got = append(m.got, req)
	if m.mood != nil {
		return m.mood(req)
	}
	return m.witness.Complete(ctx, req)
}

func down(llm.Request) (llm.Response, error) { return llm.Response{}, errDown }

// marked appends turns whose messages have marks.
func marked(t testing.TB, s *tree.Store, id, parent uuid.UUID, from, turns int) tree.Message {
	t.Helper()
	var chain []tree.NewMessage
	for i := range turns * 2 {
		chain = append(chain, tree.NewMessage{Message: chat.Read(messageBody([]string{"user", "assistant"}[i%2], fmt.Sprintf("m%dm says what there is to say of the oaks and of the fence, at some length, and"+strings.Repeat(" so on and so forth, with more words than it needs,", 7), from+i)))})
	}
	return appendAll(t, s, id, parent, chain)
}

// resummarizing is a Service of a moody model without a breaker.
func resummarizing(t testing.TB, store *tree.Store, window int, models ...*moody) *Service {
	t.Helper()
	settings := smallSettings()
	settings.MaxContextTokens = 6000
	s := service(t, store, Config{Settings: settings, Summarizer: Cascade{}})
	c := Cascade{Counter: sparse{}}
	for _, m := range models {
		c.Models = append(c.Models, Model{Model: m, Window: window})
	}
	s.summarizer, s.settings.Digest = c, DigestWhenNeeded
	return s
}

func resummarize(t *testing.T, s *Service, id, head uuid.UUID) Progress {
	t.Helper()
	return check.Must(s.replaceDigest(t.Context(), id, head, compactionRequest{trigger: TriggerAppend}))(t)
}

// isDue checks a branch of which nothing is known.
func isDue(t testing.TB, s *Service, id, head uuid.UUID) bool {
	t.Helper()
	g, b := grownBranch(t, s, id, head)
	due := check.Must3(s.Check(t.Context(), id, g, b, nil))(t)
	return due
}

// grownBranch is what the feed says of a branch without a prefix.
func grownBranch(t testing.TB, s *Service, id, head uuid.UUID) (tree.Growth, tree.GrownBranch) {
	t.Helper()
	c := check.Must(s.store.Conversation(t.Context(), id))(t)
	m := check.Must(s.store.Message(t.Context(), id, head))(t)
	return tree.Growth{Settings: c.Settings}, tree.GrownBranch{HeadID: head, PathTokens: m.PathTokens, Depth: m.Depth}
}

func waits(t *testing.T, s *Service, id, head uuid.UUID) (ids []uuid.UUID) {
	t.Helper()
	e := check.Must(s.Explain(t.Context(), id, head))(t)
	for _, summary := range e.Summaries {
		if summary.Waits {
			ids = append(ids, summary.ID)
		}
	}
	return ids
}

// A request to a Service without models leaves another's model's summary. A reply's branch must fit.
func TestNoDigestOverAModelsSummary(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	with := resummarizing(t, store, 100_000, &moody{})
	without := *with
	without.summarizer = nil
	id := conversation(t, store)
	head := marked(t, store, id, uuid.Nil, 0, 20)
	written := compact(t, with, id, head.ID, Demand{})
	head = marked(t, store, id, head.ID, 40, 40)
	k, err := without.Compact(t.Context(), id, head.ID, TriggerRequest, &Demand{})
	check.That(t, err == nil && k.Outcome == tree.OutcomeFailed && k.PriorSummaryID == written.SummaryID && k.TokensBefore > 5000,
		"asked for: %s of %d tokens: %s, %v", k.Outcome, k.TokensBefore, k.Reason, err)
	if k, err = without.Compact(t.Context(), id, head.ID, TriggerReply, nil); err != nil || k.Model != digest.Name {
		t.Errorf("before a reply: %s by %q: %s, %v", k.Outcome, k.Model, k.Reason, err)
	}
}

// What the digest made while the model was away is made again, at its anchor, and can be undone.
func TestResummarize(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	model := &moody{mood: down}
	s := resummarizing(t, store, 100_000, model)
	id := conversation(t, store)
	head := marked(t, store, id, uuid.Nil, 0, 40)
	first, err := s.Compact(t.Context(), id, head.ID, TriggerAppend, nil)
	check.Need(t, err == nil && first.Model == digest.Name, "%s by %q, %v", first.Outcome, first.Model, err)
	if p := resummarize(t, s, id, head.ID); p.Failed == nil || p.Away == 0 {
		t.Errorf("while the model is away: %+v", p)
	}
	if got := waits(t, s, id, head.ID); !slices.Equal(got, []uuid.UUID{first.SummaryID}) {
		t.Errorf("%v wait", got)
	}
	model.mood = nil
	head = marked(t, store, id, head.ID, 80, 25)
	second, err := s.Compact(t.Context(), id, head.ID, TriggerAppend, nil)
	check.Need(t, err == nil && second.Model == "witness" && second.PriorSummaryID == first.SummaryID,
		"%s by %q, %v", second.Outcome, second.Model, err)
	if got := waits(t, s, id, head.ID); !slices.Equal(got, []uuid.UUID{second.SummaryID, first.SummaryID}) {
		t.Errorf("after a merge %v wait", got)
	}
	check.That(t, isDue(t, s, id, head.ID), "the branch isn't due")
	before := check.Must3(s.Summary(t.Context(), id, second.SummaryID))(t)
	model.got = nil
	if p := resummarize(t, s, id, head.ID); p != (Progress{}) {
		t.Fatalf("%+v", p)
	}
	for _, req := range model.got {
		for _, m := range req.Messages {
			check.That(t, (!strings.Contains(string(m), "Decisions and preferences") || strings.Contains(string(m), "You write the summary")) &&
				!strings.Contains(string(m), "coppice-prior"),
				"the digest is shown to the model that is to do without it: %s", m)
		}
	}
	c := contextOf(t, s, id, head.ID)
	check.Need(t, c.Summary.ID != before.ID && c.Summary.ParentID == before.AnchorID &&
		c.Summary.LastSummarizedID == before.Range.LastSummarizedID && c.Summary.Model == "witness" && c.Complete,
		"%+v, was %+v", c.Summary, before)
	_, text, err := s.Summary(t.Context(), id, c.Summary.ID)
	if err != nil || len(marksIn([]byte(text))) < c.Counts.Folded {
		t.Errorf("%d marks of %d messages: %s, %v", len(marksIn([]byte(text))), c.Counts.Folded, text, err)
	}
	ran, err := store.Summaries().Compactions(t.Context(), id, tree.Paging{})
	check.That(t, err == nil && ran.Data[0].RemadeID == second.SummaryID && ran.Data[0].Trigger == string(TriggerAppend) &&
		ran.Data[0].PriorSummaryID == uuid.Nil && ran.Data[0].FoldedMessages == c.Counts.Folded,
		"the record is %+v, %v", ran.Data[0], err)
	check.That(t, !isDue(t, s, id, head.ID), "after it the branch is due still")
	if got := waits(t, s, id, head.ID); !slices.Equal(got, []uuid.UUID{first.SummaryID}) {
		t.Errorf("after it %v wait", got) // that one applies to branches that fork above
	}
	if p, n := resummarize(t, s, id, head.ID), len(model.got); p != (Progress{}) || len(model.got) != n {
		t.Errorf("a summary that is whole is made again: %+v", p)
	}
	check.Must(store.Prune(t.Context(), id, c.Summary.ID))(t)
	if c := contextOf(t, s, id, head.ID); c.Summary == nil || c.Summary.ID != before.ID {
		t.Errorf("after it is undone the summary is %+v", c.Summary)
	}
	// The record tells what wrote a merge whose prior is undone.
	check.Must(store.Prune(t.Context(), id, first.SummaryID))(t)
	if got := waits(t, s, id, head.ID); !slices.Equal(got, []uuid.UUID{second.SummaryID}) {
		t.Errorf("after the digest's own is undone %v wait", got)
	}
}

// What is too much for one call is made in steps that stay, on the last summary without a digest.
func TestResummarizeInSteps(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	model := &moody{}
	s := resummarizing(t, store, 10_000, model)
	real := s.summarizer.(Cascade)
	real.Counter = nil
	s.summarizer = real
	id := conversation(t, store)
	head := marked(t, store, id, uuid.Nil, 0, 30)
	whole, err := s.Compact(t.Context(), id, head.ID, TriggerAppend, nil)
	check.Need(t, err == nil && whole.Model == "witness", "%s by %q, %v", whole.Outcome, whole.Model, err)
	model.mood = down
	head = marked(t, store, id, head.ID, 60, 100)
	made, err := s.Compact(t.Context(), id, head.ID, TriggerAppend, nil)
	check.Need(t, err == nil && made.Model == digest.Name, "%s by %q, %v", made.Outcome, made.Model, err)
	recorded := check.Must(store.Summaries().Compactions(t.Context(), id, tree.Paging{}))(t)
	before := len(recorded.Data)
	model.mood = nil
	steps := 0
	for {
		p, err := s.replaceDigest(t.Context(), id, head.ID, compactionRequest{trigger: TriggerAppend, until: time.Now()}) // one step at a time
		check.Need(t, err == nil && p.Failed == nil, "%+v, %v", p, err)
		if steps++; !p.More {
			break
		}
	}
	c := contextOf(t, s, id, head.ID)
	check.That(t, steps >= 2 && c.Summary.Model == "witness" && c.Summary.ParentID == made.AnchorID && c.Summary.LastSummarizedID == made.CutoffID,
		"after %d steps the summary is %+v", steps, c.Summary)
	ran, err := store.Summaries().Compactions(t.Context(), id, tree.Paging{})
	check.Need(t, err == nil && len(ran.Data) == steps+before,
		"%d records of %d steps, %v; the last is %s: %s", len(ran.Data), steps, err, ran.Data[0].Outcome, ran.Data[0].Reason)
	for i, k := range ran.Data[:steps] { // newest first
		check.That(t, k.Outcome == tree.OutcomeSaved, "step %d: %s: %s", steps-i, k.Outcome, k.Reason)
		prior := whole.SummaryID
		if i < steps-1 {
			prior = ran.Data[i+1].SummaryID
		}
		check.That(t, k.PriorSummaryID == prior && k.RemadeID == made.SummaryID,
			"step %d merges %s, want %s", steps-i, k.PriorSummaryID, prior)
	}
}

// Only a server with models and settings for it does so by itself, and doesn't ask again and again.
func TestResummarizesWhere(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	model := &moody{mood: down}
	s := resummarizing(t, store, 100_000, model)
	id := conversation(t, store)
	head := marked(t, store, id, uuid.Nil, 0, 40)
	k, err := s.Compact(t.Context(), id, head.ID, TriggerAppend, nil)
	check.Need(t, err == nil && k.Model == digest.Name, "%s by %q, %v", k.Outcome, k.Model, err)
	for _, test := range []struct {
		settings     string
		resummarizes bool
	}{
		{`{}`, true}, {`{"digest":"never"}`, true}, {`{"digest":"always"}`, false}, {`{"compaction":"manual"}`, false}, {`{"compaction":"off"}`, false},
	} {
		check.Must(store.UpdateConversation(t.Context(), id, tree.ConversationUpdate{Settings: []byte(test.settings)}))(t)
		if due := isDue(t, s, id, head.ID); due != test.resummarizes || (len(waits(t, s, id, head.ID)) == 1) != test.resummarizes {
			t.Errorf("%s: due %v, want %v", test.settings, due, test.resummarizes)
		}
	}
	check.Must(store.UpdateConversation(t.Context(), id, tree.ConversationUpdate{Settings: []byte(`{}`)}))(t)
	alone := resummarizing(t, store, 100_000)
	if alone.summarizer = nil; isDue(t, alone, id, head.ID) {
		t.Error("without a model it is due")
	}
	model.mood = func(llm.Request) (llm.Response, error) {
		return llm.Response{Refusal: "No.", FinishReason: "stop"}, nil
	}
	model.got = nil
	for range 3 {
		p := resummarize(t, s, id, head.ID)
		check.That(t, p.Failed == nil, "%+v", p)
	}
	check.That(t, len(model.got) == 1, "it is asked %d times", len(model.got))
	check.That(t, !isDue(t, s, id, head.ID), "it is due at once")
	c := contextOf(t, s, id, head.ID)
	check.That(t, c.Summary.Model == digest.Name && c.Complete, "%+v", c.Summary)
}

// On request any applicable summary is made again, with other instructions or another model.
func TestRemake(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	cheap, dear := &moody{name: "cheap"}, &moody{name: "dear"}
	s := resummarizing(t, store, 100_000, cheap, dear)
	s.settings.Instructions = "Write in the present tense."
	id := conversation(t, store)
	head := marked(t, store, id, uuid.Nil, 0, 40)
	first := compact(t, s, id, head.ID, Demand{})
	head = marked(t, store, id, head.ID, 80, 25)
	second := compact(t, s, id, head.ID, Demand{})
	check.Need(t, first.Model == "cheap" && second.Model == "cheap" && second.PriorSummaryID == first.SummaryID,
		"%s, %s", first.Model, second.Model)
	k, err := s.Remake(t.Context(), id, second.SummaryID, RemakeDemand{Instructions: "Keep the oaks.", Model: "dear"})
	check.Need(t, err == nil && k.Outcome == tree.OutcomeSaved && k.Model == "dear" && k.RemadeID == second.SummaryID && k.PriorSummaryID == first.SummaryID &&
		k.AnchorID == second.AnchorID && k.CutoffID == second.CutoffID && k.Instructions == "Keep the oaks.",
		"%+v, %v", k, err)
	asked := string(dear.got[0].Messages[len(dear.got[0].Messages)-1])
	check.That(t, strings.Contains(asked, "Keep the oaks.") && strings.Contains(asked, "Write in the present tense."),
		"asked with %s", asked)
	c := contextOf(t, s, id, head.ID)
	check.That(t, c.Summary.ID == k.SummaryID && c.Complete, "%+v", c.Summary)
	var wrong *fault.Error
	if _, err := s.Remake(t.Context(), id, second.SummaryID, RemakeDemand{}); !errors.As(err, &wrong) || wrong.Code != "summary_replaced" || !strings.Contains(wrong.Detail, k.SummaryID.String()) {
		t.Errorf("a summary that was replaced: %v", err)
	}
	if _, err := s.Remake(t.Context(), id, k.SummaryID, RemakeDemand{Model: "none"}); !errors.As(err, &wrong) || wrong.Field != "model" || !strings.Contains(wrong.Detail, "cheap, dear") {
		t.Errorf("a model that is none: %v", err)
	}
	check.Fails(s.Remake(t.Context(), id, k.SummaryID, RemakeDemand{Instructions: strings.Repeat("a", 5000)}))(t, "long instructions", fault.Invalid)
	check.Fails(s.Remake(t.Context(), id, head.ID, RemakeDemand{}))(t, "a message", fault.NotFound)
	cheap.mood, dear.mood = down, down
	if k, err := s.Remake(t.Context(), id, k.SummaryID, RemakeDemand{}); err != nil || k.Outcome != tree.OutcomeFailed {
		t.Errorf("while no model answers: %s by %q, %v", k.Outcome, k.Model, err)
	}
	// The digest makes its own again where it is what there is.
	alone := service(t, store, Config{})
	if k, err := alone.Remake(t.Context(), id, k.SummaryID, RemakeDemand{}); err != nil || k.Outcome != tree.OutcomeSaved || k.Model != digest.Name {
		t.Errorf("without a model: %s by %q: %s, %v", k.Outcome, k.Model, k.Reason, err)
	}
}

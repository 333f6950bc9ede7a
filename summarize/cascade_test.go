package summarize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/access"
	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// talk appends turns to a conversation and gives the last message.
func talk(t testing.TB, s *tree.Store, conversation, parent uuid.UUID, turns int) tree.Message {
	t.Helper()
	var chain []tree.NewMessage
	for i := range turns {
		for _, role := range []string{"user", "assistant"} {
			chain = append(chain, tree.NewMessage{Message: chat.Read(messageBody(role, fmt.Sprintf("%s says in turn %d of this talk what there is to say about it, at some length.", role, i)))})
		}
	}
	return appendAll(t, s, conversation, parent, chain)
}

// appendAll appends messages, each below the one before, and gives the last.
func appendAll(t testing.TB, s *tree.Store, conversation, parent uuid.UUID, messages []tree.NewMessage) (last tree.Message) {
	t.Helper()
	for part := range slices.Chunk(messages, tree.MaxChain) {
		stored := check.Must(s.AppendChain(t.Context(), conversation, parent, part))(t)
		last = stored.Messages[len(stored.Messages)-1]
		parent = last.ID
	}
	return last
}

func conversation(t testing.TB, s *tree.Store) uuid.UUID {
	t.Helper()
	c := check.Must3(s.CreateConversation(t.Context(), tree.NewConversation{}))(t)
	return c.ID
}

func service(t testing.TB, s *tree.Store, cfg Config) *Service {
	t.Helper()
	if cfg.Settings == (Settings{}) {
		cfg.Settings = smallSettings()
	}
	return check.Must(New(s, cfg))(t)
}

const written = "The user and the assistant said at some length what there is to say about this talk, in the turns 0, 1, 2, 3, 4, 5, 6, 7, 8 and 9."

// turnsFrom names turns of talk, for a summary of many.
func turnsFrom(first, after int) string {
	text := " And in the turns"
	for i := first; i < after; i++ {
		text += fmt.Sprint(" ", i)
	}
	return text + "."
}

// Whatever a provider does, the next model or the digest compacts in time, and the record says why.
func TestCascade(t *testing.T) {
	t.Parallel()
	pool := database()
	for _, test := range []struct {
		name  string
		fault llmtest.Behaviour
		saved bool // by the faulty model itself
		error string
	}{
		{name: "an answer", fault: llmtest.Answer(written), saved: true},
		{name: "401", fault: llmtest.Fail(401), error: "not authorized"},
		{name: "500", fault: llmtest.Fail(500), error: "unavailable"},
		{name: "a hang", fault: llmtest.Hang(), error: "timed out"},
		{name: "a cut connection", fault: llmtest.CutConnection(), error: "unavailable"},
		{name: "nothing", fault: llmtest.Empty(), error: "empty"},
		{name: "a refusal", fault: llmtest.Refuse("I can't help with that."), error: "refuses"},
		{name: "a refusal in words", fault: llmtest.Answer("I'm sorry, but I can't help with that request."), error: "refuses"},
		{name: "its own prompt", fault: llmtest.Echo(), error: "repeats its prompt"},
		{name: "an answer cut off", fault: llmtest.Truncated(written), error: "cut off"},
		{name: "1 MB", fault: llmtest.Answer(strings.Repeat("Much was said. ", 70_000))},
		{name: "an endless answer", fault: llmtest.Endless()},
		{name: "a prompt too long", fault: llmtest.TooLong(), error: "prompt too long"},
		{name: "no summary", fault: llmtest.Answer(llmtest.NoSummaries["a reply"]), error: "says nothing of the messages"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			provider := llmtest.NewServer(t)
			provider.Otherwise(test.fault)
			faulty := check.Must(llm.NewOpenAI(llm.OpenAIConfig{BaseURL: provider.URL(), APIKey: "sk-canary", Model: "faulty", HTTPClient: provider.Client()}))(t)
			store := tree.New(pool)
			var observed []tree.Compaction
			timeout := time.Minute
			if test.error == "timed out" {
				timeout = 400 * time.Millisecond
			}
			s := service(t, store, Config{
				Summarizer: Cascade{Models: []Model{{Model: faulty, Window: 100_000, Timeout: timeout}}},
				Observe:    func(k tree.Compaction) { observed = append(observed, k) },
			})
			id := conversation(t, store)
			head := talk(t, store, id, uuid.Nil, 40)
			k := check.Must(s.Compact(t.Context(), id, head.ID, TriggerAppend, nil))(t)
			var attempts []prompt.Attempt
			if err := json.Unmarshal(k.Attempts, &attempts); err != nil || len(attempts) == 0 {
				t.Fatalf("attempts %s, %v", k.Attempts, err)
			}
			if test.saved {
				check.That(t, k.Outcome == tree.OutcomeSaved && k.Model == "faulty" && len(attempts) == 1 && attempts[0].Error == "",
					"%s by %q after %s: %s", k.Outcome, k.Model, k.Attempts, k.Reason)
			} else if k.Outcome == tree.OutcomeSaved {
				check.That(t, k.Model == digest.Name && len(attempts) == 2 &&
					strings.Contains(attempts[0].Error, test.error) && attempts[0].Error != "",
					"saved by %q after %s", k.Model, k.Attempts)
			} else if k.Outcome != tree.OutcomeNoGain || test.error != "" {
				t.Errorf("%s: %s", k.Outcome, k.Reason)
			}
			check.That(t, !strings.Contains(string(k.Attempts)+k.Reason, "sk-canary") &&
				!strings.Contains(string(k.Attempts), "what there is to say about it"),
				"the record holds a key or message text: %s", k.Attempts)
			check.That(t, len(observed) == 1 && observed[0].ID == k.ID, "observed %+v", observed)
			listed, err := store.Summaries().Compactions(t.Context(), id, tree.Paging{})
			check.That(t, err == nil && len(listed.Data) == 1 && listed.Data[0].Outcome == k.Outcome &&
				string(listed.Data[0].Attempts) == string(k.Attempts),
				"the record is %+v, %v", listed.Data, err)
			if _, err := s.Context(t.Context(), id, head.ID, Window{}); err != nil {
				t.Errorf("the context after it: %v", err)
			}
		})
	}
}

// An answer that says what the prompt says is no summary, also without the prompt's tags.
func TestAnswerThatIsThePrompt(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	for _, test := range []struct {
		name string
		from func(messages []json.RawMessage) json.RawMessage
	}{
		{"the instructions", func(ms []json.RawMessage) json.RawMessage { return ms[0] }},
		{"the closing words", func(ms []json.RawMessage) json.RawMessage { return ms[len(ms)-1] }},
	} {
		said := ""
		model := &llmtest.Model{Answer: func(_ context.Context, req llm.Request) (llm.Response, error) {
			var m struct{ Content string }
			if err := json.Unmarshal(test.from(req.Messages), &m); err != nil {
				return llm.Response{}, err
			}
			for line := range strings.Lines(m.Content) { // the first that would do as a summary
				if _, err := prompt.Clean(line); err == nil && said == "" {
					said = strings.TrimSpace(line)
				}
			}
			return llmtest.Response(said), nil
		}}
		s := service(t, store, Config{Summarizer: Cascade{Models: []Model{{Model: model, Window: 100_000}}}})
		id := conversation(t, store)
		k := compact(t, s, id, talk(t, store, id, uuid.Nil, 40).ID, Demand{})
		check.Need(t, said != "", "%s: no line of it would do as a summary", test.name)
		check.That(t, k.Model == digest.Name && strings.Contains(string(k.Attempts), "repeats its prompt"),
			"%s: %q is saved as the summary of %s: %s", test.name, said, k.Model, k.Attempts)
	}
}

// A model has its own timeout, and no more than what the caller's leaves beside the digest.
func TestModelsTimeIsBounded(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	for _, test := range []struct {
		name    string
		timeout time.Duration
	}{
		{"a model that is quicker than the caller", time.Minute},
		{"a caller that is quicker than the model", 100 * time.Hour},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		t.Cleanup(cancel)
		end, _ := ctx.Deadline()
		calls := 0
		model := &llmtest.Model{Answer: func(ctx context.Context, _ llm.Request) (llm.Response, error) {
			calls++
			deadline, _ := ctx.Deadline()
			if left, leaves := time.Until(deadline), end.Sub(deadline); left > test.timeout || leaves < reserve {
				t.Errorf("%s: the call may take %s and leaves %s, want %s at most and %s at least", test.name, left, leaves, test.timeout, reserve)
			}
			return llmtest.Response(written), nil
		}}
		s := service(t, store, Config{Summarizer: Cascade{Models: []Model{{Model: model, Window: 100_000, Timeout: test.timeout}}}})
		id := conversation(t, store)
		k, err := s.Compact(ctx, id, talk(t, store, id, uuid.Nil, 40).ID, TriggerAppend, nil)
		check.That(t, err == nil && k.Outcome == tree.OutcomeSaved && calls == 1,
			"%s: %s after %d calls, %v", test.name, k.Outcome, calls, err)
	}
}

// A refused answer is asked for once more, then of the next model. Another language counts; gaps are filled.
func TestAudit(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	question := llmtest.NoSummaries["a question"]
	german := "Der Nutzer und der Assistent haben gesagt, was es zu dem Talk zu sagen gibt, und das ist nicht wenig, auch wenn es in den Zügen 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 das ist, was man schon weiß."
	for _, test := range []struct {
		name    string
		answers []string // of the first model, the last one again and again
		by      string
		asked   int
		lacks   string // in the second request
	}{
		{"a good one", []string{written}, "first", 1, ""},
		{"the second is good", []string{question, written}, "first", 2, "says nothing of the messages"},
		{"neither is", []string{question}, "second", 2, "says nothing of the messages"},
		{"in another language, twice", []string{german}, "first", 2, "in another language"},
		{"in another language, and then nothing", []string{german, "No."}, "first", 2, "in another language"},
	} {
		n := 0
		first := &llmtest.Model{ModelName: "first", Answer: func(context.Context, llm.Request) (llm.Response, error) {
			n++
			return llmtest.Response(test.answers[min(n, len(test.answers))-1]), nil
		}}
		second := &llmtest.Model{ModelName: "second", Answer: func(context.Context, llm.Request) (llm.Response, error) { return llmtest.Response(written), nil }}
		s := service(t, store, Config{Summarizer: Cascade{Models: []Model{{Model: first, Window: 100_000}, {Model: second, Window: 100_000}}}})
		id := conversation(t, store)
		k := compact(t, s, id, talk(t, store, id, uuid.Nil, 40).ID, Demand{})
		if k.Outcome != tree.OutcomeSaved || k.Model != test.by || len(first.Requests()) != test.asked {
			t.Errorf("%s: %s by %q after %d calls of the first: %s", test.name, k.Outcome, k.Model, len(first.Requests()), k.Attempts)
			continue
		}
		if test.lacks != "" {
			again := first.Requests()[1].Messages
			if last := string(again[len(again)-1]); !strings.Contains(last, test.lacks) || !strings.Contains(string(again[len(again)-2]), `"role":"assistant"`) {
				t.Errorf("%s: the second request ends with %s", test.name, again[len(again)-2:])
			}
		}
		e, err := s.Explain(t.Context(), id, uuid.Nil)
		check.That(t, err == nil && len(e.Summaries) == 1 && e.Summaries[0].Audit != nil && e.Summaries[0].Audit.Fold >= 0.1,
			"%s: explained as %+v, %v", test.name, e.Summaries, err)
		_, text, err := s.Summary(t.Context(), id, k.SummaryID)
		if filled := e.Summaries[0].Audit.Filled; err != nil || filled == 0 || !strings.Contains(text, "\n## ") {
			t.Errorf("%s: %d tokens are added: %q, %v", test.name, filled, text, err)
		}
	}
}

// Requests for one compaction at a time are one paid call, of one tenant and user.
func TestCompactionsAtOnce(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	asked, answer := make(chan bool, 9), make(chan bool)
	model := &llmtest.Model{Answer: func(context.Context, llm.Request) (llm.Response, error) {
		asked <- true
		<-answer
		return llmtest.Response(written), nil
	}}
	s := service(t, store, Config{Summarizer: Cascade{Models: []Model{{Model: model, Window: 100_000}}}})
	id := conversation(t, store)
	head := talk(t, store, id, uuid.Nil, 40).ID
	owner, private := "ada", true
	check.Must(store.UpdateConversation(t.Context(), id, tree.ConversationUpdate{OwnerID: &owner, Private: &private}))(t)
	records := make(chan uuid.UUID, 3)
	for range 3 {
		go func() {
			k, err := s.Compact(t.Context(), id, head, TriggerRequest, &Demand{KeepRecentMessages: 2})
			if err != nil || k.Outcome != tree.OutcomeSaved && k.Outcome != tree.OutcomeNothingToDo { // for one that comes late
				t.Errorf("%s: %s, %v", k.Outcome, k.Reason, err)
			}
			records <- k.SummaryID
		}()
	}
	<-asked
	for _, other := range []access.Principal{{Tenant: "other"}, {Tenant: tree.DefaultTenant, User: "bob"}} {
		if _, err := s.For(other).Compact(t.Context(), id, head, TriggerRequest, &Demand{KeepRecentMessages: 2}); !errors.Is(err, fault.NotFound) {
			t.Errorf("%s of tenant %s gets %v", other.User, other.Tenant, err)
		}
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := s.Compact(gone, id, head, TriggerRequest, &Demand{KeepRecentMessages: 2}); !errors.Is(err, context.Canceled) {
		t.Errorf("who went away gets %v", err)
	}
	close(answer)
	saved := map[uuid.UUID]bool{}
	for range 3 {
		saved[<-records] = true
	}
	if delete(saved, uuid.Nil); len(saved) != 1 || len(model.Requests()) != 1 {
		t.Errorf("%d calls for the summaries %v", len(model.Requests()), saved)
	}
}

// What happens to a branch while its summarizer writes.
func TestWhileTheSummarizerWrites(t *testing.T) {
	t.Parallel()
	pool := database()
	for _, test := range []struct {
		name    string
		prior   bool // there is a summary before
		during  func(t *testing.T, s *Service, id uuid.UUID, head tree.Message, prior uuid.UUID)
		outcome tree.Outcome
	}{
		{name: "nothing", outcome: tree.OutcomeSaved},
		{name: "the branch grows", outcome: tree.OutcomeSaved, during: func(t *testing.T, s *Service, id uuid.UUID, head tree.Message, _ uuid.UUID) {
			talk(t, s.store, id, head.ID, 2)
		}},
		{name: "the branch is pruned", outcome: tree.OutcomeStale, during: func(t *testing.T, s *Service, id uuid.UUID, head tree.Message, _ uuid.UUID) {
			page, err := s.store.Transcript(t.Context(), id, head.ID, tree.Paging{Limit: 1000})
			if err == nil {
				_, err = s.store.Prune(t.Context(), id, page.Data[3].ID)
			}
			if err != nil {
				t.Error(err)
			}
		}},
		{name: "messages are pruned, and others come under the same ids", outcome: tree.OutcomeStale, during: func(t *testing.T, s *Service, id uuid.UUID, head tree.Message, _ uuid.UUID) {
			page, err := s.store.Transcript(t.Context(), id, head.ID, tree.Paging{Limit: 1000})
			if err == nil {
				_, err = s.store.Prune(t.Context(), id, page.Data[3].ID)
			}
			var again []tree.NewMessage
			for _, m := range page.Data[3:] {
				again = append(again, tree.NewMessage{ID: m.ID, Message: chat.Read(m.Body), CreatedAt: m.CreatedAt})
			}
			again[0].Message = chat.Text(chat.Assistant, "I said something else.")
			if err == nil {
				_, err = s.store.AppendChain(t.Context(), id, page.Data[2].ID, again)
			}
			if err != nil {
				t.Error(err)
			}
		}},
		{name: "the tip is pruned", outcome: tree.OutcomeSaved, during: func(t *testing.T, s *Service, id uuid.UUID, head tree.Message, _ uuid.UUID) {
			if _, err := s.store.Prune(t.Context(), id, head.ID); err != nil {
				t.Error(err)
			}
		}},
		{name: "another summary lands", outcome: tree.OutcomeSuperseded, during: func(t *testing.T, s *Service, id uuid.UUID, head tree.Message, _ uuid.UUID) {
			other := *s
			other.summarizer = nil
			if k, err := other.Compact(t.Context(), id, head.ID, TriggerRequest, &Demand{}); err != nil || k.Outcome != tree.OutcomeSaved {
				t.Errorf("%s, %v", k.Outcome, err)
			}
		}},
		{name: "the summary before is undone", prior: true, outcome: tree.OutcomeSuperseded, during: func(t *testing.T, s *Service, id uuid.UUID, _ tree.Message, prior uuid.UUID) {
			if _, err := s.store.Prune(t.Context(), id, prior); err != nil {
				t.Error(err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			store := tree.New(pool)
			id := conversation(t, store)
			head := talk(t, store, id, uuid.Nil, 40)
			var prior uuid.UUID
			if test.prior {
				k, err := service(t, store, Config{}).Compact(t.Context(), id, head.ID, TriggerRequest, &Demand{})
				if err != nil || k.Outcome != tree.OutcomeSaved {
					t.Fatal(k.Outcome, err)
				}
				prior = k.SummaryID
				head = talk(t, store, id, head.ID, 30)
			}
			var s *Service
			s = service(t, store, Config{Summarizer: Cascade{Models: []Model{{Window: 100_000, Model: &llmtest.Model{Answer: func(context.Context, llm.Request) (llm.Response, error) {
				if test.during != nil {
					test.during(t, s, id, head, prior)
				}
				return llmtest.Response(written + turnsFrom(10, 40)), nil
			}}}}}})
			k, err := s.Compact(t.Context(), id, head.ID, TriggerAppend, nil)
			check.That(t, err == nil && k.Outcome == test.outcome, "%s (%s), %v; want %s", k.Outcome, k.Reason, err, test.outcome)
			check.That(t, (k.SummaryID != uuid.Nil) == (test.outcome == tree.OutcomeSaved),
				"summary %s of a compaction that is %s", k.SummaryID, k.Outcome)
		})
	}
}

// own is a program's own Summarizer.
type own func(in prompt.Input) (prompt.Result, error)

func (f own) Summarize(_ context.Context, in prompt.Input) (prompt.Result, error) { return f(in) }

// A program's own Summarizer writes the summary. One that breaks its promises leaves it to the digest.
func TestOwnSummarizer(t *testing.T) {
	t.Parallel()
	store := tree.New(database())
	for _, test := range []struct {
		name string
		with own
		why  string // what the record says of it; "" where its summary is saved
	}{
		{"all", func(in prompt.Input) (prompt.Result, error) {
			return prompt.Result{Text: written, Model: "own", Taken: len(in.Fold)}, nil
		}, ""},
		{"a part, again and again", func(in prompt.Input) (prompt.Result, error) {
			return prompt.Result{Text: written, Model: "own", Taken: min(10, len(in.Fold))}, nil
		}, ""},
		{"an error", func(prompt.Input) (prompt.Result, error) { return prompt.Result{}, errors.New("it is tired") }, "it is tired"},
		{"nothing", func(prompt.Input) (prompt.Result, error) { return prompt.Result{Model: "own"}, nil }, "a summary of 0 bytes"},
		{"no message", func(prompt.Input) (prompt.Result, error) { return prompt.Result{Text: written, Model: "own"}, nil }, "takes 0 of"},
		{"more than there are", func(prompt.Input) (prompt.Result, error) {
			return prompt.Result{Text: written, Model: "own", Taken: 10_000}, nil
		}, "takes 10000 of"},
	} {
		s := service(t, store, Config{Summarizer: test.with})
		id := conversation(t, store)
		head := talk(t, store, id, uuid.Nil, 40)
		k, err := s.Compact(t.Context(), id, head.ID, TriggerAppend, nil)
		check.Need(t, err == nil && k.Outcome == tree.OutcomeSaved, "%s: %s: %s, %v", test.name, k.Outcome, k.Reason, err)
		if model := map[bool]string{true: "own", false: digest.Name}[test.why == ""]; k.Model != model || !strings.Contains(string(k.Attempts), test.why) {
			t.Errorf("%s: by %s after %s", test.name, k.Model, k.Attempts)
		}
		c := contextOf(t, s, id, head.ID)
		check.That(t, c.Complete && c.Counts.Folded != 0, "%s: %s", test.name, c.Status)
	}
}

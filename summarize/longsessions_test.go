package summarize

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/transfer"
	"github.com/coppice-chat/coppice/tree"
)

// sharedSession opens a real export, which stands beside the repository and not
// in it.
func sharedSession(t *testing.T, name string) *os.File {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if f, err := os.Open(filepath.Join(dir, "shared", "data", name)); err == nil {
			t.Cleanup(func() { f.Close() })
			return f
		}
	}
	t.Skipf("shared/data/%s is not above this package; it holds real exports, which are not part of the repository", name)
	return nil
}

// verbose is a model that writes as much as it is asked for.
type verbose struct{}

func (verbose) Name() string { return "verbose" }

func (verbose) Complete(_ context.Context, req llm.Request) (llm.Response, error) {
	words := req.MaxOutputTokens / outputSlack
	return llm.Response{Text: "What was said: " + strings.Repeat("word ", words), PromptTokens: 1, CompletionTokens: words, FinishReason: "stop"}, nil
}

func (v verbose) Stream(ctx context.Context, req llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
	return v.Complete(ctx, req)
}

// Real sessions, told message by message: whatever agents and people wrote, the
// context stays valid and inside the window, and every compaction gets on.
func TestLongSessions(t *testing.T) {
	t.Parallel()
	for _, file := range []string{
		"claude-code/long-1.jsonl", "claude-code/long-2.jsonl", "claude-code/medium-1.jsonl", "claude-code/medium-2.jsonl",
		"pi/large-session.jsonl", "swe-agent/ctf--web--i_got_id_demo.traj", "tau-bench/gpt-4o-airline.json",
	} {
		t.Run(strings.ReplaceAll(file, "/", "-"), func(t *testing.T) {
			t.Parallel()
			f := sharedSession(t, file)
			pool := dbtest.New(t)
			store := tree.New(pool)
			if _, err := transfer.Import(t.Context(), store, f, transfer.Options{}); err != nil {
				t.Fatal(err)
			}
			if _, err := pool.Exec(t.Context(), "analyze"); err != nil { // as autovacuum does after a minute
				t.Fatal(err)
			}
			for _, test := range []struct {
				window int
				models []Model
			}{
				{8_000, nil}, {16_000, nil}, {32_000, nil}, {16_000, []Model{{Model: verbose{}, Window: 100_000}}},
			} {
				settings := Defaults()
				settings.MaxContextTokens, settings.ReservedTokens = test.window, 0
				service, err := New(store, Config{Settings: settings, Summarizer: Cascade{Models: test.models}})
				if err != nil {
					t.Fatal(err)
				}
				s := longest(t, store)
				s.service, s.settings = service, settings
				s.tell(t)
				t.Logf("window %d: %d messages, %d tokens, %d compactions, %d contexts that don't fit", test.window, len(s.path), tree.Tokens(s.path), s.compactions, s.incomplete)
				s.check(t)
				s.forget(t)
			}
		})
	}
}

// A session is the longest conversation of a file, told to a service.
type session struct {
	store    *tree.Store
	id       uuid.UUID
	path     []tree.PathMessage
	service  *Service
	settings Settings

	compactions int // that saved a summary
	incomplete  int // contexts that say they don't hold everything
	grown       int // tokens since the last compaction
}

func longest(t *testing.T, store *tree.Store) *session {
	t.Helper()
	page, err := store.Conversations(t.Context(), tree.ConversationFilter{}, tree.Paging{Limit: tree.MaxPage})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{store: store}
	for _, c := range page.Data {
		v, err := store.View(t.Context(), c.ID, c.HeadID, wholeBranch, tree.Skeleton())
		if err != nil {
			t.Fatal(err)
		}
		if path := slices.Concat(v.Prefix, v.Tail); tree.Tokens(path) > tree.Tokens(s.path) {
			s.id, s.path = c.ID, path
		}
	}
	return s
}

// tell asks for the context of one message after the other, as if it had just
// been appended, and compacts where the branch is over its trigger. In a wide
// window a long session comes in chains of four.
func (s *session) tell(t *testing.T) {
	chain := 1
	if len(s.path) > 300 && s.settings.MaxContextTokens > 8_000 {
		chain = 4
	}
	for i, m := range s.path {
		if s.grown += m.Tokens; i%chain > 0 {
			continue
		}
		c := s.context(t, m.ID)
		if !c.Complete || c.Usage.ContextTokens > c.Usage.TriggerTokens {
			s.compact(t, m.ID, c.Complete)
			c = s.context(t, m.ID)
		}
		checkValid(t, c)
		available := s.settings.Budget().Available
		switch {
		case c.Complete && c.Usage.ContextTokens > available:
			t.Fatalf("%s: %d tokens are over %d, and the context calls itself complete", m.ID, c.Usage.ContextTokens, available)
		case c.Usage.ContextTokens > available && m.Tokens < available/2 && m.Role != tree.RoleTool:
			t.Fatalf("%s: %d tokens are over %d, and no large message is to blame", m.ID, c.Usage.ContextTokens, available)
		case !c.Complete:
			s.incomplete++
		}
	}
}

func (s *session) context(t *testing.T, head uuid.UUID) Context {
	t.Helper()
	c, err := s.service.Context(t.Context(), s.id, head, Window{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// compact is what a background job does. A branch that doesn't fit may be
// compacted twice in a row: not before somebody else speaks can a large result
// be folded.
func (s *session) compact(t *testing.T, head uuid.UUID, fits bool) {
	t.Helper()
	k, err := s.service.Compact(t.Context(), s.id, head, TriggerAppend, nil)
	if err != nil {
		t.Fatal(err)
	}
	switch k.Outcome {
	case tree.OutcomeNothingToDo:
		return // costs no call
	case tree.OutcomeSaved:
	default:
		t.Fatalf("%s: a compaction came to %s: %s", head, k.Outcome, k.Reason)
	}
	s.compactions++
	if k.FoldedMessages == 0 || k.TokensAfter >= k.TokensBefore {
		t.Fatalf("%s: a compaction that gets nowhere: %s", head, k.Reason)
	}
	if least := s.settings.MinFoldTokens / 4; fits && s.grown < least {
		t.Fatalf("%s: compacted again after %d tokens", head, s.grown)
	}
	s.grown = 0
}

// check holds the whole session to what can be asked of it. Between two
// compactions there is room for what the settings leave of the trigger; large
// messages take more of it than they need.
func (s *session) check(t *testing.T) {
	b := s.settings.Budget()
	room := b.Trigger - b.Keep - b.KeepUser - b.Target
	total := tree.Tokens(s.path)
	if most := 2 + 3*total/(2*room); s.compactions > most {
		t.Errorf("%d compactions of %d tokens with room for %d between them: %d are the most", s.compactions, total, room, most)
	}
	if least := (total - b.Trigger) / b.Available; s.compactions < least {
		t.Errorf("only %d compactions of %d tokens", s.compactions, total)
	}
	// In the smallest window, results of half its size leave no room.
	if most := len(s.path) * 15 / 100; b.Available < 16_000 && s.incomplete > most || b.Available >= 16_000 && s.incomplete > 0 {
		t.Errorf("%d of %d contexts don't hold everything", s.incomplete, len(s.path))
	}
}

// forget undoes the summaries.
func (s *session) forget(t *testing.T) {
	t.Helper()
	summaries, err := s.store.Summaries(t.Context(), s.id)
	if err != nil {
		t.Fatal(err)
	}
	for _, summary := range summaries {
		if _, err := s.store.Prune(t.Context(), s.id, summary.ID); err != nil {
			t.Fatal(err)
		}
	}
}

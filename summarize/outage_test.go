package summarize

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/llm"
	"github.com/coppice-chat/coppice/llm/llmtest"
	"github.com/coppice-chat/coppice/summarize/digest"
	"github.com/coppice-chat/coppice/tree"
)

// moods are the ways in which a model fails.
var moods = map[string]func(llm.Request) (llm.Response, error){
	"well":     nil,
	"down":     down,
	"hangs":    func(llm.Request) (llm.Response, error) { return llm.Response{}, errSlow },
	"401":      func(llm.Request) (llm.Response, error) { return llm.Response{}, &llm.Error{Kind: llm.ErrAuth} },
	"429":      func(llm.Request) (llm.Response, error) { return llm.Response{}, &llm.Error{Kind: llm.ErrRateLimited} },
	"bad JSON": func(llm.Request) (llm.Response, error) { return llm.Response{}, &llm.Error{Kind: llm.ErrBadResponse} },
	"too long": func(llm.Request) (llm.Response, error) { return llm.Response{}, &llm.Error{Kind: llm.ErrPromptTooLong} },
	"empty":    func(llm.Request) (llm.Response, error) { return llmtest.Response(""), nil },
	"short":    func(llm.Request) (llm.Response, error) { return llmtest.Response("Oaks."), nil },
	"refuses": func(llm.Request) (llm.Response, error) {
		return llm.Response{Refusal: "No.", FinishReason: "stop"}, nil
	},
	"much":           func(llm.Request) (llm.Response, error) { return llmtest.Response(llmtest.Text(40_000)), nil },
	"more than asks": func(llm.Request) (llm.Response, error) { return llmtest.Response(llmtest.Text(2000)), nil },
	"cut off": func(llm.Request) (llm.Response, error) {
		return llm.Response{Text: written, FinishReason: "length"}, nil
	},
	"filtered": func(llm.Request) (llm.Response, error) {
		return llm.Response{Text: written, FinishReason: "content_filter"}, nil
	},
	"echo": func(req llm.Request) (llm.Response, error) {
		return llmtest.Response(string(req.Messages[len(req.Messages)-1])), nil
	},
}

func init() {
	for name, text := range llmtest.NoSummaries {
		moods[name] = func(llm.Request) (llm.Response, error) { return llmtest.Response(text), nil }
	}
	for name, text := range llmtest.AwkwardSummaries(written) {
		moods[name] = func(llm.Request) (llm.Response, error) { return llmtest.Response(text), nil }
	}
	moods["the summary before"] = func(req llm.Request) (llm.Response, error) { return llmtest.Response(priorIn(req)), nil }
}

// priorIn is the summary to be merged that a request shows, or a text of no meaning.
func priorIn(req llm.Request) string {
	for _, raw := range req.Messages {
		text := chat.Read(raw).Text()
		_, quoted, found := strings.Cut(text, "<coppice-prior-")
		if !found {
			continue
		}
		var lines []string
		for line := range strings.SplitSeq(quoted, "\n") {
			if line, quoted := strings.CutPrefix(line, "|"); quoted {
				lines = append(lines, strings.TrimPrefix(line, " "))
			}
		}
		return strings.Join(lines, "\n")
	}
	return "There was no summary before."
}

// The machine of TestPromises, with a model that fails in every way, and
// summaries that are made again.
type outageMachine struct {
	branchMachine
	model *moody
}

func (s *outageMachine) Mood(t *rapid.T) {
	names := make([]string, 0, len(moods))
	for name := range moods {
		names = append(names, name)
	}
	slices.Sort(names)
	s.model.mood = moods[rapid.SampledFrom(names).Draw(t, "mood")]
}

func (s *outageMachine) Well(*rapid.T) { s.model.mood = nil }

// landed adds the summaries to the reference that the store has and it lacks,
// which are those of a remake, by itself or on request.
func (s *outageMachine) landed(t *rapid.T, r *reference) (n int) {
	all, err := s.store.Summaries(s.ctx, r.id)
	s.must(t, err)
	for _, summary := range slices.Backward(all) {
		if r.find(summary.ID) == nil {
			_, text, err := s.service.Summary(s.ctx, r.id, summary.ID)
			s.must(t, err)
			r.nodes = append(r.nodes, refNode{id: summary.ID, parent: summary.AnchorID, cutoff: summary.Range.LastSummarizedID, saw: marksIn([]byte(text))})
			n++
		}
	}
	return n
}

func (s *outageMachine) Resummarize(t *rapid.T) {
	r := s.ref(t)
	head := s.tip(t, r).id
	before := r.applicable(head)
	waits := s.waits(t, r.id, head)
	p, err := s.service.replaceDigest(s.ctx, r.id, head, compactionRequest{trigger: TriggerAppend})
	s.must(t, err)
	n := s.landed(t, r)
	after := r.applicable(head)
	if !waits && n > 0 {
		t.Fatalf("%d summaries land for one that doesn't wait", n)
	}
	if n > 0 && p.Failed == nil && (after.parent != before.parent || after.cutoff != before.cutoff) {
		t.Fatalf("the summary at %s up to %s was to be made again, and now one at %s up to %s applies", before.parent, before.cutoff, after.parent, after.cutoff)
	}
	if s.model.mood != nil || !waits {
		return
	}
	if s.waits(t, r.id, head) {
		all, err := s.store.Compactions(s.ctx, r.id, tree.Paging{Limit: 1})
		if err != nil || all.Data[0].Outcome != tree.OutcomeNoGain {
			t.Fatalf("a model that is well leaves a summary of the digest: %+v, %v", all.Data[0], err)
		}
	}
}

// waits tells whether the summary that applies to a branch is to be made again, and
// may be now.
func (s *outageMachine) waits(t *rapid.T, id, head uuid.UUID) bool {
	v, err := s.store.View(s.ctx, id, head, wholeBranch, tree.Skeleton())
	s.must(t, err)
	settings, err := s.service.windowOf(v, Window{})
	s.must(t, err)
	waits, err := s.service.waiting(s.ctx, v, settings)
	s.must(t, err)
	if waits {
		waits, err = s.service.mayRetry(s.ctx, v, settings)
		s.must(t, err)
	}
	return waits
}

func (s *outageMachine) Remake(t *rapid.T) {
	r := s.ref(t)
	var summaries []uuid.UUID
	for _, n := range r.nodes {
		if n.cutoff != uuid.Nil {
			summaries = append(summaries, n.id)
		}
	}
	if len(summaries) == 0 {
		t.Skip("no summary yet")
	}
	id := rapid.SampledFrom(summaries).Draw(t, "summary")
	k, err := s.service.Remake(s.ctx, r.id, id, RemakeDemand{})
	if !errors.Is(err, fault.Conflict) {
		s.must(t, err)
	}
	if n := s.landed(t, r); (n > 0) != (k.Outcome == tree.OutcomeSaved) {
		t.Fatalf("%d summaries of a remake that came to %s", n, k.Outcome)
	}
}

// Fits holds that no digest took the place of messages of a branch that fitted.
func (s *outageMachine) Fits(t *rapid.T) {
	for _, r := range s.refs {
		page, err := s.store.Compactions(s.ctx, r.id, tree.Paging{Limit: 20})
		s.must(t, err)
		for _, k := range page.Data {
			if k.Outcome == tree.OutcomeSaved && k.Model == digest.Name && k.RemadeID != uuid.Nil {
				t.Fatalf("a digest took the place of a summary: %+v", k)
			}
			if k.Outcome == tree.OutcomeSaved && k.Model == digest.Name && k.TokensBefore <= s.service.settings.Budget().Available {
				t.Fatalf("a digest took the place of %d of %d tokens, and all of them fit: %+v", k.FoldedTokens, k.TokensBefore, k)
			}
		}
	}
	s.Check(t)
}

func TestPromisesThroughOutages(t *testing.T) {
	t.Parallel()
	pool := database()
	rapid.Check(t, func(rt *rapid.T) {
		store := tree.New(pool)
		model := &moody{}
		service := resummarizing(t, store, 100_000, model)
		service.settings.MaxContextTokens = rapid.SampledFrom([]int{600, 1200, 3000}).Draw(rt, "max_context_tokens")
		service.settings.LookAhead = rapid.SampledFrom([]LookAhead{LookAheadRecent, LookAheadNone}).Draw(rt, "look_ahead")
		service.settings.KeepFirstUser = rapid.SampledFrom([]KeepFirst{KeepFirstAuto, KeepFirstAlways, KeepFirstNever}).Draw(rt, "keep_first_user")
		s := &outageMachine{branchMachine{ctx: t.Context(), store: store, service: service}, model}
		c, _, err := store.CreateConversation(s.ctx, tree.NewConversation{})
		s.must(rt, err)
		s.refs = []*reference{{id: c.ID}}
		rt.Repeat(map[string]func(*rapid.T){
			"grow": s.Grow, "grow more": s.Grow, "grow on": s.Grow, "sibling": s.Sibling, "compact": s.Compact, "compact again": s.Compact,
			"prune": s.Prune, "fork": s.Fork, "mood": s.Mood, "well": s.Well, "heal": s.Resummarize, "remake": s.Remake, "": s.Fits,
		})
	})
}

package summarize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

// A Replayed compaction has the input and the output of its summarizer, rebuilt
// from the database. Messages don't change, and everything else that went into
// the prompt is in the record. This version of the program rebuilds the prompt,
// so the words may differ from the prompt of an earlier version.
type Replayed struct {
	Input      prompt.Input   // the messages to summarize
	Transcript string         // the messages of Input as the prompt shows them: what is folded, and after a blank line the look-ahead
	Steps      []ReplayedStep // calls of a model, several where its window was too small for one
	Summary    string         // text that was saved; "" where none was, or it was deleted
	LeakedTags []string       // of the prompt or of contexts, in Summary: none, if all is well
	Missing    []string       // the parts that are gone, one sentence each; empty if the replay is whole
}

// A ReplayedStep is one call of a model.
type ReplayedStep struct {
	Messages []json.RawMessage // chat-completions messages as they were sent
	System   string            // text of the first
	User     []string          // texts of the others
	Tokens   int               // of all, estimated
}

// notStored stands for the summaries between the steps of one compaction.
const notStored = "[What the model gave for the step before this one, which isn't stored.]"

// Replay rebuilds the input and the output of a compaction's summarizer. window
// is the model's window in tokens; 0 stands for a window that takes any prompt
// at once. If a part was deleted since, it is missing, and the result says so.
//
// A compaction without a plan (OutcomeNothingToDo) called no model, and its
// replay is empty. The cost grows with the messages between the cutoff before
// and the anchor.
func (s *Service) Replay(ctx context.Context, k tree.Compaction, window int) (r Replayed, err error) {
	defer fault.Wrap(&err, "summarize.Replay(%s, %s)", k.ConversationID, k.ID)
	if k.CutoffID == uuid.Nil {
		return r, nil
	}
	var settings Settings
	if err := json.Unmarshal(k.Settings, &settings); err != nil {
		return r, fmt.Errorf("its settings: %w", err)
	}
	r.Input = prompt.Input{Nonce: prompt.Nonce(k.ID), Instructions: instructions(settings, k.Instructions)}
	for _, read := range []func(context.Context, tree.Compaction, *Replayed) error{s.replayPath, s.replayPrior, s.replaySummary} {
		if err := read(ctx, k, &r); err != nil {
			return r, err
		}
	}
	if len(r.Input.Fold) == 0 {
		return r, nil
	}
	v, err := s.store.View(ctx, k.ConversationID, r.Input.Fold[0].ID, 0, tree.Skeleton())
	if err != nil {
		return r, err
	}
	r.Input.TargetTokens = settings.beside(tree.Tokens(v.Prefix)).Target
	r.Transcript = prompt.Transcript(r.Input.Fold, r.Input.Nonce)
	if len(r.Input.LookAhead) > 0 {
		r.Transcript += "\n" + prompt.Transcript(r.Input.LookAhead, r.Input.Nonce)
	}
	s.replaySteps(&r, window)
	return r, nil
}

func (r *Replayed) miss(format string, args ...any) {
	r.Missing = append(r.Missing, fmt.Sprintf(format, args...))
}

// replayPath reads the messages. Where the anchor is gone, those up to the
// cutoff may still be there.
func (s *Service) replayPath(ctx context.Context, k tree.Compaction, r *Replayed) error {
	path, cutoff, err := s.pathTo(ctx, k, k.AnchorID)
	if errors.Is(err, fault.NotFound) && k.AnchorID != k.CutoffID {
		r.miss("The anchor, message %s, was deleted, and with it the look-ahead.", k.AnchorID)
		path, cutoff, err = s.pathTo(ctx, k, k.CutoffID)
	}
	if errors.Is(err, fault.NotFound) {
		r.miss("The cutoff, message %s, was deleted, so the messages that were folded can't be told.", k.CutoffID)
		return nil
	}
	if err != nil {
		return err
	}
	r.Input.Fold, r.Input.LookAhead = path[max(0, cutoff+1-k.FoldedMessages):cutoff+1], path[cutoff+1:]
	return nil
}

// pathTo reads a branch from its head back until it has what k folded, and
// gives the cutoff's index.
func (s *Service) pathTo(ctx context.Context, k tree.Compaction, head uuid.UUID) (path []tree.Message, cutoff int, err error) {
	for p := (tree.Paging{Limit: 200}); ; {
		page, err := s.store.Transcript(ctx, k.ConversationID, head, p)
		if err != nil {
			return nil, 0, err
		}
		path = append(page.Data, path...)
		cutoff = slices.IndexFunc(path, func(m tree.Message) bool { return m.ID == k.CutoffID })
		if cutoff+1 >= k.FoldedMessages && cutoff >= 0 {
			return path, cutoff, nil
		}
		if p.Cursor = page.Next; p.Cursor == "" {
			return nil, 0, fmt.Errorf("the branch of %s has no %d messages up to %s", head, k.FoldedMessages, k.CutoffID)
		}
	}
}

func (s *Service) replayPrior(ctx context.Context, k tree.Compaction, r *Replayed) error {
	if k.PriorSummaryID == uuid.Nil {
		return nil
	}
	prior, err := s.store.Summary(ctx, k.ConversationID, k.PriorSummaryID)
	if errors.Is(err, fault.NotFound) {
		r.miss("The summary that was to be merged, %s, was deleted, so the prompt is without it.", k.PriorSummaryID)
		return nil
	}
	r.Input.Prior = prompt.Unwrap(prior.Body)
	r.Input.PriorTokens = s.count.Count(r.Input.Prior)
	return err
}

func (s *Service) replaySummary(ctx context.Context, k tree.Compaction, r *Replayed) error {
	if k.SummaryID == uuid.Nil {
		r.miss("No summary was saved (%s), and what models gave in vain isn't stored.", k.Outcome)
		return nil
	}
	summary, err := s.store.Summary(ctx, k.ConversationID, k.SummaryID)
	if errors.Is(err, fault.NotFound) {
		r.miss("The summary that was saved, %s, was deleted.", k.SummaryID)
		return nil
	}
	r.Summary = prompt.Unwrap(summary.Body)
	r.LeakedTags = prompt.Leaks(r.Summary, r.Input.Nonce)
	return err
}

// replaySteps builds the prompts as Cascade.ask does, one after the other: a
// compaction has one step, but before there were several in one.
func (s *Service) replaySteps(r *Replayed, window int) {
	budget := math.MaxInt32
	if window > 0 {
		budget = promptBudget(window, r.Input.TargetTokens)
	}
	in := r.Input
	for {
		step, rest, err := prompt.Next(in, budget, s.count)
		if err != nil {
			r.miss("In a window of %d tokens there is no prompt: %v.", window, err)
			return
		}
		texts := step.Texts()
		r.Steps = append(r.Steps, ReplayedStep{Messages: step.Messages(), System: texts[0], User: texts[1:], Tokens: step.Tokens})
		if len(rest) == 0 {
			return
		}
		if len(r.Steps) == 1 {
			r.miss("A window of %d tokens took several steps. What the model gave for one isn't stored, so that the next is shown without it.", window)
		}
		in.Fold, in.Prior = rest, notStored
		in.PriorTokens = s.count.Count(notStored)
	}
}

// A Rewritten compaction has the output of another summarizer for the same
// input.
type Rewritten struct {
	Text       string // "" where it gave no summary
	Tokens     int    // of Text
	Attempts   []prompt.Attempt
	LeakedTags []string // in Text: none, if all is well
}

// Rewrite has another Summarizer do the work of a replayed compaction. Nothing
// is stored. It takes as long as the Summarizer does.
//
// If the Summarizer gives no summary, that is no error: the attempts say why.
func (s *Service) Rewrite(ctx context.Context, r Replayed, with Summarizer) (w Rewritten, err error) {
	defer fault.Wrap(&err, "summarize.Rewrite")
	if len(r.Input.Fold) == 0 {
		return w, errors.New("the messages that were folded are missing")
	}
	for in := r.Input; len(in.Fold) > 0; {
		step := summarizeWith(ctx, with, in)
		w.Text, w.Attempts = step.Text, append(w.Attempts, step.Attempts...)
		if ctx.Err() != nil {
			return w, ctx.Err()
		}
		if step.Text == "" {
			break
		}
		in.Fold, in.Prior, in.PriorTokens = in.Fold[step.Taken:], step.Text, s.count.Count(step.Text)
	}
	w.Tokens, w.LeakedTags = s.count.Count(w.Text), prompt.Leaks(w.Text, r.Input.Nonce)
	return w, nil
}

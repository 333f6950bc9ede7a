// Package replay rebuilds from the database what the summarizer of a compaction was
// given, and gave. Messages don't change, and everything else that went into the
// prompt is in the compaction's record and in the summaries, but for the text of attached
// files. The prompt is that of this version.
package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tokens"
	"github.com/coppice-chat/coppice/tree"
)

// A Replay is one compaction.
type Replay struct {
	Compaction tree.Compaction
	Input      prompt.Input
	Messages   []json.RawMessage // of the request to the model
	Summary    string            // text that was saved; "" for none
	LeakedTags []string          // of the prompt, in Summary: none, if all is well
	Missing    []string          // parts that were deleted, one sentence each
}

// Of rebuilds a compaction. The messages are missing if the cutoff was deleted, or
// if the compaction had nothing to do.
func Of(ctx context.Context, store *tree.Store, k tree.Compaction) (r Replay, err error) {
	r.Compaction = k
	if k.CutoffID == uuid.Nil {
		return r, nil
	}
	var settings summarize.Settings
	if err := json.Unmarshal(k.Settings, &settings); err != nil {
		return r, fmt.Errorf("the settings of the compaction %s: %w", k.ID, err)
	}
	path, cutoff, err := pathTo(ctx, store, k, k.AnchorID)
	if errors.Is(err, fault.NotFound) {
		r.Missing = append(r.Missing, "The anchor was deleted, and with it the messages between the cutoff and the anchor.")
		path, cutoff, err = pathTo(ctx, store, k, k.CutoffID)
	}
	switch {
	case errors.Is(err, fault.NotFound):
		r.Missing = append(r.Missing, "The cutoff was deleted, and with it the messages.")
		return r, nil
	case err != nil:
		return r, err
	}
	asked := strings.Trim(settings.Instructions+"\n\n"+k.Instructions, "\n")
	r.Input = prompt.Input{Nonce: prompt.Nonce(k.ID), Instructions: asked, Fold: path[max(0, cutoff+1-k.FoldedMessages) : cutoff+1], LookAhead: path[cutoff+1:], Stays: prompt.Stays{}}
	counter := tokens.O200k()
	read := func(id uuid.UUID, what string) (s tree.Summary, text string, err error) {
		if id == uuid.Nil {
			return s, "", nil
		}
		s, err = store.Summaries().One(ctx, k.ConversationID, id)
		if errors.Is(err, fault.NotFound) {
			r.Missing = append(r.Missing, "The summary that was "+what+" was deleted.")
			return s, "", nil
		}
		return s, prompt.Unwrap(s.Body), err
	}
	var prior, saved tree.Summary
	if prior, r.Input.Prior, err = read(k.PriorSummaryID, "to be merged"); err != nil {
		return r, err
	}
	r.Input.Prior, r.Input.Paths = prompt.CutPaths(r.Input.Prior)
	r.Input.PriorTokens = counter.Count(r.Input.Prior)
	if saved, r.Summary, err = read(k.SummaryID, "saved"); err != nil {
		return r, err
	}
	for _, id := range saved.Range.KeptIDs {
		r.Input.Stays[id] = true
	}
	kept, err := store.Messages(ctx, k.ConversationID, prior.Range.KeptIDs)
	if err != nil {
		return r, err
	}
	for _, m := range kept {
		if r.Input.Stays[m.ID] {
			r.Input.Kept = append(r.Input.Kept, m)
		} else {
			r.Input.Leaving = append(r.Input.Leaving, m)
		}
	}
	r.LeakedTags = prompt.Leaks(r.Summary, r.Input.Nonce)
	v, err := store.View(ctx, k.ConversationID, r.Input.Fold[0].ID, 0, tree.Skeleton())
	if err != nil {
		return r, err
	}
	// A long prefix leaves less room for a summary.
	settings.MaxContextTokens -= min(tree.Tokens(v.Prefix), settings.Budget().Available-1)
	merged := prior.Tokens
	if r.Input.Prior != "" && r.Input.Fold[0].Role == tree.RoleUser { // with the assistant's word between, a message of 3 tokens without its text
		merged += 3 + counter.Count(chat.Read(chat.Acknowledgment()).Text())
	}
	replaced := k.FoldedTokens + merged
	for _, m := range kept {
		merged -= m.Tokens
	}
	r.Input.TargetTokens = settings.Budget().TargetFor(replaced-max(0, merged), max(0, merged))
	step, _, err := prompt.Next(r.Input, math.MaxInt32, counter)
	r.Messages = step.Messages()
	return r, err
}

// pathTo reads a branch from its head back until it has what k folded, and returns
// the cutoff's index.
func pathTo(ctx context.Context, store *tree.Store, k tree.Compaction, head uuid.UUID) (path []tree.Message, cutoff int, err error) {
	for p := (tree.Paging{Limit: 200}); ; {
		page, err := store.Transcript(ctx, k.ConversationID, head, p)
		if err != nil {
			return nil, 0, err
		}
		path = append(page.Data, path...)
		cutoff = slices.IndexFunc(path, func(m tree.Message) bool { return m.ID == k.CutoffID })
		if cutoff >= 0 && cutoff+1 >= k.FoldedMessages {
			return path, cutoff, nil
		}
		if p.Cursor = page.Next; p.Cursor == "" {
			return nil, 0, fmt.Errorf("the branch of %s has no %d messages up to %s", head, k.FoldedMessages, k.CutoffID)
		}
	}
}

// Again has another summarizer do the work. Nothing is stored.
func (r Replay) Again(ctx context.Context, with summarize.Summarizer) (string, error) {
	in := r.Input
	for len(in.Fold) > 0 {
		step, err := with.Summarize(ctx, in)
		if err != nil {
			return "", err
		}
		in.Fold, in.Prior, in.PriorTokens = in.Fold[step.Taken:], step.Text, tokens.O200k().Count(step.Text)
	}
	return in.Prior, nil
}

// Write writes files into a folder: prompt.json, output.txt, metadata.json with the
// record, and again.txt with a text by another summarizer, unless that is empty.
func (r Replay) Write(folder, again string) error {
	metadata, err := json.MarshalIndent(map[string]any{
		"compaction": json.RawMessage(r.Compaction.AppendJSON(nil)), "missing": r.Missing, "leaked_tags": r.LeakedTags,
		"folded_messages": len(r.Input.Fold), "target_tokens": r.Input.TargetTokens,
	}, "", "  ")
	if err := errors.Join(err, os.MkdirAll(folder, 0o755)); err != nil {
		return err
	}
	messages := make([]string, len(r.Messages)) // byte for byte
	for i, m := range r.Messages {
		messages[i] = string(m)
	}
	for name, text := range map[string]string{
		"prompt.json": "[\n" + strings.Join(messages, ",\n") + "\n]", "output.txt": r.Summary, "metadata.json": string(metadata), "again.txt": again,
	} {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

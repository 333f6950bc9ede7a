package main

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

type explainCommand struct {
	dataFlags
	outputFlags
	summaryFlags
	branchArgs
}

func (cmd *explainCommand) Help() string {
	return `Which summary applies to a branch, why the others don't, how far it is from its trigger, and what a compaction would do now. The settings are the conversation's over those given here, and those over the ones of the server that started last. The models should be the server's: without them no summary waits for one.`
}

func (cmd *explainCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return cmd.withServer(ctx, out, logs, alone{config: cmd.summaries, settings: cmd.settings}, func(c *client) error {
		conversation, head, err := cmd.find(ctx, c)
		if err != nil {
			return err
		}
		var e summarize.Explanation
		if err := c.get(ctx, branchPath(conversation.ID, head, "explain"), nil, &e); err != nil {
			return err
		}
		if cmd.JSON {
			return printJSON(out, e)
		}
		writeExplanation(out, conversation, e)
		return nil
	})
}

func writeExplanation(out *terminal.Console, c tree.Conversation, e summarize.Explanation) {
	writeBranch(out, c, e.HeadID, "%s", tokensOf(e.Usage))
	if e.TokensToTrigger >= 0 {
		out.Line("%s to the trigger of %s", terminal.Count(e.TokensToTrigger, "token"), terminal.Thousands(e.Usage.TriggerTokens))
	} else {
		out.Line("%s over the trigger of %s", terminal.Count(-e.TokensToTrigger, "token"), terminal.Thousands(e.Usage.TriggerTokens))
	}
	out.Line("")
	short := shortIDs(e)
	for _, s := range e.Summaries {
		mark := "○ "
		if s.Applies {
			mark = "● "
		}
		out.Line("%s", mark+out.Bold("summary "+short(s.ID))+" at "+short(s.ParentID)+" folds up to "+short(s.LastSummarizedID)+
			", "+terminal.Writer(s.Model, s.Origin)+", "+terminal.Count(s.Tokens, "token"))
		out.Line("  %s", s.Reason)
		if a := s.Audit; a != nil {
			out.Line("  %s", writeAudit(a, s.PriorSummaryID != nil))
		}
		if s.Waits {
			out.Line("  It waits to be made again from the messages: the offline digest had a part in it.")
		}
	}
	if n := len(e.DroppedPinIDs); n > 0 {
		out.Line("The summary folds %s that it doesn't keep, as their share of the window was full.", terminal.Count(n, "pinned message"))
	}
	if len(e.Summaries) == 0 {
		out.Line("There is no summary.")
	}
	for _, g := range e.Grafts {
		out.Line("message %s comes %s", short(g.MessageID), terminal.Grafted(g.Grafted))
	}
	out.Line("")
	if e.Warning != "" {
		out.Line("%s", e.Warning)
	}
	switch {
	case e.Automatic:
		out.Line("The settings ask for a compaction now.")
	default:
		out.Line("The settings ask for none: %s", e.Reason)
	}
	if p := e.Plan; p != nil {
		out.Line("One asked for now would fold %s (%s) up to %s and look ahead at %s.",
			terminal.Count(p.FoldMessages, "message"), terminal.Count(p.FoldTokens, "token"), short(p.CutoffID), terminal.Count(p.LookAheadMessages, "message"))
		out.Line("After it %s would stay verbatim, and %s of the folded ones.", terminal.Count(p.TailMessages, "message"), terminal.Thousands(len(p.KeptIDs)))
		if len(p.CutIDs) > 0 {
			out.Line("Of those, %s would be cut in the middle.", terminal.Thousands(len(p.CutIDs)))
		}
		if n := len(p.DroppedPinIDs); n > 0 {
			out.Line("No room is left for %s.", terminal.Count(n, "older pinned message"))
		}
	} else {
		out.Line("One asked for now would do nothing.")
	}
}

// writeAudit tells what an audit found of a summary, which was merged with one before or
// is the first.
func writeAudit(a *prompt.Audit, merged bool) string {
	text := fmt.Sprintf("The model's text holds %.0f %% of what the messages say anew", 100*a.Fold)
	if merged {
		text += fmt.Sprintf(" and %.0f %% of the summary before", 100*a.Prior)
	}
	text += fmt.Sprintf("; %.0f %% of its names and numbers stand nowhere in them", 100*a.Foreign)
	if a.Filled > 0 {
		text += fmt.Sprintf("; %s of sentences were added for what it lacked", terminal.Count(a.Filled, "token"))
	}
	return text + "."
}

// shortIDs gives a function that shortens the ids of an explanation as far as
// they can be told apart.
func shortIDs(e summarize.Explanation) func(uuid.UUID) string {
	ids := []uuid.UUID{e.HeadID}
	for _, s := range e.Summaries {
		ids = append(ids, s.ID, s.ParentID, s.LastSummarizedID)
	}
	if e.Plan != nil {
		ids = append(append(ids, e.Plan.CutoffID, e.Plan.AnchorID), e.Plan.KeptIDs...)
	}
	for _, g := range e.Grafts {
		ids = append(ids, g.MessageID)
	}
	length := terminal.IDLength(ids)
	return func(id uuid.UUID) string { return id.String()[:length] }
}

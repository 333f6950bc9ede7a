package main

import (
	"context"
	"fmt"

	"github.com/coppice-chat/coppice/tree"
)

type compactionsCommand struct {
	dataFlags
	outputFlags
	pageFlags
	Conversation string `arg:"" help:"Its id, the start of its id, or its title."`
}

func (cmd *compactionsCommand) Run(ctx context.Context, out *console, logs *logFlags) error {
	return withDatabase(ctx, &cmd.databaseFlags, out, logs, func(d *database) error {
		store := d.store(cmd.Tenant)
		c, err := findConversation(ctx, store, cmd.Conversation)
		if err != nil {
			return err
		}
		page, err := readPages(cmd.pageFlags, func(p tree.Paging) (tree.Page[tree.Compaction], error) {
			return store.Compactions(ctx, c.ID, p)
		})
		if err != nil {
			return err
		}
		if cmd.JSON {
			return writePage(out, page)
		}
		if len(page.Data) == 0 {
			out.Remark("No compaction ran in this conversation.")
			return nil
		}
		writeCompactions(out, page.Data)
		remarkMore(out, page.Next)
		return nil
	})
}

func writeCompactions(out *console, list []tree.Compaction) {
	const outcomeWidth, triggerWidth = len(tree.OutcomeNothingToDo), len("request")
	const format = "%s  %s  %s  %8s  %10s  %s"
	out.Line("%s", out.dim(fmt.Sprintf(format, pad("WHEN", len(shortTime)), pad("OUTCOME", outcomeWidth), pad("ASKED BY", triggerWidth+1), "MESSAGES", "TOKENS", "WHAT")))
	for _, k := range list {
		folded, saved, what := "", "", k.Reason
		if k.Outcome == tree.OutcomeSaved {
			folded, saved, what = thousands(int64(-k.FoldedMessages)), thousands(int64(k.TokensAfter-k.TokensBefore)), "by "+k.Model
			if k.Instructions != "" {
				what += ": " + k.Instructions
			}
		}
		left := fmt.Sprintf(format, clock(k.CreatedAt), pad(string(k.Outcome), outcomeWidth), pad(k.Trigger, triggerWidth+1), folded, saved, "")
		out.Line("%s%s", left, oneLine(what, max(minText, out.width-len(left))))
	}
}

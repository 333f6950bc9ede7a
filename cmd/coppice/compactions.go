package main

import (
	"context"

	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/tree"
)

type compactionsCommand struct {
	dataFlags
	outputFlags
	pageFlags
	Conversation string `arg:"" help:"Its id, the start of its id, its title, or a part of its title."`
}

func (cmd *compactionsCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	return cmd.withServer(ctx, out, logs, alone{}, func(c *client) error {
		conversation, err := findConversation(ctx, c, cmd.Conversation)
		if err != nil {
			return err
		}
		return writePages(ctx, out, c, cmd.outputFlags, cmd.pageFlags, conversationPath(conversation.ID, "compactions"), nil, "No compaction ran in this conversation.",
			func(page page[tree.Compaction]) { writeCompactions(out, page.Data) })
	})
}

func writeCompactions(out *terminal.Console, list []tree.Compaction) {
	columns := []terminal.Column{
		{Name: "WHEN"}, {Name: "OUTCOME", Width: len(tree.OutcomeNothingToDo)}, {Name: "ASKED BY"},
		{Name: "MESSAGES", Right: true}, {Name: "TOKENS", Width: 10, Right: true}, {Name: "WHAT", Cut: true},
	}
	rows := make([][]string, len(list))
	for i, k := range list {
		folded, saved, what := "", "", k.Reason
		if k.Outcome == tree.OutcomeSaved {
			folded, saved, what = terminal.Thousands(-k.FoldedMessages), terminal.Thousands(k.TokensAfter-k.TokensBefore), "by "+k.Model
			if k.Instructions != "" {
				what += ": " + k.Instructions
			}
		}
		rows[i] = []string{clock(k.CreatedAt), string(k.Outcome), k.Trigger, folded, saved, what}
	}
	out.Table(columns, rows)
}

package main

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

type showCommand struct {
	dataFlags
	outputFlags
	watchFlags
	Limit        int    `default:"0" placeholder:"N" help:"Only the last N messages; 0 for all."`
	Reasoning    bool   `help:"Also what a model thought before its answers. --json has it in any case."`
	Conversation string `arg:"" help:"Its id, the start of its id, its title, or a part of its title."`
	Head         string `arg:"" optional:"" default:"active" help:"Message that the branch ends in: its id, the start of its id, or active."`
}

func (cmd *showCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	if err := cmd.watchFlags.check(cmd.outputFlags); err != nil {
		return err
	}
	return withData(ctx, &cmd.databaseFlags, out, logs, func(d *app.Database) error {
		store := d.Store(cmd.Tenant)
		c, err := findConversation(ctx, store, cmd.Conversation)
		if err != nil {
			return err
		}
		head, err := findHead(ctx, store, c.ID, cmd.Head)
		if err != nil {
			return err
		}
		if cmd.Limit < 0 {
			return usagef("--limit is negative: give 0 for all, or a number")
		}
		last, err := store.Message(ctx, c.ID, head)
		if err != nil {
			return err
		}
		branch := store.Branch(ctx, c.ID, head, cmd.Limit)
		switch {
		case cmd.Watch:
			f := followed{cmd: cmd, out: out, store: store, conversation: c, head: last}
			return follow(ctx, d, out, cmd.Tenant, c.ID, func() error { return f.show(ctx) })
		case !cmd.JSON:
			return writeTranscript(out, c, last, branch, cmd.Reasoning)
		case cmd.Limit == 0:
			return writeTranscriptJSON(out, branch)
		}
		page, err := lastMessages(ctx, store, c.ID, head, cmd.Limit)
		if err != nil {
			return err
		}
		return writePage(out, page)
	})
}

// lastMessages gives the end of a branch as one page, with the cursor that
// leads on.
func lastMessages(ctx context.Context, store *tree.Store, conversationID, headID uuid.UUID, limit int) (all tree.Page[tree.Message], err error) {
	for {
		page, err := store.Transcript(ctx, conversationID, headID, tree.Paging{Limit: min(limit-len(all.Data), tree.MaxPage), Cursor: all.Next})
		if err != nil {
			return all, err
		}
		all.Data, all.Next = append(page.Data, all.Data...), page.Next
		if all.Next == "" || len(all.Data) == limit {
			return all, nil
		}
	}
}

func writeTranscriptJSON(out *terminal.Console, branch iter.Seq2[tree.Message, error]) error {
	list := jsonList{w: out}
	for m, err := range branch {
		if err != nil {
			return err
		}
		if err := list.add(m); err != nil {
			return err
		}
	}
	return list.end("")
}

func writeTranscript(out *terminal.Console, c tree.Conversation, head tree.Message, branch iter.Seq2[tree.Message, error], reasoning bool) error {
	out.Line("%s  %s", out.Bold(title(c)), out.Dim(c.ID.String()))
	active := ""
	if head.ID == c.HeadID {
		active = ", active"
	}
	out.Line("branch %s%s: %s, %s", head.ID, active, terminal.Count(head.Depth+1, "message"), terminal.Count(int(head.PathTokens), "token"))
	first := true
	for m, err := range branch {
		if err != nil {
			return err
		}
		if first && m.Depth > 0 {
			out.Line("")
			out.Line("%s", out.Dim("… "+terminal.Count(m.Depth, "message")+" above …"))
		}
		first = false
		if !reasoning {
			m.Reasoning = ""
		}
		writeMessage(out, m)
	}
	return nil
}

// writeMessage prints a message under a line that says whose it is.
func writeMessage(out *terminal.Console, m tree.Message) {
	said := chat.Read(m.Body)
	head := []string{string(m.Role)}
	if said.Name != nil && *said.Name != "" {
		head[0] += " " + terminal.OneLine(*said.Name, 100)
	}
	if m.Siblings.Count > 1 {
		head = append(head, fmt.Sprintf("‹%d/%d›", m.Siblings.Index, m.Siblings.Count))
	}
	if m.Pinned {
		head = append(head, "pinned")
	}
	if m.Graft != nil {
		head = append(head, terminal.Grafted(*m.Graft))
		if text, ok := prompt.UnwrapGraft(m.Body); ok {
			said = chat.Text(m.Role, text)
		}
	}
	if id := said.Answers(); id != "" {
		head = append(head, "answers "+terminal.OneLine(id, 100))
	}
	out.Line("")
	out.Line("%s  %s", out.Bold("── "+strings.Join(head, " ")), out.Dim(clock(m.CreatedAt)))
	for line := range strings.Lines(terminal.Printable(m.Reasoning)) {
		out.Line("%s", out.Dim("┆ "+strings.TrimRight(line, "\n")))
	}
	for _, part := range linesOf(said) {
		out.Line("%s", part)
	}
}

// linesOf is a message's text, a line for each part that is none, and one for
// each tool call.
func linesOf(m *chat.Message) []string {
	var out []string
	add := func(text string) {
		if text = strings.TrimRight(terminal.Printable(text), "\n"); text != "" {
			out = append(out, text)
		}
	}
	for _, p := range m.Parts {
		if p.IsText() || p.Type == "" {
			add(p.Text)
		} else {
			add("[" + p.Type + "]")
		}
	}
	if m.Refusal != nil {
		add(*m.Refusal)
	}
	for _, call := range m.Calls {
		add(fmt.Sprintf("→ %s(%s)  %s", call.Name, strings.TrimSpace(call.Arguments), call.ID))
	}
	return out
}

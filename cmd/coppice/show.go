package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/summarize/prompt"
	"github.com/coppice-chat/coppice/tree"
)

type showCommand struct {
	dataFlags
	outputFlags
	watchFlags
	branchArgs
	Limit     int  `default:"0" placeholder:"N" help:"Only the last N messages; 0 for all."`
	Reasoning bool `help:"Also what a model thought before its answers. --json has it in any case."`
}

func (cmd *showCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	if err := cmd.watchFlags.check(cmd.outputFlags); err != nil {
		return err
	}
	if cmd.Limit < 0 {
		return usagef("--limit is negative: give 0 for all, or a number")
	}
	return cmd.withServer(ctx, out, logs, alone{}, func(c *client) error {
		conversation, head, err := cmd.find(ctx, c)
		if err != nil {
			return err
		}
		if cmd.Watch {
			f := followed{cmd: cmd, out: out, client: c, conversation: conversation, head: head}
			return follow(ctx, c, out, conversationPath(conversation.ID, "events"), func() error { return f.show(ctx) })
		}
		if cmd.JSON {
			branch, next, err := readBranch[json.RawMessage](ctx, c, conversation.ID, head, cmd.Limit, nil)
			if err != nil {
				return err
			}
			return printList(out, "", branch, next)
		}
		return showBranch(ctx, out, c, conversation, head, cmd.Limit, cmd.Reasoning)
	})
}

// readBranch reads the last messages of a branch, oldest first; 0 is all of them. It reads
// no further up than a message for which known is true, which it leaves out with those
// above; of nil, none is. Where there are more, it gives the cursor that leads on.
func readBranch[T any](ctx context.Context, c *client, id, head uuid.UUID, limit int, known func(T) bool) (branch []T, next string, err error) {
	for {
		query := url.Values{"limit": {strconv.Itoa(tree.MaxPage)}}
		if limit > 0 {
			query.Set("limit", strconv.Itoa(min(tree.MaxPage, limit-len(branch))))
		}
		if next != "" {
			query.Set("cursor", next)
		}
		var page tree.Page[T]
		if err := c.get(ctx, branchPath(id, head, "transcript"), query, &page); err != nil {
			return nil, "", err
		}
		new := page.Data
		for i := len(new) - 1; i >= 0 && known != nil; i-- {
			if known(new[i]) {
				new = new[i+1:]
				break
			}
		}
		branch, next = append(slices.Clone(new), branch...), page.Next
		if next == "" || len(branch) == limit && limit > 0 || len(new) < len(page.Data) {
			return branch, next, nil
		}
	}
}

// showBranch prints the last messages of a branch, 0 for all of them.
func showBranch(ctx context.Context, out *terminal.Console, c *client, conversation tree.Conversation, head uuid.UUID, limit int, reasoning bool) error {
	branch, _, err := readBranch[tree.Message](ctx, c, conversation.ID, head, limit, nil)
	if err == nil {
		writeTranscript(out, conversation, branch, reasoning)
	}
	return err
}

// writeTranscript prints the end of a branch, one message at least.
func writeTranscript(out *terminal.Console, c tree.Conversation, branch []tree.Message, reasoning bool) {
	head, tokens := branch[len(branch)-1], 0
	for _, m := range branch {
		tokens += m.Tokens
	}
	counts, above := terminal.Count(head.Depth+1, "message"), branch[0].Depth
	if above == 0 {
		counts += ", " + terminal.Count(tokens, "token")
	}
	writeBranch(out, c, head.ID, "%s", counts)
	if above > 0 {
		out.Line("")
		out.Line("%s", out.Dim("… "+terminal.Count(above, "message")+" above …"))
	}
	for _, m := range branch {
		writeMessage(out, m, reasoning)
	}
}

// writeMessage prints a message under a line that says whose it is.
func writeMessage(out *terminal.Console, m tree.Message, reasoning bool) {
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
	if !reasoning {
		m.Reasoning = ""
	}
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

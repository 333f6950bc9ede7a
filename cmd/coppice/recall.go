package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/tree"
)

type recallCommand struct {
	dataFlags
	outputFlags
	providerFlags  `group:"Models"`
	embeddingFlags `group:"Models"`
	Limit          int      `default:"10" placeholder:"N" help:"Messages that answer, at most (${default})."`
	MaxTokens      int      `default:"4000" placeholder:"N" help:"Tokens of all messages that are shown, those around the answers included (${default})."`
	Scope          string   `placeholder:"SCOPE" help:"Where to look: folded, branch, conversation or tenant. Without it, branch."`
	Head           string   `default:"active" placeholder:"MESSAGE" help:"Message that the branch ends in: its id, the start of its id, or active."`
	Words          []string `arg:"" name:"[conversation] question" help:"The conversation, by its id, the start of its id, its title, or a part of its title, and the question after it. Of one argument alone, all of the tenant's conversations are asked."`
}

func (cmd *recallCommand) Help() string {
	return `Finds the messages of a branch that answer a question in plain words, best first, also those that a summary folded. Put the question in quotes: with one argument, the question is asked of all conversations.`
}

func (cmd *recallCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags) error {
	scope := cmd.Scope
	switch {
	case len(cmd.Words) > 2:
		return usagef("there are %d arguments: give the conversation and the question, each in quotes where it has several words", len(cmd.Words))
	case cmd.Limit == 0:
		return usagef("--limit must be 1 or more")
	case cmd.MaxTokens == 0:
		return usagef("--max-tokens must be 1 or more")
	case len(cmd.Words) == 1 && (cmd.Head != "active" || scope != "" && scope != string(search.ScopeTenant)):
		return usagef("--head and --scope need a conversation before the question")
	case scope == "":
		scope = string(search.ScopeBranch)
	}
	query := url.Values{"query": cmd.Words[len(cmd.Words)-1:], "limit": {strconv.Itoa(cmd.Limit)}, "max_tokens": {strconv.Itoa(cmd.MaxTokens)}}
	if len(cmd.Words) == 2 {
		query.Set("scope", scope)
	}
	return cmd.withServer(ctx, out, logs, alone{config: cmd.config}, func(c *client) error {
		raw, answer, err := cmd.ask(ctx, c, query)
		if err != nil {
			return flagUsage(err, map[string]string{"limit": "--limit", "max_tokens": "--max-tokens", "scope": "--scope", "query": "the question"})
		}
		if cmd.JSON {
			return writeJSON(out, raw)
		}
		return writeRecalled(ctx, out, c, answer)
	})
}

// config is what the flags say of the model of vectors.
func (cmd *recallCommand) config(config *app.Config, _ *slog.Logger) error {
	config.Models = app.Models{BaseURL: cmd.OpenAIBaseURL, APIKey: cmd.OpenAIAPIKey, Embedding: cmd.embedding()}
	return cmd.check()
}

// ask asks until all is searched, as a question reads a part of a large conversation.
func (cmd *recallCommand) ask(ctx context.Context, c *client, query url.Values) (raw json.RawMessage, answer search.Answer, err error) {
	path := "/v1/recall"
	if len(cmd.Words) > 1 {
		conversation, err := findConversation(ctx, c, cmd.Words[0])
		if err != nil {
			return nil, answer, err
		}
		head, err := findHead(ctx, c, conversation, cmd.Head)
		if err != nil {
			return nil, answer, err
		}
		path = branchPath(conversation.ID, head, "recall")
	}
	if err := c.indexed(ctx); err != nil {
		return nil, answer, err
	}
	for searched := -1; ; {
		answer = search.Answer{}
		if err := c.get(ctx, path, query, &raw); err != nil {
			return nil, answer, err
		}
		if err := json.Unmarshal(raw, &answer); err != nil || !answer.Incomplete || answer.Searched <= searched {
			return raw, answer, err
		}
		searched = answer.Searched
	}
}

// writeRecalled prints each hit under a line that says where it stands, with the
// messages around it as single lines.
func writeRecalled(ctx context.Context, out *terminal.Console, cl *client, a search.Answer) error {
	if a.Incomplete {
		out.Remark("Older messages were not searched.")
	}
	if len(a.Hits) == 0 {
		out.Remark("Nothing found in %s.", terminal.Count(a.Searched, "message"))
		return nil
	}
	titles := map[uuid.UUID]string{}
	for i, h := range a.Hits {
		if i > 0 {
			out.Line("")
		}
		id := h.Message.ConversationID
		if _, known := titles[id]; !known {
			var c tree.Conversation
			if err := cl.get(ctx, conversationPath(id), nil, &c); err != nil {
				return err
			}
			titles[id] = title(c)
		}
		place := terminal.Count(h.Message.Depth, "message") + " above"
		switch {
		case h.Folded:
			place += ", folded"
		case !h.OnBranch:
			place += ", on another branch"
		}
		head := string(h.Message.Role) + ", " + clock(h.Message.CreatedAt) + ", " + place
		out.Line("%s  %s", out.Bold(terminal.OneLine(titles[id], max(20, out.Width-len(head)-2))), out.Dim(head))
		around := func(messages []tree.Message) {
			for _, m := range messages {
				out.Line("%s", out.Dim("  "+terminal.OneLine(string(m.Role)+": "+strings.Join(linesOf(chat.Read(m.Body)), " "), out.Width-2)))
			}
		}
		around(h.Before)
		out.Line("  %s", terminal.OneLine(h.Excerpt, out.Width-2))
		around(h.After)
		out.Line("%s", out.Dim("  coppice show "+id.String()+" "+h.Message.ID.String()))
	}
	if a.Omitted > 0 {
		out.Remark("%s left out, for which --max-tokens has no room.", terminal.Count(a.Omitted, "message"))
	}
	return nil
}

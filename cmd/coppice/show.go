package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/coppice-chat/coppice/tree"
)

type showCommand struct {
	dataFlags
	outputFlags
	Limit        int    `default:"0" placeholder:"N" help:"Only the last N messages; 0 for all."`
	Conversation string `arg:"" help:"Its id, the start of its id, or its title."`
	Head         string `arg:"" optional:"" default:"active" help:"Message that the branch ends in: its id, the start of its id, or active."`
}

func (cmd *showCommand) Run(ctx context.Context, out *console, logs *logFlags) error {
	return withDatabase(ctx, &cmd.databaseFlags, out, logs, func(d *database) error {
		store := d.store(cmd.Tenant)
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
		span, err := spanBranch(ctx, store, c.ID, head, cmd.Limit)
		if err != nil {
			return err
		}
		if cmd.JSON {
			return writeTranscriptJSON(out, span)
		}
		return writeTranscript(out, c, last, span)
	})
}

func writeTranscriptJSON(out *console, span span) error {
	list := jsonList{w: out}
	for m, err := range span.messages() {
		if err != nil {
			return err
		}
		if err := list.add(m); err != nil {
			return err
		}
	}
	return list.end(span.oldest.Next)
}

func writeTranscript(out *console, c tree.Conversation, head tree.Message, span span) error {
	out.Line("%s  %s", out.bold(title(c)), out.dim(c.ID.String()))
	active := ""
	if head.ID == c.HeadID {
		active = ", active"
	}
	out.Line("branch %s%s: %s, %s", head.ID, active, count(head.Depth+1, "message"), count(int(head.PathTokens), "token"))
	if above := span.oldest.Data[0].Depth; above > 0 {
		out.Line("")
		out.Line("%s", out.dim("… "+count(above, "message")+" above …"))
	}
	for m, err := range span.messages() {
		if err != nil {
			return err
		}
		writeMessage(out, m)
	}
	return nil
}

// writeMessage prints a message under a line that says whose it is.
func writeMessage(out *console, m tree.Message) {
	var b said
	if err := json.Unmarshal(m.Body, &b); err != nil {
		b.Content = m.Body // the store takes none such
	}
	head := []string{string(m.Role)}
	if b.Name != "" {
		head[0] += " " + oneLine(b.Name, 100)
	}
	if m.Siblings.Count > 1 {
		head = append(head, fmt.Sprintf("‹%d/%d›", m.Siblings.Index, m.Siblings.Count))
	}
	if m.Pinned {
		head = append(head, "pinned")
	}
	if b.ToolCallID != "" {
		head = append(head, "answers "+oneLine(b.ToolCallID, 100))
	}
	out.Line("")
	out.Line("%s  %s", out.bold("── "+strings.Join(head, " ")), out.dim(clock(m.CreatedAt)))
	for _, part := range b.lines() {
		out.Line("%s", part)
	}
}

// said is what a chat-completions message says that a reader sees.
type said struct {
	Content    json.RawMessage `json:"content"`
	Refusal    string          `json:"refusal"`
	Name       string          `json:"name"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
		Custom struct {
			Name  string `json:"name"`
			Input string `json:"input"`
		} `json:"custom"`
	} `json:"tool_calls"`
}

// lines is the text, a line for each part that is none, and one for each tool
// call.
func (b said) lines() []string {
	var out []string
	add := func(text string) {
		if text = strings.TrimRight(printable(text), "\n"); text != "" {
			out = append(out, text)
		}
	}
	var text string
	var parts []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	}
	switch {
	case len(b.Content) == 0 || json.Unmarshal(b.Content, &text) == nil:
		add(text)
	case json.Unmarshal(b.Content, &parts) == nil:
		for _, p := range parts {
			switch p.Type {
			case "text":
				add(p.Text)
			case "refusal":
				add(p.Refusal)
			default:
				add("[" + p.Type + "]")
			}
		}
	default:
		add(string(b.Content))
	}
	add(b.Refusal)
	for _, call := range b.ToolCalls {
		name, input := call.Function.Name, call.Function.Arguments
		if name == "" {
			name, input = call.Custom.Name, call.Custom.Input
		}
		add(fmt.Sprintf("→ %s(%s)  %s", name, strings.TrimSpace(input), call.ID))
	}
	return out
}

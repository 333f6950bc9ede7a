package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/tree"
)

// sprintf is for lines that are then styled.
func sprintf(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// ask appends a message of the user's below a message, and has it answered. It
// begins the conversation where there is none.
func (s *chatSession) ask(ctx context.Context, parent uuid.UUID, said *chat.Message) (err error) {
	if s.conversation.ID == uuid.Nil {
		if s.conversation, _, err = s.store.CreateConversation(ctx, tree.NewConversation{}); err != nil {
			return err
		}
	}
	return s.answer(ctx, reply.Request{
		ConversationID: s.conversation.ID, HeadID: s.head, ParentID: &parent, Model: s.model,
		Messages: []tree.NewMessage{{ID: uuid.Must(uuid.NewV7()), Message: said}},
	})
}

// answer has a branch answered, and shows the answer as it comes. The chat then
// stands at the answer, or at the message that has none.
func (s *chatSession) answer(ctx context.Context, req reply.Request) error {
	r, _, err := s.replies.Start(ctx, req)
	if err != nil {
		return err
	}
	p := printer{session: s}
	end, err := s.follow(ctx, &p, r, r)
	if err != nil {
		return err
	}
	s.listed = nil
	if err := s.moveTo(ctx, r.HeadID(), end.Message); err != nil {
		return err
	}
	s.tellEnd(&p, end)
	if end.Status == reply.StatusFailed {
		s.say("/regenerate asks again. /model chooses another model.")
	}
	return nil
}

// follow shows a reply's events as they come, and returns its end. An interrupt stops
// those of stops.
func (s *chatSession) follow(ctx context.Context, p *printer, r *reply.Reply, stops ...*reply.Reply) (reply.End, error) {
	restore := s.signals.divert(func() {
		for _, r := range stops {
			go func() { _, _ = s.replies.Stop(context.WithoutCancel(ctx), r.ConversationID(), r.MessageID()) }() // the reply's end tells what came of it
		}
	})
	defer restore()
	for after := 0; ; {
		events, err := r.Next(ctx, after)
		if err != nil {
			return reply.End{}, err
		}
		for _, e := range events {
			after = e.ID
			if e.End != nil {
				p.endLine()
				return *e.End, nil
			}
			p.event(e)
		}
		if err := s.out.Flush(); err != nil {
			return reply.End{}, err
		}
	}
}

// tellEnd shows how a reply ended.
func (s *chatSession) tellEnd(p *printer, end reply.End) {
	var about []string
	if m := end.Message; m != nil && m.Siblings.Count > 1 {
		about = append(about, fmt.Sprintf("‹%d/%d›", m.Siblings.Index, m.Siblings.Count))
	}
	if p.started != nil {
		about = append(about, p.started.Model, tokensOf(p.started.Context.Usage))
	}
	switch {
	case end.Status == reply.StatusStopped && end.Message != nil:
		about = append(about, "stopped, what came is kept")
	case end.Status == reply.StatusStopped:
		about = append(about, "stopped before anything came, /regenerate asks again")
	}
	if len(about) > 0 {
		s.say("%s", strings.Join(about, " · "))
	}
	if end.Status == reply.StatusFailed {
		s.problem(end.Err)
	}
}

// moveTo moves the chat to a message that was answered, and to the answer where
// there is one. The turns are read anew where that is another branch.
func (s *chatSession) moveTo(ctx context.Context, answered uuid.UUID, answer *tree.Message) error {
	before := s.head
	m, err := s.store.Message(ctx, s.conversation.ID, answered)
	if err != nil {
		return err
	}
	if m.ParentID == before {
		s.add(m)
	}
	s.head = m.ID
	if answer != nil {
		s.head = answer.ID
	}
	if m.ParentID == before || m.ID == before {
		return nil
	}
	return s.load(ctx)
}

// A printer shows an answer while it comes.
type printer struct {
	session  *chatSession
	started  *reply.Started
	thinking bool // the last piece was reasoning
	open     bool // the line isn't at its end
	folded   bool // it was said that there is reasoning
}

func (p *printer) event(e reply.Event) {
	switch {
	case e.Started != nil:
		p.started = e.Started
	case e.Message != nil:
		p.endLine()
		for _, call := range chat.Read(e.Message.Body).Calls {
			p.session.say("→ %s(%s)", terminal.OneLine(call.Name, 60), terminal.OneLine(call.Arguments, 200))
		}
	case e.Delta != nil:
		p.reasoning(e.Delta.Reasoning)
		p.content(e.Delta.Content + e.Delta.Refusal)
	}
}

// reasoning shows a piece of what the model thinks, each line with a mark.
func (p *printer) reasoning(text string) {
	s := p.session
	if text == "" {
		return
	}
	if !s.reasoning {
		if !p.folded {
			s.say("┆ …")
			p.folded = true
		}
		return
	}
	if !p.thinking {
		p.endLine()
		p.thinking = true
	}
	for line := range strings.Lines(onTerminal(text)) {
		if !p.open {
			line = "┆ " + line
		}
		piece, ended := strings.CutSuffix(line, "\n")
		fmt.Fprint(s.out, s.out.Dim(piece))
		if p.open = !ended; ended {
			fmt.Fprintln(s.out)
		}
	}
}

func (p *printer) content(text string) {
	if text == "" {
		return
	}
	if p.thinking {
		p.endLine()
		p.thinking = false
	}
	text = onTerminal(text)
	fmt.Fprint(p.session.out, text)
	p.open = !strings.HasSuffix(text, "\n")
}

// endLine ends the line that was begun.
func (p *printer) endLine() {
	if p.open {
		fmt.Fprintln(p.session.out)
		p.open = false
	}
}

// onTerminal is a piece of a model's text as it can't steer the terminal. Pieces may
// part a line's end.
func onTerminal(text string) string { return terminal.Printable(strings.ReplaceAll(text, "\r", "")) }

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// ask appends a message of the user's below a message, and has it answered. It
// begins the conversation where there is none.
func (s *chatSession) ask(ctx context.Context, parent uuid.UUID, said *chat.Message) (err error) {
	if s.conversation.ID == uuid.Nil {
		if err := s.client.send(ctx, http.MethodPost, "/v1/conversations", map[string]any{}, &s.conversation); err != nil {
			return err
		}
	}
	var message map[string]any
	if err := json.Unmarshal(said.Encode(), &message); err != nil {
		return err
	}
	id := uuid.Must(uuid.NewV7())
	message["id"], message["parent_id"] = id, nil
	if parent != uuid.Nil {
		message["parent_id"] = parent
	}
	return s.answer(ctx, id, map[string]any{"message": message})
}

// answer has a message of the branch answered, or one that comes with the request, and
// shows the answer as it comes. The chat then stands at the answer, or at the message that
// has none.
func (s *chatSession) answer(ctx context.Context, answered uuid.UUID, request map[string]any) error {
	at, id := answered, uuid.Must(uuid.NewV7())
	if request["message"] != nil {
		at = s.head
	}
	if s.model != "" && request["model"] == nil {
		request["model"] = s.model
	}
	defer s.signals.divert(s.stops(ctx, id))()
	stream, err := s.begin(ctx, at, id, request)
	if err != nil {
		return err
	}
	p := printer{session: s}
	end, err := s.follow(ctx, &p, stream)
	if err != nil {
		return err
	}
	s.listed = nil
	if err := s.moveTo(ctx, answered, end.Message); err != nil {
		return err
	}
	s.tellEnd(&p, end)
	if end.name == "reply.failed" {
		s.say("/regenerate asks again. /model chooses another model.")
	}
	return nil
}

// begin asks for a reply to a message, which has an id, and gives its events. Of several
// replies it is the id of the first one.
func (s *chatSession) begin(ctx context.Context, at, id uuid.UUID, request map[string]any) (io.ReadCloser, error) {
	head := "active"
	if at != uuid.Nil {
		head = at.String()
	}
	request["id"], request["stream"] = id, true
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	stream, err := s.client.do(ctx, http.MethodPost, conversationPath(s.conversation.ID, "branches", head, "replies"), nil, bytes.NewReader(body), "application/json")
	if err != nil {
		return nil, err
	}
	return stream.Body, nil
}

// stops gives what stops replies. Their ends tell what came of it.
func (s *chatSession) stops(ctx context.Context, ids ...uuid.UUID) func() {
	return func() {
		for _, id := range ids {
			go func() {
				_ = s.client.send(context.WithoutCancel(ctx), http.MethodDelete, conversationPath(s.conversation.ID, "replies", id.String()), nil, nil)
			}()
		}
	}
}

// follow shows the events of a reply as they come, and returns the last one.
func (s *chatSession) follow(ctx context.Context, p *printer, stream io.ReadCloser) (said replyEvent, err error) {
	defer stream.Close()
	for e, err := range s.client.events(ctx, stream) {
		if err != nil {
			return said, err
		}
		said = replyEvent{name: e.name}
		if err := json.Unmarshal(e.data, &said); err != nil {
			return said, err
		}
		switch e.name {
		case "reply.completed", "reply.stopped", "reply.failed":
			p.endLine()
			return said, nil
		}
		p.event(said)
		if err := s.out.Flush(); err != nil {
			return said, err
		}
	}
	return said, nil
}

// A replyEvent is any event of a reply.
type replyEvent struct {
	name string
	problem
	Model   string `json:"model"`
	Context struct {
		Usage summarize.Usage `json:"usage"`
	} `json:"context"`
	Message   *tree.Message `json:"message"`
	Reasoning string        `json:"reasoning"`
	Content   string        `json:"content"`
	Refusal   string        `json:"refusal"`
}

// tellEnd shows how a reply ended.
func (s *chatSession) tellEnd(p *printer, end replyEvent) {
	var about []string
	if m := end.Message; m != nil && m.Siblings.Count > 1 {
		about = append(about, fmt.Sprintf("‹%d/%d›", m.Siblings.Index, m.Siblings.Count))
	}
	if p.started != nil {
		about = append(about, p.started.Model, tokensOf(p.started.Context.Usage))
	}
	switch {
	case end.name == "reply.stopped" && end.Message != nil:
		about = append(about, "stopped, what came is kept")
	case end.name == "reply.stopped":
		about = append(about, "stopped before anything came, /regenerate asks again")
	}
	if len(about) > 0 {
		s.say("%s", strings.Join(about, " · "))
	}
	if end.name == "reply.failed" {
		s.problem(end.problem.err(http.StatusBadGateway))
	}
}

// moveTo moves the chat to a message that was answered, and to the answer where
// there is one. The turns are read anew where that is another branch.
func (s *chatSession) moveTo(ctx context.Context, answered uuid.UUID, answer *tree.Message) error {
	before := s.head
	m, err := s.message(ctx, answered)
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

// message reads a message of the conversation.
func (s *chatSession) message(ctx context.Context, id uuid.UUID) (m tree.Message, err error) {
	return m, s.client.get(ctx, conversationPath(s.conversation.ID, "messages", id.String()), nil, &m)
}

// A printer shows an answer while it comes.
type printer struct {
	session  *chatSession
	started  *replyEvent // nil before the model is asked
	thinking bool        // the last piece was reasoning
	open     bool        // the line isn't at its end
	folded   bool        // it was said that there is reasoning
}

func (p *printer) event(e replyEvent) {
	switch e.name {
	case "reply.started":
		p.started = &e
	case "reply.message":
		p.endLine()
		for _, call := range chat.Read(e.Message.Body).Calls {
			p.session.say("→ %s(%s)", terminal.OneLine(call.Name, 60), terminal.OneLine(call.Arguments, 200))
		}
	default:
		p.reasoning(e.Reasoning)
		p.content(e.Content + e.Refusal)
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

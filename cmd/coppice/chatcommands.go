package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/reply"
	"github.com/coppice-chat/coppice/tree"
)

// A chatCommandLine is a command of the chat.
type chatCommandLine struct {
	name, args, help string
	do               func(s *chatSession, ctx context.Context, args string) error
}

// chatCommands are all commands.
func chatCommands() []chatCommandLine {
	return []chatCommandLine{
		{"/edit", "[N]", "write your message N again, or the last one, in a new branch", (*chatSession).edit},
		{"/regenerate", "[MODEL]", "ask for another answer, in a new branch", (*chatSession).regenerate},
		{"/compare", "[N|MODEL…]", "have several models answer once more, or the chosen one N times", (*chatSession).compare},
		{"/switch", "[N|ID]", "list the branches, or go to one", (*chatSession).switchBranch},
		{"/map", "", "draw all branches", (*chatSession).drawMap},
		{"/show", "[N]", "show the last N messages of the branch, or all", (*chatSession).showLast},
		{"/model", "[NAME]", "list the models, or choose the one that answers", (*chatSession).chooseModel},
		{"/title", "[TEXT]", "show the title, or give another one", (*chatSession).title},
		{"/help", "", "list the commands", (*chatSession).help},
		{"/quit", "", "end the chat, as Ctrl-D does", func(*chatSession, context.Context, string) error { return errQuit }},
	}
}

// do carries out a line.
func (s *chatSession) do(ctx context.Context, text string) error {
	if text == "" {
		return nil
	}
	if !strings.HasPrefix(text, "/") || strings.HasPrefix(text, "//") {
		return s.send(ctx, strings.TrimPrefix(text, "/"))
	}
	name, args, _ := strings.Cut(text, " ")
	for _, c := range chatCommands() {
		if c.name == name {
			return c.do(s, ctx, strings.TrimSpace(args))
		}
	}
	return usagef("there is no command %s. /help lists the commands. A message that begins with a slash is written with two", terminal.OneLine(name, 40))
}

// prompt has the number of the message that is about to be written.
func (s *chatSession) prompt() string { return strconv.Itoa(len(s.turns)+1) + "> " }

// load reads the turns of the branch.
func (s *chatSession) load(ctx context.Context) error {
	s.turns = nil
	if s.head == uuid.Nil {
		return nil
	}
	branch, _, err := readBranch[tree.Message](ctx, s.client, s.conversation.ID, s.head, 0, nil)
	for _, m := range branch {
		s.add(m)
	}
	return err
}

// add takes note of a message at the end of the branch.
func (s *chatSession) add(m tree.Message) {
	s.head = m.ID
	if m.Role == tree.RoleUser {
		s.turns = append(s.turns, turn{m.ID, m.ParentID, terminal.OneLine(chat.Read(m.Body).Text(), 60)})
	}
}

func (s *chatSession) help(context.Context, string) error {
	for _, c := range chatCommands() {
		s.out.Line("%s  %s", terminal.Pad(strings.TrimSpace(c.name+" "+c.args), 20), c.help)
	}
	s.out.Line(`A line that ends with \ goes on in the next one. A message that begins with a slash is written with two.`)
	return nil
}

// send appends a message to the branch and has it answered.
func (s *chatSession) send(ctx context.Context, text string) error {
	return s.ask(ctx, s.head, chat.Text(chat.User, text))
}

// edit writes a message again, beside the one that there is.
func (s *chatSession) edit(ctx context.Context, args string) error {
	if len(s.turns) == 0 {
		return usagef("the branch has no message of yours yet")
	}
	n := len(s.turns)
	if args != "" {
		var err error
		if n, err = strconv.Atoi(args); err != nil || n < 1 || n > len(s.turns) {
			lines := make([]string, len(s.turns))
			for i, t := range s.turns {
				lines[i] = fmt.Sprintf("  %d  %s", i+1, t.preview)
			}
			return usagef("/edit takes the number of a message of yours:\n%s", strings.Join(lines, "\n"))
		}
	}
	t := s.turns[n-1]
	m, err := s.message(ctx, t.id)
	if err != nil {
		return err
	}
	said := chat.Read(m.Body)
	was := terminal.Printable(said.Text())
	s.say("%s", was)
	if strings.Contains(was, "\n") {
		was = "" // which a line can't hold
	}
	if err := s.out.Flush(); err != nil {
		return err
	}
	text, err := s.read(ctx, strconv.Itoa(n)+"| ", was)
	if err != nil {
		return err
	}
	if text == "" || text == said.Text() {
		s.say("Nothing was changed.")
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(said.Parts), chat.Part.IsText) // pictures and files stay
	again := &chat.Message{Role: chat.User, Name: said.Name, Parts: append([]chat.Part{chat.TextPart(text)}, rest...)}
	return s.ask(ctx, t.parent, again)
}

// regenerate asks for another answer to what the branch's last answer answers, or
// for the first one where there is none.
func (s *chatSession) regenerate(ctx context.Context, model string) error {
	head, err := s.question(ctx)
	if err != nil {
		return err
	}
	request := map[string]any{}
	if model != "" {
		request["model"] = model
	}
	return s.answer(ctx, head, request)
}

// question is the message that the branch's last answer answers, or else its head.
func (s *chatSession) question(ctx context.Context) (uuid.UUID, error) {
	if s.head == uuid.Nil {
		return uuid.Nil, usagef("there is nothing to answer yet")
	}
	m, err := s.message(ctx, s.head)
	if err != nil || m.Role != tree.RoleAssistant {
		return m.ID, err
	}
	head := reply.EndOf(m).HeadID
	if head == uuid.Nil {
		return head, usagef("nothing stands above the answer, so there is nothing to answer")
	}
	return head, nil
}

// compare has several models answer what the branch's last answer answers, or one model
// several times. The chat stays where it is.
func (s *chatSession) compare(ctx context.Context, args string) error {
	models := strings.Fields(args)
	request := map[string]any{"models": models}
	if n, err := strconv.Atoi(args); err == nil || args == "" {
		if args == "" {
			n = 2
		}
		if n < 2 || n > reply.MaxAnswers {
			return usagef("/compare takes 2 to %d answers, or the names of so many models", reply.MaxAnswers)
		}
		models = slices.Repeat([]string{s.modelName()}, n)
		request["models"] = models
	}
	head, err := s.question(ctx)
	if err != nil {
		return err
	}
	ids := make([]uuid.UUID, len(models))
	first := uuid.Must(uuid.NewV7())
	for i := range ids {
		ids[i] = reply.AnswerID(first, i)
	}
	defer s.signals.divert(s.stops(ctx, ids...))()
	all, err := s.begin(ctx, head, first, request)
	if err != nil {
		return err
	}
	all.Close() // the events of each reply are read alone
	s.listed = nil
	for i, id := range ids {
		s.say("── %s", models[i])
		stream, err := s.client.do(ctx, http.MethodGet, conversationPath(s.conversation.ID, "replies", id.String(), "events"), nil, nil, "")
		if err != nil {
			return err
		}
		p := printer{session: s}
		end, err := s.follow(ctx, &p, stream.Body)
		if err != nil {
			return err
		}
		if end.Message != nil {
			s.listed = append(s.listed, end.Message.ID)
			s.say("(%d)", len(s.listed))
		}
		s.tellEnd(&p, end)
	}
	if len(s.listed) > 0 {
		s.say("/switch with the number in brackets keeps an answer. The chat stands where it was.")
	}
	return nil
}

// mostBranches is how many branches /switch lists.
const mostBranches = 20

func (s *chatSession) switchBranch(ctx context.Context, args string) error {
	if s.conversation.ID == uuid.Nil {
		return usagef("there are no branches yet")
	}
	if args == "" {
		return s.listBranches(ctx)
	}
	id, err := s.branchNamed(ctx, args)
	if err != nil {
		return err
	}
	var leaf tree.Message
	if err := s.client.get(ctx, conversationPath(s.conversation.ID, "messages", id.String(), "newest-leaf"), nil, &leaf); err != nil {
		return err
	}
	if err := s.update(ctx, map[string]any{"head_id": leaf.ID}); err != nil {
		return err
	}
	s.head = leaf.ID
	if err := s.load(ctx); err != nil {
		return err
	}
	return s.show(ctx, shownAtStart)
}

// branchNamed finds the message that a person names by a number of the list, an id,
// or the start of one.
func (s *chatSession) branchNamed(ctx context.Context, name string) (uuid.UUID, error) {
	if n, err := strconv.Atoi(name); err == nil && n < 1000 { // an id has four characters at least
		if len(s.listed) == 0 {
			if _, err := s.branches(ctx); err != nil {
				return uuid.Nil, err
			}
		}
		if n < 1 || n > len(s.listed) {
			return uuid.Nil, usagef("there is no branch %d: /switch lists the branches", n)
		}
		return s.listed[n-1], nil
	}
	if name == "active" {
		return uuid.Nil, usagef("/switch takes a number of its list, an id, or the start of one")
	}
	return findHead(ctx, s.client, s.conversation, name)
}

func (s *chatSession) branches(ctx context.Context) (page[tree.Message], error) {
	page, err := readPages[tree.Message](ctx, s.client, pageFlags{Limit: mostBranches}, conversationPath(s.conversation.ID, "branches"), nil)
	s.listed = nil
	for _, m := range page.Data {
		s.listed = append(s.listed, m.ID)
	}
	return page, err
}

func (s *chatSession) listBranches(ctx context.Context) error {
	page, err := s.branches(ctx)
	if err != nil {
		return err
	}
	length := terminal.IDLength(s.listed)
	rows := make([][]string, len(page.Data))
	for i, m := range page.Data {
		mark := ""
		if m.ID == s.head {
			mark = "●"
		}
		rows[i] = []string{strconv.Itoa(i + 1), mark, m.ID.String()[:length], terminal.Thousands(m.Depth + 1), chat.Read(m.Body).Text()}
	}
	s.out.Table([]terminal.Column{{Name: "N", Right: true}, {}, {Name: "ID"}, {Name: "MESSAGES", Right: true}, {Name: "ENDS WITH", Cut: true}}, rows)
	if page.Next != "" {
		s.say("There are more. /map draws all, with the ids that /switch takes.")
	}
	return nil
}

func (s *chatSession) drawMap(ctx context.Context, _ string) error {
	if s.conversation.ID == uuid.Nil {
		return usagef("there are no branches yet")
	}
	if err := s.reread(ctx); err != nil {
		return err
	}
	return writeTree(ctx, s.out, s.client, s.conversation, s.head) // of the chat, whatever another program made active
}

func (s *chatSession) showLast(ctx context.Context, args string) error {
	n := 0
	if args != "" {
		var err error
		if n, err = strconv.Atoi(args); err != nil || n < 1 {
			return usagef("/show takes a number of messages, 1 or more")
		}
	}
	return s.show(ctx, n)
}

// show writes the last messages of the branch; 0 is all of them.
func (s *chatSession) show(ctx context.Context, limit int) (err error) {
	if s.head == uuid.Nil {
		s.say("The branch has no message yet.")
		return nil
	}
	if err := s.reread(ctx); err != nil {
		return err
	}
	return showBranch(ctx, s.out, s.client, s.conversation, s.head, limit, s.reasoning)
}

// reread reads what others have changed of the conversation.
func (s *chatSession) reread(ctx context.Context) error {
	return s.client.get(ctx, conversationPath(s.conversation.ID), nil, &s.conversation)
}

// update changes the conversation.
func (s *chatSession) update(ctx context.Context, members map[string]any) error {
	return s.client.send(ctx, http.MethodPatch, conversationPath(s.conversation.ID), members, &s.conversation)
}

func (s *chatSession) chooseModel(_ context.Context, name string) error {
	if name == "" {
		for _, m := range s.models {
			mark := " "
			if m == s.modelName() {
				mark = "●"
			}
			s.out.Line("%s %s", mark, m)
		}
		return nil
	}
	if !slices.Contains(s.models, name) {
		return fmt.Errorf("no model of this name answers here. /model lists those that do")
	}
	s.model = name
	s.say("%s answers from now on.", name)
	return nil
}

func (s *chatSession) title(ctx context.Context, text string) (err error) {
	if s.conversation.ID == uuid.Nil {
		return usagef("the conversation begins with its first message: give it a title then")
	}
	if text != "" {
		err = s.update(ctx, map[string]any{"title": text})
	} else {
		err = s.reread(ctx)
	}
	if err == nil {
		s.out.Line("%s  %s", s.out.Bold(title(s.conversation)), s.out.Dim(s.conversation.ID.String()))
	}
	return err
}

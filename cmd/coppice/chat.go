package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/google/uuid"

	"github.com/coppice-chat/coppice/app"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

type chatCommand struct {
	dataFlags
	summaryFlags
	titleFlags   `group:"Models"`
	answerFlags  `group:"Models"`
	Reasoning    bool   `negatable:"" default:"true" help:"Show what a model thinks before its answers, in dim lines (true)."`
	Conversation string `arg:"" optional:"" help:"Its id, the start of its id, its title, or a part of its title. Without it, the first message begins a new conversation."`
}

func (cmd *chatCommand) Help() string {
	return `Each line is a message. One that ends with \ goes on in the next line. Lines that begin with / are commands: /edit and /regenerate open branches, /switch goes to another one, /map draws them all, and /help lists the rest. Ctrl-C stops an answer and keeps what came of it; Ctrl-D ends the chat. Input that is no terminal is read line by line.`
}

func (cmd *chatCommand) Run(ctx context.Context, out *terminal.Console, logs *logFlags, signals *interrupts) error {
	return cmd.withServer(ctx, out, logs, alone{begins: true, quiet: true, config: cmd.config, settings: cmd.settings}, func(c *client) (err error) {
		s := &chatSession{out: out, in: newLines(os.Stdin, os.Stdout, out), client: c, signals: signals, reasoning: cmd.Reasoning}
		if cmd.Conversation != "" {
			if s.conversation, err = findConversation(ctx, c, cmd.Conversation); err != nil {
				return err
			}
			s.head = s.conversation.HeadID
		}
		return s.run(ctx)
	})
}

// config is what the flags say of the models that answer here.
func (cmd *chatCommand) config(config *app.Config, log *slog.Logger) (err error) {
	if err := cmd.summaries(config, log); err != nil {
		return err
	}
	if config.Replies, err = cmd.answerFlags.config(); err != nil {
		return err
	}
	config.Contexts.Titles = summarize.Titles(cmd.Titles)
	config.KeepWindow = cmd.MaxContextTokens != nil
	config.Models.Replies, config.Models.WantReasoning = cmd.ReplyModel, cmd.SendReasoning
	cmd.answerFlags.announce(config.Models, log)
	return nil
}

// A chatSession is a chat on one conversation. It stands at a head, which is its
// own: that another program makes another branch active moves nothing here.
type chatSession struct {
	out       *terminal.Console
	in        lines
	client    *client
	signals   *interrupts
	reasoning bool
	model     string   // that answers; "" for the default
	models    []string // that may answer, the default first

	conversation tree.Conversation // the zero value until the first message
	head         uuid.UUID         // uuid.Nil while the branch has no message
	turns        []turn            // of the branch
	listed       []uuid.UUID       // branches, as /switch numbered them last
}

// A turn is a message of the user on the branch.
type turn struct {
	id, parent uuid.UUID
	preview    string
}

// errQuit ends the chat.
var errQuit = errors.New("the chat is over")

// shownAtStart is how many messages of a branch are shown when the chat comes to it.
const shownAtStart = 2

func (s *chatSession) run(ctx context.Context) error {
	if err := s.start(ctx); err != nil {
		return err
	}
	for {
		if err := s.out.Flush(); err != nil {
			return err
		}
		text, err := s.read(ctx, s.prompt(), "")
		if err == nil {
			err = s.do(ctx, text)
		}
		switch {
		case err == nil:
		case errors.Is(err, io.EOF):
			if s.out.Terminal {
				s.out.Line("") // after the prompt
			}
			return nil
		case errors.Is(err, errQuit):
			return nil
		case ctx.Err() != nil:
			return err
		default:
			s.problem(err)
		}
	}
}

func (s *chatSession) start(ctx context.Context) error {
	var models struct {
		Data []struct {
			Name    string `json:"name"`
			Replies bool   `json:"replies"`
		} `json:"data"`
	}
	if err := s.client.get(ctx, "/v1/models", nil, &models); err != nil {
		return err
	}
	for _, m := range models.Data {
		if m.Replies {
			s.models = append(s.models, m.Name)
		}
	}
	if s.conversation.ID == uuid.Nil {
		s.say("A new conversation, answered by %s. /help lists the commands.", s.modelName())
		return nil
	}
	if err := s.load(ctx); err != nil {
		return err
	}
	return s.show(ctx, shownAtStart)
}

// say writes a line of the chat's own.
func (s *chatSession) say(format string, args ...any) {
	s.out.Line("%s", s.out.Dim(fmt.Sprintf(format, args...)))
}

// problem tells what went wrong, and goes on. What a model's failure means stands in
// the reply's error.
func (s *chatSession) problem(err error) {
	text := explain(err)
	var known *fault.Error
	if errors.As(err, &known) && known.Detail != "" {
		text = known.Detail
	}
	s.out.Line("! %s", text)
}

func (s *chatSession) modelName() string {
	switch {
	case s.model != "":
		return s.model
	case len(s.models) == 0:
		return "no model"
	}
	return s.models[0]
}

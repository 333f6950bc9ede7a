package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/coppice-chat/coppice/db/embedded"
	"github.com/coppice-chat/coppice/internal/terminal"
	"github.com/coppice-chat/coppice/tree"
)

type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

func (cmd *completionCommand) Help() string {
	return `To have it in each new shell, add a line to the shell's start file: source <(coppice completion bash) to ~/.bashrc, source <(coppice completion zsh) to ~/.zshrc below the line of compinit, or coppice completion fish | source to ~/.config/fish/config.fish.`
}

//go:embed completion.bash
var bashCompletion string

//go:embed completion.zsh
var zshCompletion string

//go:embed completion.fish
var fishCompletion string

func (cmd *completionCommand) Run(out *terminal.Console) error {
	_, err := io.WriteString(out, map[string]string{"bash": bashCompletion, "zsh": zshCompletion, "fish": fishCompletion}[cmd.Shell])
	return err
}

// completeCommand is what the shells' scripts call.
type completeCommand struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"The words of the command line after the program's name, up to the cursor."`
}

// Run prints what may stand in the place of the last word, each with its meaning
// after a tab. It knows nothing of errors: a shell has no place for them.
func (cmd *completeCommand) Run(ctx context.Context, out *terminal.Console) error {
	words := cmd.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	if len(words) == 0 {
		words = []string{""}
	}
	parser, err := newParser(new(commands))
	if err != nil {
		return err
	}
	for _, c := range complete(ctx, parser.Model.Node, words) {
		out.Line("%s\t%s", c.word, c.meaning)
	}
	return nil
}

// A candidate is a word that the shell may put in.
type candidate struct{ word, meaning string }

// complete finds what may stand in the place of the last word.
func complete(ctx context.Context, node *kong.Node, words []string) (found []candidate) {
	given, last := words[:len(words)-1], words[len(words)-1]
	positions := 0
	var wants *kong.Flag // a value
	for _, word := range given {
		if wants != nil {
			wants = nil
			continue
		}
		if strings.HasPrefix(word, "-") {
			wants = valueFlag(node, word)
			continue
		}
		if child := childOf(node, word); child != nil {
			node = child
			continue
		}
		positions++
	}
	add := func(word, meaning string) {
		if strings.HasPrefix(word, last) {
			found = append(found, candidate{word, terminal.OneLine(meaning, 100)})
		}
	}
	fill := func(value *kong.Value) {
		if isConversation(value) {
			found = conversationsLike(ctx, given, last)
		}
		for _, v := range valuesOf(value) {
			add(v, "")
		}
	}
	switch {
	case wants != nil:
		fill(wants.Value)
	case strings.HasPrefix(last, "-"):
		for _, f := range flagsOf(node) {
			add("--"+f.Name, f.Help)
			if f.Tag.Negatable != "" {
				add("--no-"+f.Name, f.Help)
			}
		}
	case len(node.Children) > 0:
		for _, child := range node.Children {
			if !child.Hidden {
				add(child.Name, child.Help)
			}
		}
	case positions < len(node.Positional):
		fill(node.Positional[positions])
	case len(node.Positional) > 0:
		if value := node.Positional[len(node.Positional)-1]; value.IsCumulative() {
			fill(value)
		}
	}
	return found
}

// isConversation tells whether an argument or a flag names a conversation.
func isConversation(value *kong.Value) bool {
	return strings.Contains(strings.ToLower(value.Name), "conversation")
}

func childOf(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// flagsOf are the flags of a command and of those above it.
func flagsOf(node *kong.Node) (all []*kong.Flag) {
	for ; node != nil; node = node.Parent {
		for _, f := range node.Flags {
			if !f.Hidden {
				all = append(all, f)
			}
		}
	}
	return all
}

// valueFlag is the flag of a word that wants the next word for its value; nil for
// none.
func valueFlag(node *kong.Node, word string) *kong.Flag {
	for _, f := range flagsOf(node) {
		if (word == "--"+f.Name || f.Short != 0 && word == "-"+string(f.Short)) && !f.IsBool() && !f.IsCounter() {
			return f
		}
	}
	return nil
}

func valuesOf(value *kong.Value) (all []string) {
	for v := range strings.SplitSeq(value.Enum, ",") {
		if v = strings.TrimSpace(v); v != "" {
			all = append(all, v)
		}
	}
	return all
}

const completionConversations = 30

// completionTimeout is how long a user who pressed Tab is to wait. Tests wait
// longer, as their machine may be busy.
var completionTimeout = 2 * time.Second

// conversationsLike are the conversations whose id begins with a word, or whose
// title contains it, in a database that runs: completion starts none.
func conversationsLike(ctx context.Context, given []string, word string) (found []candidate) {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	flags, err := placeOf(given)
	if err != nil {
		return nil
	}
	ask := func(c *client) error {
		query := url.Values{"limit": {strconv.Itoa(completionConversations)}}
		if word != "" {
			query = url.Values{"name": {word}}
		}
		var list tree.Page[tree.Conversation]
		if err := c.get(ctx, "/v1/conversations", query, &list); err != nil {
			return err
		}
		for _, conversation := range list.Data {
			found = append(found, candidate{conversation.ID.String(), terminal.OneLine(title(conversation), 60)})
		}
		return nil
	}
	c, err := flags.running(ctx)
	switch {
	case err != nil:
		return nil
	case c != nil:
		_ = ask(c)
		return found
	case flags.DatabaseURL == "":
		if flags.DatabaseURL, err = embedded.Attach(flags.DataDir); err != nil {
			return nil
		}
	}
	_ = flags.withOwnServer(ctx, terminal.New(os.Stdout, os.Stderr, true), &logFlags{LogLevel: "error"}, alone{}, ask)
	return found
}

// placeOf is where the data is, as the flags before the word and the environment
// say.
func placeOf(given []string) (dataFlags, error) {
	var cli commands
	args := []string{"list"}
	for i, word := range given {
		name, _, joined := strings.Cut(word, "=")
		switch name {
		case "--database-url", "--data-dir", "--cache-dir", "--tenant", "--server", "--key":
			args = append(args, word)
			if !joined && i+1 < len(given) {
				args = append(args, given[i+1])
			}
		}
	}
	parser, err := newParser(&cli)
	if err != nil {
		return dataFlags{}, fmt.Errorf("the grammar of the command line: %w", err)
	}
	_, err = parser.Parse(args)
	return cli.List.dataFlags, err
}

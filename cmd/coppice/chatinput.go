package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/term"

	"github.com/coppice-chat/coppice/internal/terminal"
)

// lines reads what a person types, a line at a time. text stands in the line at
// first, where it can be edited. The end of the input is io.EOF.
type lines interface {
	line(prompt, text string) (line string, pasted bool, err error)
	restore() // the terminal, where the program ends while a line is read
}

// newLines reads from a terminal with line editing, and from anything else as it
// comes.
func newLines(in, out *os.File, console *terminal.Console) lines {
	if term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd())) {
		return newEdited(in, out)
	}
	return &plainLines{bufio.NewReader(in), console}
}

// plainLines reads lines that nobody types, and shows them.
type plainLines struct {
	in  *bufio.Reader
	out *terminal.Console
}

func (p *plainLines) line(prompt, _ string) (string, bool, error) {
	line, err := p.in.ReadString('\n')
	if err == io.EOF && line != "" {
		err = nil
	}
	line = strings.TrimRight(line, "\r\n")
	if err == nil {
		p.out.Line("%s%s", p.out.Bold(prompt), terminal.Printable(line))
	}
	return line, false, err
}

func (*plainLines) restore() {}

// An edited reads lines with the keys of a shell: arrows, the lines before, Tab for
// commands. Ctrl-C empties the line. The terminal is as usual between two lines, so
// that Ctrl-C stops an answer.
type edited struct {
	fd   int
	keys *keyboard
	term *term.Terminal

	mu    sync.Mutex
	usual *term.State // of the terminal, where no line is read
}

func newEdited(in, out *os.File) *edited {
	k := &keyboard{in: in}
	e := &edited{fd: int(in.Fd()), keys: k, term: term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{k, out}, "")}
	e.term.AutoCompleteCallback = completeCommandName
	return e
}

func (e *edited) line(prompt, text string) (string, bool, error) {
	state, err := term.MakeRaw(e.fd)
	if err != nil {
		return "", false, fmt.Errorf("the terminal can't be set up to edit lines: %w", err)
	}
	defer term.Restore(e.fd, state)
	e.mu.Lock()
	e.usual = state
	e.mu.Unlock()
	if width, height, err := term.GetSize(e.fd); err == nil && width > 0 {
		_ = e.term.SetSize(width, height) // a wrong size only draws the line worse
	}
	e.keys.typed = []byte(text)
	e.term.SetBracketedPasteMode(true)
	defer e.term.SetBracketedPasteMode(false)
	e.term.SetPrompt(prompt)
	line, err := e.term.ReadLine()
	if err == term.ErrPasteIndicator {
		return line, true, nil
	}
	return line, false, err
}

func (e *edited) restore() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.usual != nil {
		_ = term.Restore(e.fd, e.usual) // at the end there is nothing to be done about it
	}
}

// A keyboard gives what is typed. A text that is to be edited comes first, as if it had
// been typed.
type keyboard struct {
	in    io.Reader
	typed []byte
}

// The keys by which a line is emptied: Ctrl-C, as people know it, and as the
// terminal does, to the end and then back to the start.
var (
	keyInterrupt = []byte{3}
	keysEmpty    = []byte{5, 21}
)

func (k *keyboard) Read(p []byte) (int, error) {
	if len(k.typed) == 0 {
		buffer := make([]byte, max(len(p)/2, 1)) // the keys that empty a line are two
		n, err := k.in.Read(buffer)
		if err != nil || len(p) < 2 {
			return copy(p, buffer[:n]), err
		}
		k.typed = bytes.ReplaceAll(buffer[:n], keyInterrupt, keysEmpty)
	}
	n := copy(p, k.typed)
	k.typed = k.typed[n:]
	return n, nil
}

// completeCommandName completes the command that a line begins with.
func completeCommandName(line string, pos int, key rune) (string, int, bool) {
	if key != '\t' || pos != len(line) || !strings.HasPrefix(line, "/") {
		return "", 0, false
	}
	found := ""
	for _, c := range chatCommands() {
		if strings.HasPrefix(c.name, line) {
			if found != "" {
				return "", 0, false
			}
			found = c.name + " "
		}
	}
	return found, len(found), found != ""
}

// read reads a message or a command: one line, or several where they end with a
// backslash or were pasted together. It ends when ctx does.
func (s *chatSession) read(ctx context.Context, prompt, text string) (string, error) {
	var all []string
	for {
		line, pasted, err := s.readLine(ctx, prompt, text)
		if err != nil {
			return "", err
		}
		before, goesOn := strings.CutSuffix(line, `\`)
		all = append(all, before)
		if !goesOn && !pasted {
			return strings.TrimSpace(strings.Join(all, "\n")), nil
		}
		prompt, text = strings.Repeat(" ", len(prompt)-2)+"| ", ""
	}
}

func (s *chatSession) readLine(ctx context.Context, prompt, text string) (line string, pasted bool, err error) {
	came := make(chan func() (string, bool, error), 1)
	go func() {
		line, pasted, err := s.in.line(prompt, text)
		came <- func() (string, bool, error) { return line, pasted, err }
	}()
	select {
	case result := <-came:
		return result()
	case <-ctx.Done():
		s.in.restore()
		return "", false, context.Cause(ctx)
	}
}

package coppice_test

import (
	"bufio"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

// A fence is a block of code in a document.
type fence struct{ language, text string }

var fenced = regexp.MustCompile("(?ms)^ *```(\\w*)\n(.*?)^ *```$")

func fences(markdown string) (blocks []fence) {
	for _, m := range fenced.FindAllStringSubmatch(markdown, -1) {
		blocks = append(blocks, fence{m[1], m[2]})
	}
	return blocks
}

// inlineCode is what stands between backticks in a document, blocks and
// comments aside.
func inlineCode(markdown string) (code []string) {
	markdown = fenced.ReplaceAllString(markdown, "")
	markdown = regexp.MustCompile(`(?s)<!--.*?-->`).ReplaceAllString(markdown, "")
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(markdown, -1) {
		code = append(code, strings.Join(strings.Fields(m[1]), " "))
	}
	return code
}

// A step is a command of a document, and what it prints there.
type step struct{ command, output string }

// serves tells whether the step starts the server.
func (s step) serves() bool { return strings.Contains(s.command+" ", " serve ") }

// transcript reads the steps of a document's console blocks.
func transcript(t *testing.T, document string) (steps []step) {
	t.Helper()
	for _, block := range fences(read(t, document)) {
		if block.language != "console" {
			continue
		}
		lines := strings.SplitAfter(block.text, "\n")
		for i := 0; i < len(lines); i++ {
			if command, ok := strings.CutPrefix(lines[i], "$ "); ok {
				for i+1 < len(lines) {
					if strings.Count(command, "'")%2 == 1 { // within quotes
						i++
						command += lines[i]
					} else if broken, ok := strings.CutSuffix(command, "\\\n"); ok {
						i++
						command = broken + strings.TrimLeft(lines[i], " ")
					} else {
						break
					}
				}
				steps = append(steps, step{command: strings.TrimSpace(command)})
			} else if len(steps) > 0 {
				steps[len(steps)-1].output += lines[i]
			}
		}
	}
	check.Need(t, len(steps) != 0, "%s has no commands with their output", document)
	return steps
}

// matches tells whether got is what a document shows, in which "…" stands for
// anything within a line, and alone in a line for any lines.
func matches(got, shown string) bool {
	var pattern strings.Builder
	for line := range strings.SplitSeq(strings.TrimSpace(shown), "\n") {
		if line == "…" {
			pattern.WriteString(`(.*\n)*`)
			continue
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(line), "…", `.*`) + "\n")
	}
	return regexp.MustCompile(`\A` + pattern.String() + `\z`).MatchString(strings.TrimSpace(got) + "\n")
}

// A shell has bash carry out the commands of a document, one after the other.
type shell struct {
	t           *testing.T
	program     string
	env         []string
	url         string // of the server, which the documents have on documentedURL
	assignments string // of variables, for the commands below them
}

const documentedURL = "http://127.0.0.1:8787"

func newShell(t *testing.T, program string, env ...string) *shell {
	return &shell{t: t, program: program, env: append(cleanEnv(), env...)}
}

// cleanEnv is the environment without what would send the program elsewhere.
func cleanEnv() []string {
	env := []string{"TZ=UTC"}
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); name != "TZ" && name != "DATABASE_URL" && !strings.HasPrefix(name, "COPPICE_") && !strings.HasPrefix(name, "OTEL_") {
			env = append(env, v)
		}
	}
	return env
}

var (
	assignment = regexp.MustCompile(`^[a-z]+=\S+$`)
	ourProgram = regexp.MustCompile(`(\./|go run \./cmd/)coppice `)
)

// run carries out one command and returns what it prints.
func (s *shell) run(command string) string {
	s.t.Helper()
	switch {
	case step{command: command}.serves():
		args, _ := coppiceArgs(split(command))
		return s.serve(args)
	case assignment.MatchString(command):
		s.assignments += command + "\n"
		return ""
	case command == "go build ./cmd/coppice":
		return "" // newShell was given the program
	}
	script := strings.ReplaceAll(s.assignments+ourProgram.ReplaceAllString(command, s.program+" "), documentedURL, s.url)
	cmd := exec.Command("bash", "-c", script)
	cmd.Env = s.env
	out, err := cmd.CombinedOutput()
	check.Need(s.t, err == nil, "%s: %v\n%s", command, err, out)
	return string(out)
}

// serve starts the server on a free port, and returns its log up to the line
// that it listens. The test has a database for it, so it tells nothing of a
// private Postgres.
func (s *shell) serve(args []string) string {
	cmd := exec.CommandContext(s.t.Context(), s.program, append(args, "--addr", "127.0.0.1:0")...)
	cmd.Env = s.env
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	stderr := check.Must(cmd.StderrPipe())(s.t)
	check.NoError(s.t, cmd.Start())
	log, listens := "", make(chan string)
	go func() {
		defer close(listens)
		for lines, told := bufio.NewScanner(stderr), false; lines.Scan(); {
			if told {
				continue // read on, lest the server wait for a reader
			}
			log += lines.Text() + "\n"
			if m := regexp.MustCompile(`msg=listening url=(\S+)`).FindStringSubmatch(lines.Text()); m != nil {
				told = true
				listens <- m[1]
			}
		}
	}()
	url, ok := <-listens
	if !ok {
		s.t.Fatalf("coppice serve ended: %v\n%s", cmd.Wait(), log)
	}
	s.t.Cleanup(func() {
		for range listens { // until its log ends
		}
		_ = cmd.Wait() // the signal's doing
	})
	s.url = url
	return strings.ReplaceAll(log, url, documentedURL)
}

// split takes a command apart at blanks that stand in no quotes.
func split(command string) (words []string) {
	var word strings.Builder
	begun, quote := false, rune(0)
	for _, r := range command + " " {
		switch {
		case r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, begun = r, true
		case quote == 0 && r == ' ':
			if begun {
				words = append(words, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	return words
}

// coppiceCommands are the arguments of all command lines in a block that run
// the program.
func coppiceCommands(block string) (all [][]string) {
	block = strings.ReplaceAll(block, "\\\n", " ")
	for line := range strings.SplitSeq(block, "\n") {
		line = strings.TrimPrefix(line, "$ ")
		for _, end := range []string{" # ", " | ", " > ", " < ", " &"} {
			line, _, _ = strings.Cut(line, end)
		}
		words := split(line)
		for len(words) > 0 && regexp.MustCompile(`^[A-Z_]+=`).MatchString(words[0]) {
			words = words[1:] // a variable for this command
		}
		if args, ok := coppiceArgs(words); ok {
			all = append(all, args)
		}
	}
	return all
}

// coppiceArgs are the arguments of a command line that runs the program.
func coppiceArgs(words []string) (args []string, ok bool) {
	for _, program := range [][]string{{"coppice"}, {"./coppice"}, {"go", "run", "./cmd/coppice"}, {"docker", "compose", "run", "--rm", "coppice"}} {
		if n := len(program); len(words) > n && strings.Join(words[:n], " ") == strings.Join(program, " ") {
			return words[n:], true
		}
	}
	return nil, false
}

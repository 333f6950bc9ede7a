package main

import (
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// The command lines of the documents are ones that this program takes, and the
// flags that its own page names are there.
func TestDocuments(t *testing.T) {
	t.Chdir("../..") // where the documents say to run them
	help := ""
	for _, command := range [][]string{{"bench", "all"}, {"bench", "forks"}, {"torture"}, {"mutants"}} {
		help += parse(t, append(command, "--help")...)
	}
	commandLines := 0
	for _, name := range []string{"README.md", "../README.md", "../CHANGELOG.md", "../docs/branch-safety.md", "../docs/performance.md", "../docs/performance-tables.md", "../docs/reliability.md", "../CONTRIBUTING.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range regexp.MustCompile("go run \\./cmd/lab( [a-z][^#)`\n]*)").FindAllStringSubmatch(string(text), -1) {
			commandLines++
			parse(t, arguments(t, line[1])...)
		}
		if name != "README.md" {
			continue // names other programs' flags, too
		}
		for _, flag := range regexp.MustCompile("`(--[a-z-]+)").FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(help, flag[1]) {
				t.Errorf("%s names %s, which no command has", name, flag[1])
			}
		}
	}
	if commandLines < 15 {
		t.Errorf("only %d command lines were found", commandLines)
	}
}

// arguments splits a command line. FILE and files in /tmp, which the reader makes, are
// made here.
func arguments(t *testing.T, line string) (args []string) {
	t.Helper()
	for _, arg := range strings.Fields(line) {
		if strings.HasPrefix(arg, "/tmp/") || arg == "FILE" {
			arg = filepath.Join(t.TempDir(), filepath.Base(arg))
			if err := os.WriteFile(arg, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		args = append(args, strings.Trim(arg, "'"))
	}
	return args
}

// parse has the program read a command line, and returns the help that it
// prints.
func parse(t *testing.T, args ...string) string {
	t.Helper()
	var out strings.Builder
	parser, err := newParser(kong.Writers(&out, io.Discard), kong.Exit(func(int) {}))
	if err == nil {
		_, err = parser.Parse(args)
	}
	if err != nil {
		t.Errorf("lab %s: %v", strings.Join(args, " "), err)
	}
	return out.String()
}

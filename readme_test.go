package coppice_test

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
)

// documents are what people read first.
var documents = []string{
	"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md", "docs/branch-safety.md", "docs/concepts.md", "docs/operating.md",
	"docs/events.md", "docs/page.md", "docs/performance.md", "docs/performance-tables.md", "docs/reliability.md", "docs/replies.md", "docs/summaries.md", "docs/tour.md",
}

// The manual explains all flags of these groups of serve's help, and all figures
// that begin like these. What is explained anew is added here.
var (
	explainedFlags   = []string{"Flags:", "Logs", "Database", "Contexts and compactions", "Models", "Replies", "Limits"}
	explainedFigures = []string{"coppice_http_", "coppice_append", "coppice_pool_", "coppice_compaction", "coppice_replies"}
)

// TestDocuments holds the documents true: what they tell to type works, and
// what they show is what comes.
func TestDocuments(t *testing.T) {
	t.Parallel()
	program := filepath.Join(t.TempDir(), "coppice")
	if out, err := exec.Command("go", "build", "-o", program, "./cmd/coppice").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	t.Run("tour", func(t *testing.T) { tour(t, program) })
	t.Run("tour over REST", func(t *testing.T) {
		t.Parallel()
		follow(t, "docs/tour.md", newShell(t, program, "DATABASE_URL="+dbtest.URL(t)))
	})
	t.Run("library", libraryExample)
	t.Run("commands", func(t *testing.T) { commandLines(t, program) })
	t.Run("flags", func(t *testing.T) { flagsAndVariables(t, program) })
	t.Run("messages", errorMessages)
	t.Run("links", links)
	t.Run("folders", folders)
}

// tour carries out the commands of the README one after the other, and
// compares what they print. Then it looks whether the manual names the server's
// figures.
func tour(t *testing.T, program string) {
	t.Parallel()
	s := newShell(t, program, "DATABASE_URL="+dbtest.URL(t))
	follow(t, "README.md", s)
	told := manual(t)
	for name := range names(s.run("curl -s http://127.0.0.1:8787/metrics"), `(?m)^# TYPE (coppice_\w+)`) {
		if slices.ContainsFunc(explainedFigures, func(start string) bool { return strings.HasPrefix(name, start) }) && !strings.Contains(told, "`"+name) {
			t.Errorf("no file in docs/ names the figure %s", name)
		}
	}
}

// follow carries out the commands of a document one after the other, and
// compares what they print.
func follow(t *testing.T, document string, s *shell) {
	t.Helper()
	for _, step := range transcript(t, document) {
		got := s.run(step.command)
		if strings.Contains(step.command+" ", " serve ") {
			step.output = logLines(step.output)
		}
		if !matches(got, step.output) {
			t.Fatalf("%s: $ %s\ngot:\n%s\n%s has:\n%s", document, step.command, got, document, step.output)
		}
	}
}

// logLines are lines of a log between which there may be others. Those on what
// the test's server doesn't do are left out: it has no Postgres to start.
func logLines(shown string) string {
	shown = regexp.MustCompile(`(?m)^.*(Postgres|migrated).*\n`).ReplaceAllString(shown, "")
	return "…\n" + strings.ReplaceAll(shown, "\n", "\n…\n")
}

// libraryExample runs the README's program, and compares what it prints with
// the block after it.
func libraryExample(t *testing.T) {
	t.Parallel()
	blocks := fences(read(t, "README.md"))
	i := slices.IndexFunc(blocks, func(b fence) bool { return b.language == "go" })
	if i < 0 || i+1 == len(blocks) || blocks[i+1].language != "text" {
		t.Fatal("README.md has no Go program with its output after it")
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(blocks[i].text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "run", file)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+dbtest.URL(t))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go run: %v\n%s", err, stderr.Bytes())
	}
	if got, want := string(out), blocks[i+1].text; !matches(got, want) {
		t.Errorf("got:\n%s\nREADME.md has:\n%s", got, want)
	}
}

// commandLines asks the program for help on every command line of the
// documents, which it refuses where it doesn't know a flag or an argument.
func commandLines(t *testing.T, program string) {
	t.Parallel()
	for _, name := range documents {
		for _, block := range fences(read(t, name)) {
			if block.language != "sh" && block.language != "console" {
				continue
			}
			for _, args := range coppiceCommands(block.text) {
				if out, err := exec.Command(program, append([]string{"--help"}, args...)...).CombinedOutput(); err != nil {
					t.Errorf("%s: coppice %s: %v\n%s", name, strings.Join(args, " "), err, out)
				}
			}
		}
	}
}

// flagsAndVariables looks whether the flags and variables that the documents
// name are there, and whether the manual names those of serve.
func flagsAndVariables(t *testing.T, program string) {
	t.Parallel()
	var all strings.Builder
	for _, command := range []string{"serve", "import", "export", "list", "tree", "show", "search", "context", "explain", "compact", "compactions", "prune",
		"keys create", "keys list", "keys revoke", "migrate", "upgrade", "version"} {
		all.WriteString(help(t, program, strings.Fields(command)...))
	}
	const flag = `--[a-z][a-z-]+`
	const flagOrVariable = flag + `|\bCOPPICE_[A-Z_]+\b`
	there := names(all.String(), flagOrVariable)
	for _, name := range documents {
		for _, code := range inlineCode(read(t, name)) {
			if !regexp.MustCompile(`^(--|(\./)?coppice |COPPICE_)`).MatchString(code) {
				continue // of another program
			}
			for given := range names(code, flagOrVariable) {
				if !there[given] && !strings.HasPrefix(given, "COPPICE_TEST_") {
					t.Errorf("%s names %s, which no command has", name, given)
				}
			}
		}
	}
	told := manual(t)
	for _, group := range explainedFlags {
		_, text, ok := strings.Cut(help(t, program, "serve"), "\n\n"+group+"\n")
		if !ok {
			t.Errorf("coppice serve --help has no group %q", group)
		}
		if end := regexp.MustCompile(`\n\n\w`).FindStringIndex(text); end != nil {
			text = text[:end[0]] // where the next group begins
		}
		for given := range names(text, flag) {
			if given != "--help" && !strings.Contains(told, "`"+given) {
				t.Errorf("no file in docs/ names the flag %s of coppice serve", given)
			}
		}
	}
}

// manual is all text in docs/.
func manual(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("docs: %d files, %v", len(files), err)
	}
	var text strings.Builder
	for _, file := range files {
		text.WriteString(read(t, file))
	}
	return text.String()
}

func help(t *testing.T, program string, command ...string) string {
	t.Helper()
	out, err := exec.Command(program, append(command, "--help")...).Output()
	if err != nil {
		t.Fatalf("coppice %v --help: %v", command, err)
	}
	return string(out)
}

// errorMessages looks for the headings under "Troubleshooting" in the program's
// source. What changes from case to case stands as "…" in them.
func errorMessages(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	for _, folder := range []string{"app", "cmd", "db", "keys", "server", "tree", "transfer"} {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source.WriteString(read(t, path))
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	_, troubles, _ := strings.Cut(read(t, "docs/operating.md"), "\n## Troubleshooting\n")
	headings := regexp.MustCompile("\\*\\*`([^`]+)`\\*\\*").FindAllStringSubmatch(troubles, -1)
	if len(headings) == 0 {
		t.Fatal("docs/operating.md has no messages under Troubleshooting")
	}
	for _, heading := range headings {
		for piece := range strings.SplitSeq(heading[1], "…") {
			piece = strings.TrimSpace(piece)
			if !strings.Contains(source.String(), piece) {
				t.Errorf("docs/operating.md: no message of the program has %q", piece)
			}
		}
	}
}

// links looks whether files and headings that the documents link to are there.
func links(t *testing.T) {
	t.Parallel()
	for _, name := range documents {
		for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(read(t, name), -1) {
			target, anchor, _ := strings.Cut(link[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			path := name
			if target != "" {
				path = filepath.Join(filepath.Dir(name), target)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				if info, statErr := os.Stat(path); statErr != nil || !info.IsDir() {
					t.Errorf("%s links to %s: %v", name, link[1], err)
				}
				continue
			}
			if anchor != "" && !anchors(string(text))[anchor] {
				t.Errorf("%s links to %s, a heading that isn't there", name, link[1])
			}
		}
	}
}

// anchors are a document's headings as GitHub turns them into link targets.
func anchors(markdown string) map[string]bool {
	found := map[string]bool{}
	drop := regexp.MustCompile(`[^\p{L}\p{N}\- ]`)
	for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(markdown, -1) {
		found[strings.ReplaceAll(drop.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return found
}

// folders looks whether the README names every folder of the repository.
func folders(t *testing.T) {
	t.Parallel()
	text := read(t, "README.md")
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() && e.Name()[0] != '.' && e.Name() != "node_modules" && !strings.Contains(text, e.Name()+"/") {
			t.Errorf("README.md doesn't say what %s/ is for", e.Name())
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// names are what a pattern, or its group, finds in a text.
func names(text, pattern string) map[string]bool {
	found := map[string]bool{}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found[m[len(m)-1]] = true
	}
	return found
}

// request carries out a curl command of the few options that the documents use.
func request(t *testing.T, args []string, from, to string) string {
	t.Helper()
	method, url, header := http.MethodGet, "", http.Header{}
	var body io.Reader
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-s":
		case "-H", "-X", "--json":
			if i++; i == len(args) {
				t.Fatalf("curl %q ends early", args)
			}
			switch value := args[i]; args[i-1] {
			case "-H":
				name, value, _ := strings.Cut(value, ": ")
				header.Set(name, value)
			case "-X":
				method = value
			case "--json":
				if !json.Valid([]byte(value)) {
					t.Fatalf("curl sends what is no JSON: %s", value)
				}
				header.Set("Content-Type", "application/json")
				body = strings.NewReader(value)
				if method == http.MethodGet {
					method = http.MethodPost
				}
			}
		default:
			url = strings.Replace(args[i], from, to, 1)
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = header
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode >= 300 {
		t.Fatalf("curl %q: status %d\n%s", args, res.StatusCode, text)
	}
	return string(text)
}

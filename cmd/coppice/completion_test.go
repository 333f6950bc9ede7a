package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// What stands in the place of the last word.
func TestComplete(t *testing.T) {
	t.Parallel()
	env := []string{"DATABASE_URL=" + dbtest.URL(t)}
	mustRun(t, env, "import", hedgeFile)
	id := strings.Fields(strings.SplitN(mustRun(t, env, "show", "A hedge for the shade"), "\n", 2)[0])
	hedge := id[len(id)-1]
	for line, want := range map[string]string{
		"ch":                   "chat",
		"keys ":                "create list revoke",
		"show --li":            "--limit",
		"list --log-format j":  "json",
		"show --limit 3 hedge": hedge,
		"tree " + hedge[:6]:    hedge,
		"tree --tenant other ": "",
		"show " + hedge + " ":  "",
		"search -c shade":      hedge,
		"completion ":          "bash zsh fish",
	} {
		out := mustRun(t, env, append([]string{"complete", "--"}, strings.Split(line, " ")...)...)
		var words []string
		for l := range strings.Lines(out) {
			word, _, tab := strings.Cut(strings.TrimSuffix(l, "\n"), "\t")
			check.That(t, tab, "%q: a line without a tab: %q", line, l)
			words = append(words, word)
		}
		check.Equal(t, line, strings.Join(words, " "), want)
	}
	if out := mustRun(t, env, "complete"); !strings.Contains(out, "\nchat\tTalk to a model") || strings.Contains(out, "complete\t") {
		t.Errorf("without words: %s", out)
	}
}

// Completion starts no Postgres, and tells no errors.
func TestCompleteWithoutDatabase(t *testing.T) {
	t.Parallel()
	for _, env := range [][]string{{"COPPICE_DATA_DIR=" + t.TempDir()}, {"DATABASE_URL=postgres://ada:secret@127.0.0.1:1/none"}} {
		if r := runProgram(t, env, nil, "complete", "--", "tree", ""); r.code != 0 || r.stdout+r.stderr != "" {
			t.Errorf("%v: exit code %d, %q %q", env, r.code, r.stdout, r.stderr)
		}
	}
}

// The scripts are read by the shells that are there, and bash completes by its own.
func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	path := check.Must(programPath())(t)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := mustRun(t, nil, "completion", shell)
		if program, err := exec.LookPath(shell); err == nil {
			cmd := exec.Command(program, "-n")
			cmd.Stdin = strings.NewReader(script)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", shell, err, out)
			}
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	cmd := exec.Command(bash, "-c", `source <("$1" completion bash); COMP_WORDS=("$1" sh --li); COMP_CWORD=1; COMP_WORDS=("$1" sho); _coppice; printf '%s\n' "${COMPREPLY[@]}"; COMP_WORDS=("$1" show --li); COMP_CWORD=2; _coppice; printf '%s\n' "${COMPREPLY[@]}"`, "bash", path)
	cmd.Env = environment()
	out, err := cmd.CombinedOutput()
	check.That(t, err == nil && string(out) == "show\n--limit\n", "bash: %v\n%s", err, out)
}

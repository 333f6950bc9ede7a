package coppice_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestReliabilityNamesItsTests holds that the tests in docs/reliability.md exist, and
// that its command runs all those of the attacks from outside.
func TestReliabilityNamesItsTests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	there, function := map[string]bool{}, regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && d.Name() == "node_modules":
			return fs.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		for _, m := range function.FindAllSubmatch(source, -1) {
			there[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`")
	for _, m := range named.FindAllStringSubmatch(string(page), -1) {
		if !there[m[1]] {
			t.Errorf("there is no %s", m[1])
		}
	}
	_, attacks, _ := strings.Cut(string(page), "## Attacks from outside")
	attacks, _, _ = strings.Cut(attacks, "\n## ")
	command := regexp.MustCompile(`go test \./\.\.\. -run '([^']+)'`).FindStringSubmatch(attacks)
	if command == nil {
		t.Fatal("the command is not there")
	}
	run := regexp.MustCompile(command[1])
	for _, m := range named.FindAllStringSubmatch(attacks, -1) {
		if !run.MatchString(m[1]) {
			t.Errorf("the command doesn't run %s", m[1])
		}
	}
}

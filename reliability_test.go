package coppice_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

// TestReliabilityNamesItsTests holds that the tests in docs/reliability.md exist.
func TestReliabilityNamesItsTests(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/reliability.md")
	check.NoError(t, err)
	exists, function := map[string]bool{}, regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`)
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
			exists[string(m[1])] = true
		}
		return err
	})
	check.NoError(t, err)
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(string(page), -1)
	check.That(t, len(named) >= 13,
		"docs/reliability.md names %d tests, and each of the 13 promises has one", len(named))
	for _, m := range named {
		check.That(t, exists[m[1]],
			"docs/reliability.md names %s, and no such test exists: name another test of the promise", m[1])
	}
}

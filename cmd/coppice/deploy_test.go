package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

// others are variables of the manifests that belong to no flag.
var others = []string{"GOMEMLIMIT"}

var (
	argsLine     = regexp.MustCompile(`(?m)^ *args: \[(.*)\]$`)
	variableLine = regexp.MustCompile(`(?m)^ *- name: ([A-Z_]+)$`)
)

// What the manifests run are commands of the program, and what they set are
// variables that those commands know.
func TestManifestsNameWhatThereIs(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../deploy/*.yaml")
	check.Need(t, err == nil && len(files) != 0, "no manifest: %v", err)
	var cli commands
	parser := check.Must(newParser(&cli))(t)
	for _, file := range files {
		content := check.Must(os.ReadFile(file))(t)
		known := slices.Clone(others)
		for _, args := range argsLine.FindAllStringSubmatch(string(content), -1) {
			parsed, err := parser.Parse(strings.Split(args[1], ", "))
			if err != nil {
				t.Errorf("%s: coppice %s: %v", file, args[1], err)
				continue
			}
			for _, f := range parsed.Flags() {
				known = append(known, f.Envs...)
			}
		}
		variables := variableLine.FindAllStringSubmatch(string(content), -1)
		check.That(t, len(variables) != 0, "%s sets no variable", file)
		for _, v := range variables {
			check.That(t, slices.Contains(known, v[1]),
				"%s sets %s, which none of its commands knows", file, v[1])
		}
	}
}

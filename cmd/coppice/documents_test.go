package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/server"
	"github.com/coppice-chat/coppice/server/openai/wire"
)

// TestGeneratedDocuments compares the tables in docs/ that follow from the
// program with the program: the flags, and the codes of errors. With -update it
// writes them. A table stands between <!-- begin NAME --> and <!-- end -->; the
// text around it is written by hand.
func TestGeneratedDocuments(t *testing.T) {
	t.Parallel()
	for name, tables := range map[string]map[string]string{
		"configuration.md": flagTables(t),
		"errors.md":        codeTables(t),
	} {
		path := filepath.Join(docs, name)
		text := check.Must(os.ReadFile(path))(t)
		found := map[string]bool{}
		got := regexp.MustCompile(`(?s)<!-- begin ([^>]+) -->\n.*?<!-- end -->`).ReplaceAllStringFunc(string(text), func(old string) string {
			first, _, _ := strings.Cut(old, "\n")
			table := strings.TrimSuffix(strings.TrimPrefix(first, "<!-- begin "), " -->")
			check.That(t, tables[table] != "", "%s: nothing generates %q", name, table)
			found[table] = true
			return first + "\n\n" + tables[table] + "\n<!-- end -->"
		})
		for _, table := range slices.Sorted(maps.Keys(tables)) {
			check.That(t, found[table], "%s lacks <!-- begin %s -->", name, table)
		}
		switch {
		case got == string(text):
		case *check.Update:
			check.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		default:
			t.Errorf("%s is not up to date: go test ./cmd/coppice -run TestGeneratedDocuments -update", path)
		}
	}
}

// flagTables are a table for each group of serve's flags.
func flagTables(t *testing.T) map[string]string {
	t.Helper()
	var cli commands
	parser := check.Must(newParser(&cli))(t)
	tables := map[string]string{}
	for _, command := range parser.Model.Leaves(true) {
		if strings.TrimPrefix(command.Path(), "coppice ") != "serve" {
			continue
		}
		for _, f := range slices.Concat(command.AllFlags(true)...) {
			if f.Name == "help" {
				continue
			}
			meaning, standard := meaningOf(t, f)
			group := "Server"
			if f.Group != nil {
				group = f.Group.Key
			}
			if tables[group] == "" {
				tables[group] = "| flag | default | meaning |\n|---|---|---|\n"
			}
			if own := "COPPICE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")); f.Envs[0] != own {
				t.Errorf("--%s has the variable %s, and the page says that it has %s", f.Name, f.Envs[0], own)
			}
			also := ""
			if len(f.Envs) > 1 {
				also = " Also `" + strings.Join(f.Envs[1:], "`, `") + "`."
			}
			tables[group] += fmt.Sprintf("| `%s` | %s | %s |\n", flagOf(f), standard, meaning+also)
		}
	}
	return tables
}

// flagOf is a flag as one types it, with the word for its value.
func flagOf(f *kong.Flag) string {
	name := "--" + f.Name
	if f.Tag.Negatable != "" {
		name = "--[no-]" + f.Name
	}
	if f.Short != 0 {
		name = "-" + string(f.Short) + ", " + name
	}
	if f.IsBool() {
		return name
	}
	return name + "=" + strings.ReplaceAll(f.FormatPlaceHolder(), "|", "\\|")
}

// standardIn is where a flag's help names its default.
var standardIn = regexp.MustCompile(` \(([^\s()]+)\)`)

// meaningOf is a flag's help without its default, and the default with its unit.
func meaningOf(t *testing.T, f *kong.Flag) (meaning, standard string) {
	t.Helper()
	meaning = strings.ReplaceAll(f.Help, "|", "\\|")
	standard = f.Default
	if at := standardIn.FindAllStringSubmatchIndex(meaning, -1); len(at) > 0 {
		last := at[len(at)-1]
		named := meaning[last[2]:last[3]]
		check.That(t, standard == "" || named == standard || f.FormatPlaceHolder() == "DIR",
			"the help of --%s names the default %s, and it is %s", f.Name, named, standard)
		meaning, standard = meaning[:last[0]]+meaning[last[1]:], named
	}
	switch {
	case f.Name == "data-dir":
		return meaning, "`~/.local/share/coppice`; of root `/var/lib/coppice`"
	case f.Name == "cache-dir":
		return meaning, "`~/.cache/coppice`; of root `/var/cache/coppice`"
	case strings.HasSuffix(f.Name, "bytes") && standard != "":
		n, err := strconv.Atoi(standard)
		check.That(t, err == nil && n%(1<<20) == 0, "--%s has the default %s", f.Name, standard)
		if n%(1<<30) == 0 {
			return meaning, fmt.Sprintf("%d GiB", n>>30)
		}
		return meaning, fmt.Sprintf("%d MiB", n>>20)
	}
	return meaning, standard
}

// codeTables are the codes of errors by their status, "codes", and "OpenAI" for
// those that OpenAI's clients see otherwise. server.TestEveryCodeIsDocumented
// holds the descriptions in openapi.yaml to the codes that there are.
func codeTables(t *testing.T) map[string]string {
	t.Helper()
	byStatus := map[int][]string{}
	others := map[string][]string{}
	for _, m := range regexp.MustCompile("(?m)^ +\\| `([a-z0-9_]+)` \\| (\\d+) \\| (.+) \\|$").FindAllStringSubmatch(string(server.Spec), -1) {
		code, meaning := m[1], m[3]
		status := check.Must(strconv.Atoi(m[2]))(t)
		byStatus[status] = append(byStatus[status], fmt.Sprintf("- `%s`: %s\n", code, meaning))
		seen, _, _, _ := server.Problem{Status: status, Code: server.Code(code)}.ForSDKs()
		if e := wire.NewError(seen, code, "", ""); *e.Code != code || seen != status {
			as := fmt.Sprintf("%d `%s`", seen, *e.Code)
			others[as] = append(others[as], code)
		}
	}
	var out strings.Builder
	for _, status := range slices.Sorted(maps.Keys(byStatus)) {
		fmt.Fprintf(&out, "**%d**\n\n%s\n", status, strings.Join(byStatus[status], ""))
	}
	other := "| OpenAI's | Coppice's |\n|---|---|\n"
	for _, as := range slices.Sorted(maps.Keys(others)) {
		other += fmt.Sprintf("| %s | `%s` |\n", as, strings.Join(others[as], "`, `"))
	}
	return map[string]string{"codes": strings.TrimSuffix(out.String(), "\n"), "OpenAI": other}
}

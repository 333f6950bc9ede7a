package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"github.com/coppice-chat/coppice/internal/check"
)

// A file of settings stands below the environment, which stands below the flags. A name
// that no flag has is refused in the file, and in the environment where it is a slip.
func TestConfig(t *testing.T) {
	t.Setenv("COPPICE_RATE_BURST", "12")
	for name, test := range map[string]struct {
		file, env string
		args      []string
		conns     int32
		refused   string
	}{
		"default":                   {conns: 20},
		"file":                      {file: "# comment\n\nCOPPICE_MAX_CONNS=\"40\"\nCOPPICE_RATE_BURST=99\n", conns: 40},
		"environment":               {file: "COPPICE_MAX_CONNS=40", env: "COPPICE_MAX_CONNS=50", conns: 50},
		"flag":                      {file: "COPPICE_MAX_CONNS=40", env: "COPPICE_MAX_CONNS=50", args: []string{"--max-conns=60"}, conns: 60},
		"slip in the file":          {file: "COPPICE_MAXCONNS=40", refused: "Did you mean COPPICE_MAX_CONNS?"},
		"nothing known":             {file: "POSTGRES_PASSWORD=x", refused: "POSTGRES_PASSWORD, which no flag has"},
		"no line":                   {file: "COPPICE_MAX_CONNS", refused: "line 1: a line is NAME=VALUE"},
		"slip in the environment":   {env: "COPPICE_MAX_CON=40", refused: "Did you mean COPPICE_MAX_CONNS?"},
		"others' own variable":      {env: "COPPICE_SERVICE_HOST=10.0.0.1", conns: 20},
		"value that a flag refuses": {file: "COPPICE_MAX_CONNS=many", refused: "--max-conns"},
	} {
		t.Run(name, func(t *testing.T) {
			if name, value, set := strings.Cut(test.env, "="); set {
				t.Setenv(name, value)
			}
			path := filepath.Join(t.TempDir(), "coppice.env")
			check.NoError(t, os.WriteFile(path, []byte(test.file), 0o600))
			var cli commands
			file, err := readConfig([]string{"serve", "--config", path})
			if err == nil {
				parser := check.Must(newParser(&cli, kong.Resolvers(file)))(t)
				_, err = parser.Parse(append([]string{"serve"}, test.args...))
			}
			switch {
			case test.refused != "":
				check.That(t, err != nil && strings.Contains(err.Error(), test.refused),
					"error %v, want %q", err, test.refused)
			case err != nil || cli.Serve.MaxConns != test.conns || cli.Serve.RateBurst != 12:
				t.Errorf("%d connections, burst %d, %v", cli.Serve.MaxConns, cli.Serve.RateBurst, err)
			}
		})
	}
	if _, err := readConfig([]string{"serve", "--config=nowhere.env"}); err == nil {
		t.Error("a file that isn't there is read")
	}
}

func TestStandardDir(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	system := filepath.Join(t.TempDir(), "lib")
	fallback := filepath.Join(home, ".local/share", "coppice")
	if os.Geteuid() == 0 {
		fallback = filepath.Join(system, "coppice")
	}
	for value, want := range map[string]string{
		"":             fallback,
		"relative/dir": fallback,
		"/srv/data":    "/srv/data/coppice",
	} {
		t.Setenv("XDG_DATA_HOME", value)
		got := standardDir("XDG_DATA_HOME", ".local/share", system)
		check.That(t, got == want, "with XDG_DATA_HOME %q: %s, want %s", value, got, want)
	}
}

// Prices stand behind the last equals sign, because names may have one.
func TestModelPrice(t *testing.T) {
	t.Parallel()
	f := priceFlags{ModelPrice: []string{"gpt-4o=2.5,10", "my=own=0,0.25"}}
	prices, err := f.prices()
	if err != nil || len(prices) != 2 || prices["gpt-4o"].Prompt != 2.5 || prices["gpt-4o"].Completion != 10 || prices["my=own"].Completion != 0.25 {
		t.Errorf("%v, %v", prices, err)
	}
}

func TestRetention(t *testing.T) {
	t.Parallel()
	day := 24 * time.Hour
	for _, tt := range []struct {
		values []string
		want   map[string]time.Duration // nil where they are refused
	}{
		{nil, map[string]time.Duration{}},
		{[]string{"90d", "acme=36h", "a=b=1d"}, map[string]time.Duration{"": 90 * day, "acme": 36 * time.Hour, "a=b": day}},
		{[]string{"90d", "30d"}, nil},
		{[]string{"acme=1d", "acme=2d"}, nil},
		{[]string{"=1d"}, nil},
		{[]string{"0d"}, nil},
		{[]string{"-1h"}, nil},
		{[]string{"36501d"}, nil},
		{[]string{"acme"}, nil},
	} {
		got, err := retention(tt.values)
		check.That(t, (err == nil) == (tt.want != nil) && (err != nil || maps.Equal(got, tt.want)),
			"--retention %q: %v, %v, want %v", tt.values, got, err, tt.want)
	}
}

// others are variables of the manifests that belong to no flag.
var others = []string{"GOMEMLIMIT"}

var (
	argsLine     = regexp.MustCompile(`(?m)^ *args: \[(.*)\]$`)
	variableLine = regexp.MustCompile(`(?m)^ *- name: ([A-Z_]+)$`)
)

// The manifests run commands of the program, and set variables that these know.
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

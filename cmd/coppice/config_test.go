package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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

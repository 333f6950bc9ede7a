package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/coppice-chat/coppice/internal/terminal"
)

// A configFile has values for flags, by the variables of their names. Its lines are
// NAME=VALUE, as systemd and Docker read them: empty lines and those that begin with #
// say nothing, and a value may stand in quotes.
type configFile struct {
	path   string
	values map[string]string
}

// configFlags name the file of settings.
type configFlags struct {
	Config string `type:"path" placeholder:"FILE" help:"File of settings; without it ~/.config/coppice/coppice.env, of root /etc/coppice/coppice.env, where there is one."`
}

// readConfig reads the file of settings that the arguments name, or the environment,
// or else the usual one if it is there. Kong needs it before it reads the arguments.
func readConfig(args []string) (*configFile, error) {
	file := &configFile{path: os.Getenv("COPPICE_CONFIG"), values: map[string]string{}}
	for i, arg := range args {
		if path, ok := strings.CutPrefix(arg, "--config="); ok {
			file.path = path
		} else if arg == "--config" && i+1 < len(args) {
			file.path = args[i+1]
		} else if arg == "--" {
			break
		}
	}
	named := file.path != ""
	file.path = cmp.Or(file.path, defaultConfig())
	f, err := os.Open(file.path)
	if err != nil {
		if !named {
			err = nil
		}
		return file, err
	}
	defer f.Close()
	return file, file.read(f)
}

func defaultConfig() string {
	return filepath.Join(standardDir("XDG_CONFIG_HOME", ".config", "/etc"), "coppice.env")
}

func (c *configFile) read(r io.Reader) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return fmt.Errorf("%s, line %d: a line is NAME=VALUE, as COPPICE_ADDR=127.0.0.1:8787", c.path, n)
		}
		value = strings.TrimSpace(value)
		if last := len(value) - 1; last > 0 && (value[0] == '"' || value[0] == '\'') && value[last] == value[0] {
			value = value[1:last]
		}
		c.values[strings.TrimSpace(name)] = value
	}
	return lines.Err()
}

// Validate refuses names that belong to no flag, in the file and in the environment:
// a setting that is misspelt would be without effect, and nobody would know.
func (c *configFile) Validate(app *kong.Application) error {
	known := map[string]bool{}
	_ = kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			for _, name := range flag.Envs {
				known[name] = true
			}
		}
		return next(nil)
	})
	for name := range c.values {
		if !known[name] {
			return fmt.Errorf("%s sets %s, which no flag has for a variable%s", c.path, name, didYouMean(name, known))
		}
	}
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if near := didYouMean(name, known); strings.HasPrefix(name, "COPPICE_") && !known[name] && near != "" {
			return fmt.Errorf("the environment sets %s, which no flag has for a variable%s", name, near)
		}
	}
	return nil
}

// didYouMean names the known variable that one is a slip away from: two letters that
// are wrong, missing or too many.
func didYouMean(name string, known map[string]bool) string {
	for candidate := range known {
		if slips(name, candidate) <= 2 {
			return ". Did you mean " + candidate + "?"
		}
	}
	return ""
}

// slips is the edit distance of two names (Wagner and Fischer, 1974).
func slips(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// Resolve gives a flag the file's value where neither the command line nor the
// environment has one.
func (c *configFile) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	value, from := c.valueOf(flag)
	if from != c.path {
		return nil, nil
	}
	return value, nil
}

// valueOf is the value of a flag that the command line doesn't give, and where it
// comes from.
func (c *configFile) valueOf(flag *kong.Flag) (value, from string) {
	for _, name := range flag.Envs {
		if value, ok := os.LookupEnv(name); ok {
			return value, fromEnvironment
		}
	}
	for _, name := range flag.Envs {
		if value, ok := c.values[name]; ok {
			return value, c.path
		}
	}
	return flag.Default, fromDefault
}

const (
	fromEnvironment = "environment"
	fromDefault     = "default"
)

type configCommand struct {
	outputFlags
}

// setting is what is in force for a flag of serve.
type setting struct {
	Variable string `json:"variable"`
	Value    string `json:"value"`
	From     string `json:"from"` // "environment", "default" or the path of the file
}

// Run prints a file of settings: what is set, and as comments the defaults.
func (cmd *configCommand) Run(out *terminal.Console, file *configFile, model *kong.Application) error {
	var groups []string // in their order
	in := map[string][]setting{}
	for _, command := range model.Children {
		if command.Name != "serve" {
			continue
		}
		for _, flag := range slices.Concat(command.AllFlags(true)...) {
			if len(flag.Envs) == 0 || flag.Name == "config" {
				continue
			}
			group := "Server"
			if flag.Group != nil {
				group = flag.Group.Title
			}
			if in[group] == nil {
				groups = append(groups, group)
			}
			value, from := file.valueOf(flag)
			if isSecret(flag.Envs[0]) && value != "" {
				value = "…"
			}
			in[group] = append(in[group], setting{flag.Envs[0], value, from})
		}
	}
	if cmd.JSON {
		all := []setting{}
		for _, group := range groups {
			all = append(all, in[group]...)
		}
		return printJSON(out, all)
	}
	for i, group := range groups {
		if i > 0 {
			out.Line("")
		}
		out.Line("# %s", group)
		for _, s := range in[group] {
			if s.From == fromDefault {
				out.Line("#%s=%s", s.Variable, s.Value)
			} else {
				out.Line("# from %s\n%s=%s", s.From, s.Variable, s.Value)
			}
		}
	}
	return nil
}

// isSecret tells whether a variable's value is not for the eyes of others: keys, secrets, and
// URLs of databases, which may have a password.
func isSecret(variable string) bool {
	return strings.HasSuffix(variable, "_KEY") || strings.HasSuffix(variable, "_SECRET") || strings.HasSuffix(variable, "DATABASE_URL")
}

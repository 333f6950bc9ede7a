package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// Every flag can be given in the environment.
func TestEveryFlagHasAVariable(t *testing.T) {
	t.Parallel()
	var cli commands
	parser, err := newParser(&cli)
	if err != nil {
		t.Fatal(err)
	}
	flags := 0
	var visit func(*kong.Node)
	visit = func(n *kong.Node) {
		for _, f := range n.Flags {
			if f.Name == "help" {
				continue
			}
			flags++
			want := "COPPICE_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
			if len(f.Envs) == 0 || f.Envs[0] != want {
				t.Errorf("--%s of %s has the variables %v, want %s", f.Name, n.FullPath(), f.Envs, want)
			}
			if f.Help == "" {
				t.Errorf("--%s of %s has no help", f.Name, n.FullPath())
			}
		}
		for _, child := range n.Children {
			visit(child)
		}
	}
	visit(parser.Model.Node)
	if flags == 0 {
		t.Error("no flag was found")
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
		if got := standardDir("XDG_DATA_HOME", ".local/share", system); got != want {
			t.Errorf("with XDG_DATA_HOME %q: %s, want %s", value, got, want)
		}
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

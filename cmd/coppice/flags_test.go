package main

import (
	"os"
	"path/filepath"
	"testing"
)

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

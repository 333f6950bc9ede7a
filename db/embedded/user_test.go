//go:build linux || darwin || freebsd || netbsd || openbsd

package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestRoot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("not running as root: there is no user to drop to")
	}
	cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
	s := mustStart(t, cfg)
	fi, err := os.Stat(filepath.Join(cfg.DataDir, "cluster", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	uid, gid := owner(fi)
	if uid == 0 || gid == 0 || uid != s.user.uid {
		t.Errorf("the server runs as user %d, group %d, want %+v", uid, gid, s.user)
	}
	if process, err := os.Stat(fmt.Sprintf("/proc/%d", s.postmaster.cmd.Process.Pid)); err == nil { // where there is a /proc
		if uid, _ := owner(process); uid != s.user.uid {
			t.Errorf("the server's process belongs to user %d, want %+v", uid, s.user)
		}
	}
	query(t, s.URL(), "CREATE TABLE kept AS SELECT 7 AS n")
	mustStop(t, s)

	// A cluster that came back from a backup as root's.
	err = filepath.WalkDir(filepath.Join(cfg.DataDir, "cluster"), func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, 0, 0))
	})
	if err != nil {
		t.Fatal(err)
	}
	s = mustStart(t, cfg)
	if got := query(t, s.URL(), "SELECT n FROM kept"); got != "7" {
		t.Errorf("the table holds %q, want 7", got)
	}
}

func TestRootInClosedFolder(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("not running as root: there is no user to drop to")
	}
	closed := filepath.Join(tempDir(t), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), testConfig(t, filepath.Join(closed, "more", "data")))
	if err == nil {
		t.Fatal("started in a folder that the server's user can't enter")
	}
	for _, want := range []string{closed + " (drwx------)", "--data-dir", `"postgres"`} {
		if want == `"postgres"` && strings.Contains(err.Error(), `"nobody"`) {
			continue // a system without the user postgres
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
	if entries, err := os.ReadDir(closed); err != nil || len(entries) > 0 {
		t.Errorf("the closed folder was changed: %v, %v", entries, err)
	}

	// A closed cache is no obstacle: binaries go where the user gets at them.
	cfg := testConfig(t, tempDir(t))
	cfg.CacheDir = filepath.Join(closed, "cache")
	dir, user, err := openDataDir(cfg.DataDir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := finder{cfg: cfg, dir: dir, user: user, log: cfg.Logger}.cacheDir()
	if want := filepath.Join(cfg.DataDir, "binaries"); err != nil || got != want {
		t.Errorf("the cache is %s, %v, want %s", got, err, want)
	}
}

// A folder that can't be made, as in a container whose user owns none, is an error
// that names the ways out.
func TestDataDirThatCannotBeMade(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Config{DataDir: filepath.Join(file, "coppice")})
	if err == nil || !strings.Contains(err.Error(), "DATABASE_URL") || !strings.Contains(err.Error(), "--data-dir") {
		t.Error(err)
	}
}

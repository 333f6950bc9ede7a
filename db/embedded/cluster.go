package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// socketPort is part of the socket's file name; nothing listens on TCP.
	socketPort = 5432

	// initPrefix begins the names of clusters that initdb has not finished.
	initPrefix = "initdb-"

	// tempSocketPrefix begins the names of temporary socket folders.
	tempSocketPrefix = "coppice-"
)

// version reads the major version that made the cluster; "" if there is none yet.
func (d dataDir) version() (string, error) {
	b, err := os.ReadFile(filepath.Join(d.cluster(), "PG_VERSION"))
	if err == nil {
		return strings.TrimSpace(string(b)), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	entries, err := os.ReadDir(d.cluster())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if len(entries) > 0 {
		return "", fmt.Errorf("%s is not empty, and has no PG_VERSION file as a Postgres cluster must: "+
			"restore it from a backup, or choose another directory (--data-dir)", d.cluster())
	}
	return "", nil
}

// initCluster makes the cluster. The caller holds the server lock, so whatever an
// earlier attempt left behind is dead; and it never was a cluster with data,
// because only a finished one gets the name under which servers start.
func initCluster(ctx context.Context, dir dataDir, bin binaries, user *account, serverLock *os.File, noSync bool) error {
	if err := removeLeftovers(string(dir), initPrefix); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(string(dir), initPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := user.own(tmp); err != nil {
		return err
	}
	args := []string{"-D", tmp, "-U", superuser, "-E", "UTF8", "--data-checksums",
		"--auth-local=trust", "--auth-host=reject"}
	if noSync {
		args = append(args, "--no-sync")
	}
	for _, locale := range locales(bin.major) {
		if err = initdb(ctx, bin, user, serverLock, append(slices.Clone(args), locale...)); err == nil || ctx.Err() != nil {
			break
		}
	}
	if err != nil {
		return err
	}
	if err := os.Rename(tmp, dir.cluster()); err != nil {
		return err
	}
	return syncDir(string(dir))
}

// removeLeftovers removes what an unfinished step, dead by now, left in dir. It
// matches no pattern: dir's own name may hold a pattern's special characters.
func removeLeftovers(dir, prefix string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// locales lists initdb's locale options, best first. Text sorts by code point on
// every machine alike, and upper and lower case are Unicode's, which full-text
// search needs. Before Postgres 17 the latter is up to the C library, and that of
// full-text search before 18. A library without such a locale gets plain C.
func locales(major int) [][]string {
	plain := []string{"--locale=C"}
	if major >= 17 {
		plain = append(plain, "--locale-provider=builtin", "--builtin-locale=C.UTF-8")
	}
	if major >= 18 {
		return [][]string{plain}
	}
	ctype := "C.UTF-8"
	if runtime.GOOS == "darwin" {
		ctype = "UTF-8"
	}
	return [][]string{append(slices.Clone(plain), "--lc-ctype="+ctype), plain}
}

func initdb(ctx context.Context, bin binaries, user *account, serverLock *os.File, args []string) error {
	cmd := serverCommand(ctx, bin.program("initdb"), args...)
	cmd.SysProcAttr = procAttr(user, syscall.SIGTERM)
	cmd.ExtraFiles = []*os.File{serverLock}
	// initdb's own children may outlive it for a moment when ctx ends it.
	cmd.WaitDelay = 2 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out

	// The death signal in procAttr is sent when the thread that forked ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("%s: %w\n%s", cmd.Path, err, bytes.TrimSpace(out.Bytes()))
	}
	return nil
}

// adoptCluster gives a cluster that belongs to root, as one restored from a
// backup may, to the user that is to run the server.
func adoptCluster(dir dataDir, user *account) error {
	fi, err := os.Stat(dir.cluster())
	if err != nil {
		return err
	}
	if uid, _ := owner(fi); user == nil || uid == user.uid {
		return nil
	}
	// The folder itself comes last: it tells the next start whether all is done.
	err = filepath.WalkDir(dir.cluster(), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || path == dir.cluster() {
			return err
		}
		return user.own(path)
	})
	if err != nil {
		return err
	}
	return user.own(dir.cluster())
}

// makeSocketDir makes the folder for the socket, and returns its path. A path that
// doesn't do for a socket is replaced by a link to a temporary folder; the link
// tells the next start what to remove. The caller holds the server lock, so
// nothing listens there.
func makeSocketDir(path string, user *account) (string, error) {
	if err := removeSocketDir(path); err != nil {
		return "", err
	}
	if !fitsSocket(path) {
		temp, err := tempSocketDir()
		if err != nil {
			return "", err
		}
		if err := os.Symlink(temp, path); err != nil {
			os.Remove(temp)
			return "", err
		}
		path = temp
	} else if err := os.Mkdir(path, 0o700); err != nil {
		return "", err
	}
	return path, user.own(path)
}

// tempSocketDir makes a folder with mode 0700 in which a socket can be.
func tempSocketDir() (string, error) {
	for _, parent := range []string{os.TempDir(), "/tmp"} {
		path, err := os.MkdirTemp(parent, tempSocketPrefix)
		if err != nil {
			return "", err
		}
		if fitsSocket(path) {
			return path, nil
		}
		os.Remove(path)
	}
	panic("unreachable: a path in /tmp is short enough")
}

// fitsSocket reports whether a socket can be in a folder, and be named in a
// connection string: the kernel bounds the length of its path, and a comma
// separates several hosts.
func fitsSocket(dir string) bool {
	return len(socketFile(dir)) <= maxSocketPath && !strings.Contains(dir, ",")
}

func socketFile(dir string) string {
	return filepath.Join(dir, fmt.Sprintf(".s.PGSQL.%d", socketPort))
}

// removeSocketDir removes the folder with what Postgres puts there, and no more.
func removeSocketDir(path string) error {
	if target, err := os.Readlink(path); err == nil {
		if err := os.Remove(path); err != nil {
			return err
		}
		if !strings.HasPrefix(filepath.Base(target), tempSocketPrefix) {
			return nil
		}
		path = target
	}
	if err := removeSocket(path); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// removeSocket removes the socket of a server that is gone, and the file beside
// it that names the server's process. Postgres would take any live process with
// that number for a server.
func removeSocket(dir string) error {
	for _, name := range []string{socketFile(dir), socketFile(dir) + ".lock"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// listenSettings say where the server listens, which is not up to the caller.
func listenSettings(socketDir string) map[string]string {
	return map[string]string{
		"listen_addresses":        "",
		"port":                    fmt.Sprint(socketPort),
		"unix_socket_directories": `"` + strings.ReplaceAll(socketDir, `"`, `""`) + `"`,
		"unix_socket_permissions": "0700",
	}
}

// defaultSettings suit a small machine that does other work as well. All else is
// as Postgres has it; above all, fsync is on.
func defaultSettings() map[string]string {
	return map[string]string{
		"cluster_name":    "coppice",
		"fsync":           "on",
		"jit":             "off", // compiling costs more than these short queries do
		"log_timezone":    "UTC",
		"max_connections": "100",
		"shared_buffers":  "128MB",
		"timezone":        "UTC",

		// The log is for problems of the server. Statements and the details of
		// errors may quote rows, and rows are what people wrote.
		"log_checkpoints":         "off",
		"log_error_verbosity":     "terse",
		"log_line_prefix":         "%m [%p] ",
		"log_min_error_statement": "panic",
		"log_min_messages":        "warning",
		"logging_collector":       "off",
		"log_destination":         "stderr",
	}
}

var parameterName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?$`)

func checkParameters(parameters map[string]string) error {
	fixed := listenSettings("")
	fixed["data_directory"] = ""
	for name := range parameters {
		if !parameterName.MatchString(name) {
			return fmt.Errorf("parameter %q is not the name of a server setting", name)
		}
		if _, ok := fixed[strings.ToLower(name)]; ok {
			return fmt.Errorf("parameter %q can't be changed: a private Postgres listens on its own socket only", name)
		}
	}
	return nil
}

// serverArgs is the postmaster's command line, which outranks the settings in
// the cluster's own files. "-D" comes first: isPostmaster looks for it.
func serverArgs(dir dataDir, socketDir string, parameters map[string]string) []string {
	settings := defaultSettings()
	for name, value := range parameters {
		settings[strings.ToLower(name)] = value
	}
	maps.Copy(settings, listenSettings(socketDir))
	args := []string{"-D", dir.cluster()}
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		args = append(args, "-c", name+"="+settings[name])
	}
	return args
}

// syncDir makes a rename within path last through a power failure.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/coppice-chat/coppice/fault"
)

const (
	programLockName = "coppice.lock"
	serverLockName  = "postgres.lock"
	endpointName    = "endpoint.json"

	// A server whose program died stops by itself, in well under a second unless
	// it has much to write. After orphanGrace it is told to leave that to the
	// next start; after orphanTimeout the directory counts as in use.
	orphanGrace   = 5 * time.Second
	orphanTimeout = 15 * time.Second
)

// lockProgram takes the directory for this program, and writes the program's
// process id into the lock file for others to name.
func lockProgram(ctx context.Context, dir dataDir) (*os.File, error) {
	f, err := openLock(dir.file(programLockName))
	if err != nil {
		return nil, err
	}
	ok, err := acquire(ctx, f, lockTimeout)
	if err == nil && !ok {
		err = &InUseError{DataDir: string(dir), PID: readPID(f.Name())}
	}
	if err == nil {
		if err = f.Truncate(0); err == nil {
			_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
		}
	}
	if err != nil {
		release(f)
		return nil, err
	}
	return f, nil
}

// lockServer takes the lock that the server's processes inherit, which means
// waiting for those of an earlier program to be gone.
func lockServer(ctx context.Context, dir dataDir, log *slog.Logger) (*os.File, error) {
	f, err := openLock(dir.file(serverLockName))
	if err != nil {
		return nil, err
	}
	ok, err := acquire(ctx, f, orphanGrace)
	if err == nil && !ok {
		pid := readPID(dir.postmasterPID())
		if isPostmaster(pid, dir.cluster()) {
			log.Warn("the server of an earlier program is still up: stopping it", "pid", pid)
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Signal(syscall.SIGQUIT) // if it is gone, so much the better
			}
		}
		ok, err = acquire(ctx, f, orphanTimeout)
		if err == nil && !ok {
			err = &InUseError{DataDir: string(dir), PID: pid}
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// awaitProcesses takes the lock that the server's processes inherit, after the
// postmaster was killed. Its other processes end by themselves; one that runs a
// statement does so at the statement's end, so there is no bound but ctx.
func awaitProcesses(ctx context.Context, dir dataDir, log *slog.Logger) (*os.File, error) {
	f, err := openLock(dir.file(serverLockName))
	if err != nil {
		return nil, err
	}
	for warned := false; ; warned = true {
		ok, err := acquire(ctx, f, lockTimeout)
		if err != nil {
			f.Close()
			return nil, err
		}
		if ok {
			return f, nil
		}
		if !warned {
			log.Warn("a process of the Postgres that ended is still at work: waiting for its end", "dir", string(dir))
		}
	}
}

func openLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|noFollow, 0o600)
}

// release gives up f's lock and closes f. To close f is not enough: between fork and
// exec a child that another goroutine starts has all descriptors, and so the lock.
func release(f *os.File) {
	_ = unlock(f)
	f.Close()
}

// acquire takes f's lock, for which it waits up to timeout, and reports whether
// it got it. There is no call that waits and can be called off, hence the polling.
func acquire(ctx context.Context, f *os.File, timeout time.Duration) (bool, error) {
	deadline := time.Now().Add(timeout)
	for {
		ok, err := tryLock(f, true)
		if err != nil {
			return false, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		if ok || time.Now().After(deadline) {
			return ok, nil
		}
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("lock %s: %w", f.Name(), context.Cause(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// postmasterPID is the file in which a running postmaster writes its process id.
func (d dataDir) postmasterPID() string { return filepath.Join(d.cluster(), "postmaster.pid") }

// readPID reads a process id from the first line of a file; 0 if there is none.
func readPID(path string) int {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(b), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

// removeStalePID removes a postmaster.pid whose process id belongs to something
// else by now, as is the rule after a container's restart. Postgres itself would
// take any live process for a server on its directory, and refuse to start.
// The caller holds the server lock, so what is left to find is a server that
// somebody started by hand.
func removeStalePID(dir dataDir) error {
	pid := readPID(dir.postmasterPID())
	if pid == 0 {
		return nil
	}
	if isPostmaster(pid, dir.cluster()) {
		return &InUseError{DataDir: string(dir), PID: pid}
	}
	if p, err := os.FindProcess(pid); err != nil || p.Signal(syscall.Signal(0)) != nil {
		return nil // dead: Postgres sees that, too
	}
	return os.Remove(dir.postmasterPID())
}

// isPostmaster reports whether a process is a Postgres server on the cluster, or
// one that doesn't say on which.
func isPostmaster(pid int, cluster string) bool {
	if pid == 0 {
		return false
	}
	program, args, _ := strings.Cut(commandLine(pid), " ")
	// A server's child processes call themselves "postgres: ", with a colon.
	if base := filepath.Base(program); base != "postgres" && base != "postmaster" {
		return false
	}
	_, data, named := strings.Cut(" "+args, " -D ")
	return !named || strings.HasPrefix(data+" ", cluster+" ")
}

// An endpoint is what other programs have to know to reach the server.
type endpoint struct {
	PID          int    `json:"pid"` // of the program that owns the server
	SocketDir    string `json:"socket_dir"`
	Database     string `json:"database"`
	User         string `json:"user"`
	MajorVersion int    `json:"major_version"`
}

// url is a connection string, in the form that pgx and libpq both read.
func (e endpoint) url() string {
	return fmt.Sprintf("postgres://%s@/%s?host=%s&port=%d&sslmode=disable", e.User, e.Database,
		strings.ReplaceAll(url.QueryEscape(e.SocketDir), "+", "%20"), socketPort)
}

// as is the endpoint for another user.
func (e endpoint) as(user string) endpoint {
	e.User = user
	return e
}

func writeEndpoint(dir dataDir, e endpoint) error {
	b, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return err
	}
	// Renamed into place, so that no reader meets half of it.
	tmp := dir.file(endpointName + ".tmp")
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(tmp, dir.file(endpointName))
}

func removeEndpoint(dir dataDir) error {
	if err := os.Remove(dir.file(endpointName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Attach returns the connection string of the private Postgres that a live
// program, this one or another, runs on dataDir. Otherwise it returns
// [ErrNotRunning]. It costs three small file reads, and makes no connection.
func Attach(dataDir string) (string, error) {
	e, err := attach(dataDir)
	if err != nil {
		fault.Wrap(&err, "embedded.Attach(%q)", dataDir)
		return "", err
	}
	return e.url(), nil
}

func attach(path string) (endpoint, error) {
	dir := dataDir(path)
	lock, err := os.Open(dir.file(programLockName))
	if errors.Is(err, fs.ErrNotExist) {
		return endpoint{}, ErrNotRunning
	}
	if err != nil {
		return endpoint{}, err
	}
	defer release(lock)
	b, err := os.ReadFile(dir.file(endpointName))
	if errors.Is(err, fs.ErrNotExist) {
		return endpoint{}, ErrNotRunning
	}
	if err != nil {
		return endpoint{}, err
	}
	var e endpoint
	if err := json.Unmarshal(b, &e); err != nil {
		return endpoint{}, fmt.Errorf("%s: %w", dir.file(endpointName), err)
	}
	// The file outlives a killed program. Whether its author is alive, only the
	// lock tells: a shared lock is to be had exactly if nobody holds it.
	free, err := tryLock(lock, false)
	if err != nil {
		return endpoint{}, err
	}
	holder, err := io.ReadAll(io.LimitReader(lock, 32))
	if err != nil {
		return endpoint{}, err
	}
	if free || strings.TrimSpace(string(holder)) != strconv.Itoa(e.PID) {
		return endpoint{}, ErrNotRunning
	}
	return e, nil
}

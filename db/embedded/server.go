package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/coppice-chat/coppice/fault"
)

const (
	// connectTimeout is how long a server may run without answering at all. One
	// that answers that it is recovering is waited for as long as it takes.
	connectTimeout = 30 * time.Second

	// quitTimeout is how long an immediate shutdown may take. Postgres itself
	// kills what doesn't heed it after 5 seconds.
	quitTimeout = 10 * time.Second
)

// A Server is a running private Postgres. Its methods can be called from
// several goroutines at once.
type Server struct {
	dir      dataDir
	bin      binaries
	user     *account
	log      *slog.Logger
	lock     *os.File // the program's; held until the server is gone. Nil where the caller holds it
	socket   string   // the folder of the socket, or a link to it
	endpoint endpoint
	args     []string // of the postmaster
	watch    bool     // a watchdog is needed
	restarts bool

	lasting context.Context // ends when Stop is called
	end     context.CancelFunc

	mu         sync.Mutex
	postmaster *postmaster // of the current run; nil between two runs

	done chan struct{}
	err  error // set before done is closed
}

// URL returns the connection string of the database "coppice", for the role that
// owns it and has no other right. It stays the same when the server is started
// again. pgx and libpq both read it.
func (s *Server) URL() string { return s.endpoint.url() }

// SuperuserURL is [Server.URL] for the superuser, which makes databases for tests
// and benchmarks. The program itself has no use for it.
func (s *Server) SuperuserURL() string { return s.endpoint.as(superuser).url() }

// Version returns the version of Postgres, such as "18.4".
func (s *Server) Version() string { return s.bin.version() }

// Done returns a channel that is closed when the server has ended and its data
// directory is free again: after [Server.Stop], or when the server ended by
// itself. With [Config.Restart] the server is then started again, so that the
// channel is closed only when that failed several times in a row.
func (s *Server) Done() <-chan struct{} { return s.done }

// Err returns why the server ended, with the end of its log. It returns nil until
// Done is closed, and after [Server.Stop].
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
	s.halt(syscall.SIGINT)
	select {
	case <-s.done:
		return nil // even if ctx has ended, too
	default:
	}
	select {
	case <-s.done:
		return nil
	case <-ctx.Done():
	}
	s.halt(syscall.SIGQUIT)
	select {
	case <-s.done:
	case <-time.After(quitTimeout):
		s.halt(syscall.SIGKILL)
		<-s.done
	}
	err := fmt.Errorf("the private Postgres was stopped at once, and will replay its log on the next start: %w", context.Cause(ctx))
	fault.Wrap(&err, "embedded.Server.Stop")
	return err
}

// halt sends a signal to the server. If the server is being started again, that
// is called off.
func (s *Server) halt(signal syscall.Signal) {
	s.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.postmaster != nil {
		// It fails if the process has ended, which is what is wanted.
		_ = s.postmaster.cmd.Process.Signal(signal)
	}
}

// launch starts a postmaster and waits until it serves. On error none runs.
func (s *Server) launch(ctx context.Context, serverLock *os.File) (*postmaster, error) {
	begin := time.Now()
	p, err := startPostmaster(s.dir, s.bin, s.user, s.args, s.watch, serverLock)
	if err != nil {
		return nil, err
	}
	if err := s.awaitReady(ctx, p); err != nil {
		p.end()
		return nil, err
	}
	s.log.Info("Postgres is ready", "dir", string(s.dir), "version", s.bin.version(),
		"pid", p.cmd.Process.Pid, "took", time.Since(begin))
	return p, nil
}

// awaitReady returns when the server accepts connections to its database.
func (s *Server) awaitReady(ctx context.Context, p *postmaster) error {
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
		err := setUpRoles(ctx, s.endpoint)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		var answer *pgconn.PgError
		if errors.As(err, &answer) {
			switch answer.Code {
			case "57P03": // cannot_connect_now: it starts up or recovers
				answered = time.Now()
			case "57P01", "57P02": // admin_shutdown, crash_shutdown: why the postmaster ended, only p tells
			default:
				return err
			}
		}
		if time.Since(answered) > connectTimeout {
			return fmt.Errorf("the server does not answer: %w%s", err, p.log.tail())
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
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
		case <-time.After(quitTimeout):
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

package torture

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A server is the program under a supervisor, which starts it again whenever it
// ends, as a service manager does.
type server struct {
	name string
	bin  string
	addr string // the same at each start
	args func(start int) []string
	env  []string
	log  *os.File

	starts  atomic.Int32
	running sync.WaitGroup

	mu    sync.Mutex
	cmd   *exec.Cmd     // nil while none runs
	ended chan struct{} // closed when cmd has ended
}

func (s *server) url() string { return "http://" + s.addr }

// generation tells a server's lives apart.
func (s *server) generation() int { return int(s.starts.Load()) }

// freeAddr finds a port that nobody has. Another program may take it before the
// server does; the supervisor then starts the server until the port is free.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// supervise runs the server until ctx ends.
func (s *server) supervise(ctx context.Context) {
	runtime.LockOSThread() // see procAttr
	defer runtime.UnlockOSThread()
	for ctx.Err() == nil {
		s.runOnce(ctx)
		sleep(ctx, 100*time.Millisecond)
	}
}

func (s *server) runOnce(ctx context.Context) {
	cmd := exec.CommandContext(ctx, s.bin, s.args(int(s.starts.Add(1)))...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = s.env, s.log, s.log, procAttr()
	ended := make(chan struct{})
	s.mu.Lock()
	err := cmd.Start()
	s.cmd, s.ended = cmd, ended
	s.mu.Unlock()
	if err == nil { // else it never gets ready, and the run ends
		_ = cmd.Wait() // a kill is no news; panics are read from the log
	}
	s.mu.Lock()
	s.cmd = nil
	s.mu.Unlock()
	close(ended)
}

// kill kills the server with -9, and waits until it is dead. False means that
// none ran.
func (s *server) kill() bool {
	s.mu.Lock()
	cmd, ended := s.cmd, s.ended
	s.mu.Unlock()
	if cmd == nil || cmd.Process == nil || cmd.Process.Kill() != nil {
		return false
	}
	<-ended
	return true
}

// panics is the end of the log from the first panic on, "" for none.
func (s *server) panics() string {
	b, err := os.ReadFile(s.log.Name())
	if err != nil {
		return err.Error()
	}
	i := strings.Index("\n"+string(b), "\npanic: ")
	if i < 0 {
		return ""
	}
	return clip(string(b[i:]), 3000)
}

func (s *server) isReady(ctx context.Context, client *http.Client) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url()+"/readyz", nil)
	if err != nil {
		return false
	}
	res, err := client.Do(req)
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode == http.StatusOK
}

// environment is this process's without the variables that would change a
// server's settings.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "DATABASE_URL=") || strings.HasPrefix(v, "COPPICE_") || strings.HasPrefix(v, "OPENAI_")
	})
}

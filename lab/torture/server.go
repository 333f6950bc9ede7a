package torture

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/coppice-chat/coppice/lab/product"
)

// A server is the program under a supervisor, which starts it again whenever it
// ends, as a service manager does.
type server struct {
	name     string
	addr     string // the same at each start
	database *link
	command  func(ctx context.Context, start int) *exec.Cmd
	log      *os.File

	starts  atomic.Int32 // tells a server's lives apart
	process atomic.Pointer[os.Process]
	running sync.WaitGroup
}

// procAttr is set where the system can kill a server whose harness dies.
var procAttr *syscall.SysProcAttr

// supervise runs the server until ctx ends.
func (s *server) supervise(ctx context.Context) {
	runtime.LockOSThread() // see procAttr
	defer runtime.UnlockOSThread()
	for ; ctx.Err() == nil; sleep(ctx, 100*time.Millisecond) {
		cmd := s.command(ctx, int(s.starts.Add(1)))
		cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = s.log, s.log, procAttr
		if cmd.Start() == nil { // else it never gets ready, and the run ends
			s.process.Store(cmd.Process)
			_ = cmd.Wait() // a kill is no news; panics are read from the log
		}
	}
}

// awaitReady waits until a server is ready.
func awaitReady(ctx context.Context, s *server) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyBound, fmt.Errorf("server %s is not ready after %s; its log is %s", s.name, readyBound, s.log.Name()))
	defer cancel()
	return product.AwaitReady(ctx, s.addr)
}

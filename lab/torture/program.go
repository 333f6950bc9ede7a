package torture

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A program is a server under a supervisor, which starts it again whenever it
// ends, as a service manager does.
type program struct {
	number int
	name   string
	bin    string
	addr   string // the same at each start
	args   func(start int) []string
	env    []string
	log    *os.File
	report *recorder

	mu       sync.Mutex
	cmd      *exec.Cmd     // nil while none runs
	ended    chan struct{} // closed when cmd has ended
	killing  bool          // cmd's end is ours
	ready    atomic.Bool   // as the monitor saw it last
	starts   atomic.Int32
	stopping chan struct{}
	stopped  chan struct{}
}

// restartPause is how long the supervisor waits after a server ended by itself.
const restartPause = 200 * time.Millisecond

// url is where clients reach it.
func (p *program) url() string { return "http://" + p.addr }

// generation tells its lives apart.
func (p *program) generation() int { return int(p.starts.Load()) }

// freeAddr finds a port that nobody has. Somebody may take it before the
// server does; the supervisor then tries until it is free.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// supervise runs the server until stop.
func (p *program) supervise() {
	// The death signal is sent when the thread that forked ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.stopped)
	for {
		begin := time.Now()
		err := p.runOnce()
		p.ready.Store(false)
		select {
		case <-p.stopping:
			return
		default:
		}
		if err != nil {
			p.report.exit(p, time.Since(begin), err)
			select {
			case <-p.stopping:
				return
			case <-time.After(restartPause):
			}
		}
	}
}

// runOnce runs the server to its end. It is nil where the end is ours.
func (p *program) runOnce() error {
	start := int(p.starts.Add(1))
	cmd := exec.Command(p.bin, p.args(start)...)
	tail := &tailWriter{out: p.log}
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = p.env, tail, tail, procAttr()
	fmt.Fprintf(p.log, "---- start %d at %s\n", start, time.Now().Format(time.RFC3339Nano))
	p.mu.Lock()
	if err := cmd.Start(); err != nil {
		p.mu.Unlock()
		return err
	}
	ended := make(chan struct{})
	p.cmd, p.ended, p.killing = cmd, ended, false
	p.mu.Unlock()
	err := cmd.Wait()
	p.mu.Lock()
	ours := p.killing
	p.cmd = nil
	p.mu.Unlock()
	close(ended)
	if ours {
		return nil
	}
	return fmt.Errorf("%v: %s", err, tail.last())
}

// kill kills the server with -9, and waits until it is dead. False means that
// none ran.
func (p *program) kill() bool {
	p.mu.Lock()
	cmd, ended := p.cmd, p.ended
	if cmd == nil {
		p.mu.Unlock()
		return false
	}
	p.killing = true
	p.mu.Unlock()
	if err := cmd.Process.Kill(); err != nil {
		return false
	}
	<-ended
	return true
}

// freeze stops the server as it stands, until thaw is called. False means that
// none ran.
func (p *program) freeze() (thaw func(), ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return nil, false
	}
	process := p.cmd.Process
	if err := freezeProcess(process); err != nil {
		return nil, false
	}
	return func() { _ = thawProcess(process) }, true // where it was killed meanwhile, there is nothing to do
}

// stop ends it for good.
func (p *program) stop() {
	close(p.stopping)
	p.kill()
	for {
		select {
		case <-p.stopped:
			p.log.Close()
			return
		case <-time.After(10 * time.Millisecond):
			p.kill() // it may just have been started
		}
	}
}

// monitor asks the server whether it is ready, again and again, and notes how
// long that took after the last thing that stood in its way.
func (p *program) monitor(ctx context.Context, obstacles *obstacles) {
	client := &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	var since time.Time // the first time that it was asked in vain; zero while it is ready
	for ctx.Err() == nil {
		asked, generation := time.Now(), p.generation()
		ready := isReady(ctx, client, p.url()) && generation == p.generation()
		if was := p.ready.Swap(ready); ready && !was {
			if kind, begin, over, ok := obstacles.last(p.number, since); ok {
				took := time.Duration(0)
				if !over.IsZero() {
					took = time.Since(over)
				}
				p.report.readyAgain(p, kind, took, time.Since(begin))
			}
		}
		if ready {
			since = time.Time{}
		} else if since.IsZero() {
			since = asked
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func isReady(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
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

// A tailWriter passes on what it gets, and remembers the end of it.
type tailWriter struct {
	out *os.File
	end []byte
}

const tailSize = 4 << 10

func (t *tailWriter) Write(b []byte) (int, error) {
	t.end = append(t.end, b...)
	if extra := len(t.end) - tailSize; extra > 0 {
		t.end = bytes.Clone(t.end[extra:])
	}
	return t.out.Write(b)
}

// last is the end of the output; of a panic, its beginning.
func (t *tailWriter) last() string {
	text := strings.TrimSpace(string(t.end))
	if i := strings.Index(text, "panic: "); i >= 0 {
		return text[i:]
	}
	if lines := strings.Split(text, "\n"); len(lines) > 3 {
		return strings.Join(lines[len(lines)-3:], "\n")
	}
	return text
}

// environment is this process's without what would change a server's
// settings.
func environment(environ []string) (out []string) {
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if name != "DATABASE_URL" && !strings.HasPrefix(name, "COPPICE_") && !strings.HasPrefix(name, "OPENAI_") {
			out = append(out, v)
		}
	}
	return out
}

package embedded

import (
	"io"
	"os/exec"
	"syscall"
)

// A watchdog is a shell that stops the server when this program dies, for systems
// whose kernel doesn't offer to.
type watchdog struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// watchdogScript gets the path of postmaster.pid as $0. Its input is a pipe of
// which only the program holds the other end: a line says that the server is
// gone, and the input's end that the program is. The server may be so young
// that it has not written its file yet.
const watchdogScript = `
read -r line && exit
tries=0
while [ $tries -lt 50 ]; do
	if read -r pid 2>/dev/null <"$0"; then
		kill -INT "$pid"
		exit
	fi
	tries=$((tries + 1))
	sleep 0.1
done`

func startWatchdog(pidFile string) (*watchdog, error) {
	cmd := exec.Command("/bin/sh", "-c", watchdogScript, pidFile)
	cmd.Dir = "/"
	cmd.SysProcAttr = procAttr(nil, syscall.Signal(0))
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &watchdog{cmd: cmd, pipe: pipe}, nil
}

// dismiss ends the watchdog once the server is gone.
func (w *watchdog) dismiss() {
	// Errors mean that it is gone, too.
	_, _ = io.WriteString(w.pipe, "\n")
	_ = w.pipe.Close()
	_ = w.cmd.Wait()
}

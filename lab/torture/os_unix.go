//go:build unix

package torture

import (
	"os"
	"syscall"
)

// killProcess kills a process with -9.
func killProcess(pid int) error { return syscall.Kill(pid, syscall.SIGKILL) }

// freezeProcess stops a process as it stands, until it is thawed.
func freezeProcess(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

func thawProcess(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

package torture

import "syscall"

// procAttr has the kernel kill a server whose harness dies. The kernel sends the
// signal when the thread that forked ends, so supervise keeps its thread.
func procAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

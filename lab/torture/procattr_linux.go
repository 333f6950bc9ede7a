package torture

import "syscall"

// The kernel kills a server whose harness dies. The kernel sends the signal when
// the thread that forked ends, so supervise keeps its thread.
func init() { procAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

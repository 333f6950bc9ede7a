package torture

import "syscall"

// procAttr has the kernel kill a server whose harness dies. The signal is sent
// when the thread that forked ends, so that one has to be kept.
func procAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

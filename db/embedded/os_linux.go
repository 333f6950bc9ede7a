package embedded

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// maxSocketPath is the longest path of a unix socket, in bytes.
const maxSocketPath = 107

// procAttr is sessionAttr with a signal that the kernel sends to the process when
// the thread that starts it ends; 0 for none.
func procAttr(user *account, death syscall.Signal) *syscall.SysProcAttr {
	attr := sessionAttr(user)
	attr.Pdeathsig = death
	return attr
}

// commandLine returns a process's command line, its arguments joined by spaces;
// "" if there is no such process, or it has ended and nobody has waited for it.
func commandLine(pid int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	return strings.ReplaceAll(strings.TrimRight(string(b), "\x00"), "\x00", " ")
}

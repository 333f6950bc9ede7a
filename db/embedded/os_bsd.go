//go:build darwin || freebsd || netbsd || openbsd

package embedded

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// maxSocketPath is the longest path of a unix socket, in bytes.
const maxSocketPath = 103

// procAttr is sessionAttr. There is no death signal; see startWatchdog.
func procAttr(user *account, _ syscall.Signal) *syscall.SysProcAttr {
	return sessionAttr(user)
}

// commandLine returns a process's command line, its arguments joined by spaces;
// "" if there is no such process.
func commandLine(pid int) string {
	out, err := exec.Command("ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

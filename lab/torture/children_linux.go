package torture

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// A process is one of this machine's, told from a later one of the same id by
// when it began.
type process struct {
	pid   int
	begun string
}

// childrenOf gives the processes that a process started.
func childrenOf(pid int) (found []process) {
	all, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, entry := range all {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if parent, begun, _ := processStat(child); parent == pid {
			found = append(found, process{child, begun})
		}
	}
	return found
}

// lives tells whether the process is still there. One that ended and that
// nobody has asked for is not.
func (p process) lives() bool {
	_, begun, state := processStat(p.pid)
	return begun == p.begun && state != "Z"
}

// processStat reads /proc/PID/stat, of which the second field is a name that may
// hold anything.
func processStat(pid int) (parent int, begun, state string) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, "", ""
	}
	const afterName, startTime = 2, 21 // counted from 0
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(fields) <= startTime-afterName {
		return 0, "", ""
	}
	parent, _ = strconv.Atoi(fields[1]) // a number always
	return parent, fields[startTime-afterName], fields[0]
}

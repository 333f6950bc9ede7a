//go:build !linux

package torture

import "syscall"

// procAttr is empty: these systems don't tell a process of its parent's death.
func procAttr() *syscall.SysProcAttr { return nil }

//go:build !(linux || darwin || freebsd || netbsd || openbsd)

package embedded

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Start refuses where supported is false, so of what follows only tryLock is
// ever called, by Attach.
const (
	supported     = false
	noFollow      = 0
	maxSocketPath = 107
)

func tryLock(*os.File, bool) (bool, error) { return false, errors.ErrUnsupported }

func unlock(*os.File) error { return errors.ErrUnsupported }

func owner(fs.FileInfo) (uid, gid uint32) { return 0, 0 }

func procAttr(*account, syscall.Signal) *syscall.SysProcAttr { return nil }

func commandLine(int) string { return "" }

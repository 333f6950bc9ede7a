package dbtest

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// urlVariable names a server for tests. Its user must be allowed to create
// databases. citusVariable names one with Citus.
const (
	urlVariable   = "COPPICE_TEST_DATABASE_URL"
	citusVariable = "COPPICE_TEST_CITUS_URL"
)

// majorVariable names a major version of Postgres, such as 16, or is inDocker.
const (
	majorVariable = "COPPICE_TEST_POSTGRES"
	inDocker      = "docker"
	image         = "postgres:17-alpine"
)

// server is the Postgres that all tests of this process share.
type server struct {
	url      string                 // of a database that tests don't use
	admin    *pgxpool.Pool          // on that database
	citus    bool                   // the template is distributed
	copies   bool                   // a clone is cheaper as copied files
	template func() (string, error) // makes the migrated template once, and returns its name
}

var (
	startOnce sync.Once
	started   *server
	startErr  error
)

// start returns the process's server, which the first call finds or starts.
func start(t testing.TB) *server {
	t.Helper()
	startOnce.Do(func() {
		// A first test that is ended by its deadline must not take the server
		// of the others with it, hence no context of the test's.
		started, startErr = find(context.Background(), t.Logf)
	})
	if startErr != nil {
		t.Fatalf("dbtest: %v", startErr)
	}
	return started
}

// find goes through the ways to get a server.
func find(ctx context.Context, logf func(format string, args ...any)) (*server, error) {
	for _, variable := range []string{citusVariable, urlVariable} {
		url := os.Getenv(variable)
		if url == "" {
			continue
		}
		s, err := connect(ctx, url)
		if err != nil {
			return nil, fmt.Errorf("the server that %s names: %w", variable, err)
		}
		if err := s.sweep(ctx); err != nil {
			return nil, fmt.Errorf("drop leftovers on the server that %s names: %w", variable, err)
		}
		s.citus = variable == citusVariable
		logf("dbtest: databases come from the server that %s names", variable)
		return s, nil
	}
	if os.Getenv(majorVariable) == inDocker {
		s, err := startContainer(ctx, image)
		if err != nil {
			return nil, fmt.Errorf("a container of %s, as %s says: %w", image, majorVariable, err)
		}
		logf("dbtest: databases come from a container of %s, as %s says", image, majorVariable)
		return s, nil
	}
	major, why := 0, ""
	if version := os.Getenv(majorVariable); version != "" {
		var err error
		if major, err = strconv.Atoi(version); err != nil {
			return nil, fmt.Errorf("%s: give a major version of Postgres, such as 16, or docker, and not %q", majorVariable, version)
		}
		why = " " + version + ", as " + majorVariable + " says"
	}
	s, err := startPrivate(ctx, major)
	if err != nil {
		return nil, fmt.Errorf("a private Postgres%s: %w\nOr set %s to the URL of a server whose user may create databases", why, err, urlVariable)
	}
	logf("dbtest: databases come from a private Postgres%s", why)
	return s, nil
}

// connect makes a server of a connection string.
func connect(ctx context.Context, url string) (*server, error) {
	conf, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, err
	}
	conf.MaxConns = 4
	admin, err := pgxpool.NewWithConfig(ctx, conf)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	s := &server{url: url, admin: admin}
	// Postgres 14 copies files anyway. Later ones write each page of a clone to the
	// log, which takes twice the processor; but files are then flushed, which takes
	// long where fsync is on.
	err = admin.QueryRow(ctx, "select current_setting('server_version_num')::integer >= 150000 and current_setting('fsync') = 'off'").Scan(&s.copies)
	if err != nil {
		admin.Close()
		return nil, err
	}
	s.template = sync.OnceValues(func() (string, error) {
		name, err := templateName()
		if err != nil {
			return "", err
		}
		if s.citus {
			name += "_citus"
		}
		return name, s.makeTemplate(context.Background(), name)
	})
	return s, nil
}

// parameters make a server that dies with its tests faster: what it would lose
// in a crash nobody wants back. There are connections for as many tests as run
// at once, twice over.
func parameters() map[string]string {
	return map[string]string{
		"fsync":              "off",
		"full_page_writes":   "off",
		"synchronous_commit": "off",
		"max_connections":    strconv.Itoa(max(200, 2*defaultMaxConns*runtime.GOMAXPROCS(0))),
	}
}

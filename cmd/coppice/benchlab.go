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

	"github.com/coppice-chat/coppice/bench/speed"
	"github.com/coppice-chat/coppice/db/embedded"
	"github.com/coppice-chat/coppice/db/migrate"
)

// A benchLab is where speed is measured: databases that are made for it and
// dropped after it, and servers in processes of their own.
type benchLab struct {
	dir       string           // for logs, and for the private Postgres
	url       string           // of a database that is left alone
	private   *embedded.Server // nil where a URL was given
	serveArgs []string         // of servers, besides those they need
	made      []string         // databases
	servers   []*speed.Server
}

// benchConnections is enough for 32 writers three times, and a server's pool.
const benchConnections = "300"

// openBenchLab starts a private Postgres with the settings that serve has,
// unless there is a URL.
func openBenchLab(ctx context.Context, url, cacheDir string, log *slog.Logger) (_ *benchLab, err error) {
	dir, err := os.MkdirTemp("", "coppice-bench-")
	if err != nil {
		return nil, err
	}
	lab := &benchLab{dir: dir, url: url}
	if url != "" {
		return lab, nil
	}
	lab.private, err = embedded.Start(ctx, embedded.Config{
		DataDir: dir, CacheDir: cacheDir, Logger: log, Parameters: map[string]string{"max_connections": benchConnections},
	})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	lab.url = lab.private.SuperuserURL()
	return lab, nil
}

// close stops the servers, drops the databases, and removes the private
// Postgres.
func (l *benchLab) close() (err error) {
	// The command's context may be done.
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for _, s := range l.servers {
		err = errors.Join(err, s.Stop())
	}
	if l.private != nil {
		err = errors.Join(err, l.private.Stop(ctx))
	} else if len(l.made) > 0 {
		err = errors.Join(err, l.drop(ctx))
	}
	return errors.Join(err, os.RemoveAll(l.dir))
}

func (l *benchLab) drop(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, l.url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, name := range l.made {
		_, dropErr := conn.Exec(ctx, "drop database if exists "+name+" with (force)")
		err = errors.Join(err, dropErr)
	}
	return err
}

// database makes a migrated database.
func (l *benchLab) database(ctx context.Context) (string, error) {
	conn, err := pgx.Connect(ctx, l.url)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	name := fmt.Sprintf("coppice_bench_%d_%d", os.Getpid(), len(l.made))
	if _, err := conn.Exec(ctx, "create database "+name+" encoding 'UTF8' template template0"); err != nil {
		return "", err
	}
	l.made = append(l.made, name)
	url, err := withDatabaseName(l.url, name)
	if err != nil {
		return "", err
	}
	_, _, err = migrate.Up(ctx, url)
	return url, err
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

// serve starts this same program as a server, with its default settings.
func (l *benchLab) serve(ctx context.Context, databaseURL string) (*speed.Server, error) {
	return l.start(ctx, databaseURL, append([]string{"serve", "--addr", "127.0.0.1:0", "--log-format", "json"}, l.serveArgs...)...)
}

// serveBare starts this same program as the server that others are compared
// with.
func (l *benchLab) serveBare(ctx context.Context, databaseURL string) (*speed.Server, error) {
	return l.start(ctx, databaseURL, "bench", "bare", "--log-format", "json")
}

// start runs this same program, and waits until it listens.
func (l *benchLab) start(ctx context.Context, databaseURL string, args ...string) (*speed.Server, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	logName := filepath.Join(l.dir, fmt.Sprintf("serve-%d.log", len(l.servers)))
	log, err := os.Create(logName)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(program, args...)
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); !strings.HasPrefix(name, "COPPICE_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	// Not as an argument, which every user of the machine can read.
	cmd.Env = append(cmd.Env, "COPPICE_DATABASE_URL="+databaseURL)
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
		case <-time.After(stopPatience):
			return cmd.Process.Kill()
		}
	}
	addr, err := awaitListening(ctx, logName, ended)
	if err != nil {
		return nil, errors.Join(err, stop())
	}
	s := &speed.Server{Addr: addr, PID: cmd.Process.Pid, Stop: stop}
	l.servers = append(l.servers, s)
	return s, nil
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

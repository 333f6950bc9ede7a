package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// listen opens the address for the server.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, usagef("--addr %q is not HOST:PORT, such as 127.0.0.1:8787", addr)
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use by another program: stop that, or choose another address by --addr", addr)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s may not be opened by this user: choose a port over 1023 by --addr", addr)
	case err != nil:
		return nil, fmt.Errorf("--addr %s can't be opened: %w", addr, err)
	}
	return l, nil
}

// loopback tells whether only this machine can reach the listener.
func loopback(l net.Listener) bool {
	addr, ok := l.Addr().(*net.TCPAddr)
	return ok && addr.IP.IsLoopback()
}

// baseURL is where people find the server.
func baseURL(l net.Listener) string {
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "http://" + l.Addr().String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "localhost" // every address, this one among them
	}
	return "http://" + net.JoinHostPort(host, port)
}

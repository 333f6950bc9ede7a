package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// listen opens the address that a flag names.
func listen(ctx context.Context, flag, addr string) (net.Listener, error) {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, usagef("%s %q is not HOST:PORT, such as 127.0.0.1:8787", flag, addr)
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("%s is in use by another program: stop that, or choose another address by %s", addr, flag)
	case errors.Is(err, syscall.EACCES):
		return nil, fmt.Errorf("%s may not be opened by this user: choose a port over 1023 by %s", addr, flag)
	case err != nil:
		return nil, fmt.Errorf("%s %s can't be opened: %w", flag, addr, err)
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

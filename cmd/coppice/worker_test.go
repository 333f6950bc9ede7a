package main

import (
	"net"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db/embedded"
)

// A server's name is the same at each start, and no other server's.
func TestServerID(t *testing.T) {
	t.Parallel()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		return l
	}
	id := func(f workerFlags, d *database, l net.Listener) string {
		id, err := f.serverID(d, l)
		if err != nil || id == "" || len(id) > maxServerID {
			t.Errorf("%q, %v", id, err)
		}
		return id
	}
	one, two := listen(), listen()
	remote := &database{}
	if first, other := id(workerFlags{}, remote, one), id(workerFlags{}, remote, two); first == other || !strings.Contains(first, one.Addr().String()) {
		t.Errorf("on a database of others, the address names the server: %s and %s", first, other)
	}
	deep := "/" + strings.Repeat("deep/", 50)
	for _, dirs := range [][2]string{{"/srv/a", "/srv/b"}, {deep + "a", deep + "b"}} {
		a, b := &database{private: new(embedded.Server), dataDir: dirs[0]}, &database{private: new(embedded.Server), dataDir: dirs[1]}
		if id(workerFlags{}, a, one) != id(workerFlags{}, a, two) || id(workerFlags{}, a, one) == id(workerFlags{}, b, one) {
			t.Errorf("on a private Postgres, the data directory names the server: %s", id(workerFlags{}, a, one))
		}
	}
	if got := id(workerFlags{ServerID: "oak"}, remote, one); got != "oak" {
		t.Errorf("--server-id oak is %q", got)
	}
}

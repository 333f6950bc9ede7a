package app

import (
	"strings"
	"testing"
)

// A Coppice's name is the same at each start, and no other one's.
func TestWorkerID(t *testing.T) {
	t.Parallel()
	id := func(cfg DatabaseConfig, address string) string {
		id, err := workerID(cfg, address)
		if err != nil || id == "" || len(id) > MaxWorkerID {
			t.Errorf("%q, %v", id, err)
		}
		return id
	}
	const one, two = "127.0.0.1:8787", "127.0.0.1:8788"
	remote := DatabaseConfig{URL: "postgres://db.example/x", DataDir: "/srv/a"}
	if first, other := id(remote, one), id(remote, two); first == other || !strings.Contains(first, one) || strings.Contains(first, "/srv") {
		t.Errorf("on a database of others, the address names the server: %s and %s", first, other)
	}
	deep := "/" + strings.Repeat("deep/", 50)
	for _, dirs := range [][2]string{{"/srv/a", "/srv/b"}, {deep + "a", deep + "b"}} {
		a, b := DatabaseConfig{DataDir: dirs[0]}, DatabaseConfig{DataDir: dirs[1]}
		if id(a, one) != id(a, two) || id(a, one) == id(b, one) {
			t.Errorf("on a private Postgres, the data directory names the server: %s", id(a, one))
		}
	}
	if id, err := workerID(DatabaseConfig{URL: "postgres://db.example/x"}, ""); id != "" || err != nil {
		t.Errorf("a program without an address is named %q, %v", id, err)
	}
}

//go:build unix

package dbtest

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/internal/check"
)

// poolerVariable has tests fail that have no pooler, instead of being skipped.
const poolerVariable = "COPPICE_REQUIRE_PGBOUNCER"

// poolerPort is part of the name of its socket; nothing listens on TCP.
const poolerPort = 6432

// keeper runs PgBouncer until its input ends, which it does with the test, or
// with a killed test's process.
const keeper = `"$0" "$1" & cat; kill $!; wait`

// Pooler starts a PgBouncer in transaction mode in front of a database, with a
// number of connections to it and further lines of configuration. It returns the
// connection string that leads through PgBouncer. The test is skipped where
// PgBouncer isn't installed, unless COPPICE_REQUIRE_PGBOUNCER is set.
func Pooler(t testing.TB, database string, connections int, lines ...string) string {
	t.Helper()
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer" // which is on nobody's path but root's
	}
	if _, err := os.Stat(program); err != nil {
		if os.Getenv(poolerVariable) != "" {
			t.Fatalf("dbtest.Pooler: PgBouncer is not installed, and %s is set: %v", poolerVariable, err)
		}
		t.Skip("PgBouncer is not installed (apt-get install pgbouncer)")
	}
	conf := check.Must(pgx.ParseConfig(database))(t)
	dir, err := os.MkdirTemp("", "coppice-pooler-") // short enough for a socket
	check.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	password := ""
	if conf.Password != "" {
		password = "password='" + strings.ReplaceAll(conf.Password, "'", "''") + "'"
	}
	config := filepath.Join(dir, "pgbouncer.ini")
	content := fmt.Sprintf(`[databases]
* = host=%s port=%d user=%s %s
[pgbouncer]
listen_addr =
listen_port = %d
unix_socket_dir = %s
auth_type = any
pool_mode = transaction
default_pool_size = %d
max_client_conn = 200
%s
`, conf.Host, conf.Port, conf.User, password, poolerPort, dir, connections, strings.Join(lines, "\n"))
	check.NoError(t, os.WriteFile(config, []byte(content), 0o644))
	cmd := exec.Command("sh", "-c", keeper, program, config)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if os.Geteuid() == 0 { // as whom PgBouncer refuses to run
		uid, gid := poolerAccount(t, conf.Host)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
		check.NoError(t, os.Chown(dir, int(uid), int(gid)))
	}
	lifeline := check.Must(cmd.StdinPipe())(t)
	check.NoError(t, cmd.Start())
	t.Cleanup(func() {
		lifeline.Close()
		cmd.Wait()
		if t.Failed() {
			t.Logf("PgBouncer's log:\n%s", log.Bytes()[max(0, log.Len()-2048):])
		}
	})
	through := fmt.Sprintf("postgres://%s@/%s?host=%s&port=%d&sslmode=disable", url.QueryEscape(conf.User), conf.Database, dir, poolerPort)
	check.Eventually(t, "PgBouncer", func() bool {
		conn, err := pgx.Connect(t.Context(), through)
		if err == nil {
			conn.Close(t.Context())
		}
		return err == nil
	})
	return through
}

// poolerAccount is an unprivileged user who can reach a database server: the owner
// of its socket, or anybody where it is on the network.
func poolerAccount(t testing.TB, host string) (uid, gid uint32) {
	t.Helper()
	if strings.HasPrefix(host, "/") {
		info := check.Must(os.Stat(host))(t)
		if owner := info.Sys().(*syscall.Stat_t); owner.Uid != 0 {
			return owner.Uid, owner.Gid
		}
	}
	nobody := check.Must(user.Lookup("nobody"))(t)
	u, uidErr := strconv.ParseUint(nobody.Uid, 10, 32)
	g, gidErr := strconv.ParseUint(nobody.Gid, 10, 32)
	if uidErr != nil || gidErr != nil {
		t.Fatalf("user and group of nobody: %v, %v", uidErr, gidErr)
	}
	return uint32(u), uint32(g)
}

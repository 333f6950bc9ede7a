//go:build linux || darwin || freebsd || netbsd || openbsd

package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/coppice-chat/coppice/internal/check"
)

// checkRole wants the role that the program connects as to own its database, and
// to have no other right.
func checkRole(t *testing.T, url string) {
	t.Helper()
	const rights = `select concat_ws(' ', current_user, rolsuper, rolcreatedb, rolcreaterole, rolreplication, rolbypassrls,
		(select count(*) from pg_auth_members where member = r.oid),
		(select pg_get_userbyid(datdba) from pg_database where datname = current_database()))
		from pg_roles r where rolname = current_user`
	got, want := query(t, url, rights), "coppice f f f f f 0 coppice"
	check.That(t, got == want, "name, rights, memberships and owner of the database: %s, want %s", got, want)
	for _, statement := range []string{
		"copy (select 1) to program 'true'", "create temp table lines (line text); copy lines from program 'id'",
		"copy (select 1) to '/tmp/coppice-was-here'", "select pg_read_file('postgresql.conf')", "select pg_ls_dir('.')", "select lo_import('/etc/passwd')",
		"create role another", "create database another", "alter system set jit = on", "alter role coppice superuser", "set role coppice_admin",
		"set session authorization coppice_admin", "set session_replication_role = replica", "create extension dblink",
		"create function run() returns int language c as 'libc', 'system'", "drop database coppice with (force)", "select rolpassword from pg_authid",
	} {
		if code := refusal(t, url, statement); code != "42501" && code != "55006" { // insufficient_privilege; object_in_use
			t.Errorf("%s: error code %q, want a refusal", statement, code)
		}
	}
	query(t, url, "create type public.colour as enum ('green')", "create table public.own (id bigint, of public.colour)",
		"create schema aside", "drop schema aside", "drop table own", "drop type colour")
}

// refusal runs a statement on a connection of its own, and returns the code of
// its error.
func refusal(t *testing.T, url, statement string) string {
	t.Helper()
	conn := check.Must(pgx.Connect(t.Context(), url))(t)
	defer conn.Close(t.Context())
	var answer *pgconn.PgError
	if err := conn.PgConn().Exec(t.Context(), statement).Close(); errors.As(err, &answer) {
		return answer.Code
	}
	return ""
}

func TestRoleOwnsItsDatabaseAndNothingMore(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
	s := mustStart(t, cfg)
	checkRole(t, s.URL())
	got := query(t, s.SuperuserURL(), "select concat_ws(' ', current_user, current_database(), current_setting('is_superuser'))")
	check.That(t, got == "coppice_admin coppice on", "the superuser's URL leads to %s", got)
	// What a superuser restored is the role's from the next start on.
	query(t, s.SuperuserURL(), "create table restored (id bigint)")
	mustStop(t, s)
	s = mustStart(t, cfg)
	query(t, s.URL(), "drop table restored")
}

// A role can define functions in its schema. The package's own statements as the
// superuser must not call them in the place of Postgres' functions.
func TestRoleCantLendTheSuperuserItsFunctions(t *testing.T) {
	t.Parallel()
	cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
	s := mustStart(t, cfg)
	query(t, s.SuperuserURL(), "create table restored (id bigint)") // for the hand-over to have work
	for _, argument := range []string{"regnamespace", "regclass", "regtype", "regprocedure"} {
		query(t, s.URL(), fmt.Sprintf(`create function public.format(text, %s) returns text language plpgsql as $$
			begin execute 'alter role coppice superuser'; return 'select 1'; end $$`, argument))
	}
	mustStop(t, s)
	s = mustStart(t, cfg)
	check.Equal(t, "superuser", query(t, s.URL(), "show is_superuser"), "off")
	query(t, s.URL(), "drop table restored")
}

func TestRoot(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("not running as root: there is no user to drop to")
	}
	cfg := testConfig(t, filepath.Join(tempDir(t), "data"))
	s := mustStart(t, cfg)
	fi := check.Must(os.Stat(filepath.Join(cfg.DataDir, "cluster", "postmaster.pid")))(t)
	uid, gid := owner(fi)
	check.That(t, uid != 0 && gid != 0 && uid == s.user.uid,
		"the server runs as user %d, group %d, want %+v", uid, gid, s.user)
	if process, err := os.Stat(fmt.Sprintf("/proc/%d", s.postmaster.cmd.Process.Pid)); err == nil { // where there is a /proc
		if uid, _ := owner(process); uid != s.user.uid {
			t.Errorf("the server's process belongs to user %d, want %+v", uid, s.user)
		}
	}
	query(t, s.URL(), "CREATE TABLE kept AS SELECT 7 AS n")
	mustStop(t, s)

	// A cluster that came back from a backup as root's.
	err := filepath.WalkDir(filepath.Join(cfg.DataDir, "cluster"), func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, 0, 0))
	})
	check.NoError(t, err)
	s = mustStart(t, cfg)
	check.Equal(t, "the table holds", query(t, s.URL(), "SELECT n FROM kept"), "7")
}

func TestRootInClosedFolder(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("not running as root: there is no user to drop to")
	}
	closed := filepath.Join(tempDir(t), "closed")
	check.NoError(t, os.Mkdir(closed, 0o700))
	_, err := Start(t.Context(), testConfig(t, filepath.Join(closed, "more", "data")))
	check.Need(t, err != nil, "started in a folder that the server's user can't enter")
	for _, want := range []string{closed + " (drwx------)", "--data-dir", `"postgres"`} {
		if want == `"postgres"` && strings.Contains(err.Error(), `"nobody"`) {
			continue // a system without the user postgres
		}
		check.That(t, strings.Contains(err.Error(), want), "%q does not name %s", err, want)
	}
	entries, err := os.ReadDir(closed)
	check.That(t, err == nil && len(entries) == 0, "the closed folder was changed: %v, %v", entries, err)

	// A closed cache is no obstacle: binaries go where the user gets at them.
	cfg := testConfig(t, tempDir(t))
	cfg.CacheDir = filepath.Join(closed, "cache")
	dir, user, err := openDataDir(cfg.DataDir)
	check.NoError(t, err)
	got, err := finder{cfg: cfg, dir: dir, user: user, log: cfg.Logger}.cacheDir()
	if want := filepath.Join(cfg.DataDir, "binaries"); err != nil || got != want {
		t.Errorf("the cache is %s, %v, want %s", got, err, want)
	}
}

// Root takes no data directory whose cluster others could replace, and leaves it as it is.
func TestRootInAFolderOfOthers(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("not running as root: Postgres then runs as the same user")
	}
	for _, c := range []struct {
		uid, gid int
		mode     fs.FileMode
	}{{12345, 0, 0o700}, {0, 12345, 0o770}, {0, 0, 0o777}} {
		dir := filepath.Join(tempDir(t), "data")
		check.NoError(t, errors.Join(os.Mkdir(dir, 0o700), os.Chown(dir, c.uid, c.gid), os.Chmod(dir, c.mode)))
		before := check.Must(os.Stat(dir))(t)
		_, err := Start(t.Context(), testConfig(t, dir))
		if err == nil || !strings.Contains(err.Error(), "chown root "+dir) || !strings.Contains(err.Error(), "chmod 700 "+dir) {
			t.Errorf("%+v: %v", c, err)
		}
		if after := check.Must(os.Stat(dir))(t); after.Mode() != before.Mode() || len(check.Must(os.ReadDir(dir))(t)) > 0 {
			t.Errorf("%+v: the folder was changed", c)
		}
		check.NoError(t, errors.Join(os.Chown(dir, 0, 0), os.Chmod(dir, 0o700))) // as the error says
		if _, _, err := openDataDir(dir); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// A folder that can't be made, as in a container, is an error that names the ways out.
func TestDataDirThatCannotBeMade(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	check.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := Start(t.Context(), Config{DataDir: filepath.Join(file, "coppice")})
	if err == nil || !strings.Contains(err.Error(), "DATABASE_URL") || !strings.Contains(err.Error(), "--data-dir") {
		t.Error(err)
	}
}

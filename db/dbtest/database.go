package dbtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/migrate"
)

const (
	databasePrefix = "coppice_test_"
	templatePrefix = "coppice_template_"

	// emptyTemplate is the only one that takes another encoding than its own.
	emptyTemplate = "template0"

	// leftoverAge is when a test's database counts as forgotten: no test lasts
	// that long.
	leftoverAge = 6 * time.Hour

	// citusShards is enough for a conversation to be on another shard than the next.
	citusShards = 4

	// templateLock is the advisory lock under which test binaries that share a
	// server make a template.
	templateLock = 0x636f7070696365
)

// clone creates a database out of template.
func (s *server) clone(ctx context.Context, name, template string) error {
	statement := "create database " + quote(name) + " template " + quote(template)
	if template == emptyTemplate {
		statement += " encoding 'UTF8'" // a server may have another by default
	}
	if s.copies {
		statement += " strategy file_copy"
	}
	_, err := s.admin.Exec(ctx, statement)
	if err == nil && s.citus && template != emptyTemplate {
		// What migrate.Distribute set for the template. A clone doesn't inherit it.
		_, err = s.admin.Exec(ctx, "alter role current_user in database "+quote(name)+" set plan_cache_mode = 'force_generic_plan'")
	}
	return err
}

// drop ends the connections to a database and drops it.
func (s *server) drop(ctx context.Context, name string) error {
	if s.citus { // whose processes come back until nobody may connect
		_, err := s.admin.Exec(ctx, "alter database "+quote(name)+" with allow_connections false")
		if pgErr := (*pgconn.PgError)(nil); err != nil && !(errors.As(err, &pgErr) && pgErr.Code == "3D000") { // invalid_catalog_name: it is gone
			return err
		}
	}
	for tries := 1; ; tries++ {
		_, err := s.admin.Exec(ctx, "drop database if exists "+quote(name)+" with (force)")
		pgErr := (*pgconn.PgError)(nil)
		// Postgres gives the processes that it ends 5 s. On a busy machine those of
		// Citus take longer.
		if s.citus && tries < 12 && errors.As(err, &pgErr) && pgErr.Code == "55006" { // object_in_use
			continue
		}
		return err
	}
}

// makeTemplate makes sure that the server has a database of this name with the
// migrations applied. Several test binaries may share the server: the first
// makes it, the others find it. It gets its name last, so a template with a
// name is a whole one.
func (s *server) makeTemplate(ctx context.Context, name string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("make the migrated template %s: %w", name, err)
		}
	}()
	conn, err := s.admin.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "select pg_advisory_lock($1)", int64(templateLock)); err != nil {
		return err
	}
	defer func() {
		_, unlockErr := conn.Exec(ctx, "select pg_advisory_unlock($1)", int64(templateLock))
		err = errors.Join(err, unlockErr)
	}()

	var exists bool
	err = conn.QueryRow(ctx, "select exists (select from pg_database where datname = $1)", name).Scan(&exists)
	if err != nil || exists {
		return err
	}
	draft := name + "_draft"
	if err := s.drop(ctx, draft); err != nil {
		return err
	}
	if err := s.clone(ctx, draft, emptyTemplate); err != nil {
		return err
	}
	if _, _, err := migrate.Up(ctx, db.Config{URL: withDatabase(s.url, draft)}); err != nil {
		return err
	}
	if s.citus {
		if _, err := migrate.Distribute(ctx, withDatabase(s.url, draft), citusShards, slog.New(slog.DiscardHandler)); err != nil {
			return err
		}
	}
	// Nobody may connect to it: a database in use can't be cloned.
	if _, err := conn.Exec(ctx, "alter database "+quote(draft)+" with allow_connections false"); err != nil {
		return err
	}
	if s.citus { // a process of Citus is connected to each of its databases
		if _, err := conn.Exec(ctx, "select pg_terminate_backend(pid, 30000) from pg_stat_activity where datname = $1", draft); err != nil {
			return err
		}
	}
	_, err = conn.Exec(ctx, "alter database "+quote(draft)+" rename to "+quote(name))
	return err
}

// templateName stands for the migrations, ours and those of the job queue:
// changed ones make another template.
func templateName() (string, error) {
	h := sha256.New()
	err := fs.WalkDir(migrate.Files(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(migrate.Files(), path)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%s %d\n%s", path, len(text), text)
		return nil
	})
	if err != nil {
		return "", err
	}
	jobs, err := rivermigrate.New(riverpgxv5.New(nil), nil)
	if err != nil {
		return "", err
	}
	for _, migration := range jobs.AllVersions() {
		fmt.Fprintf(h, "river %d\n%s", migration.Version, migration.SQLUp)
	}
	return templatePrefix + hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// sweep drops databases of tests that were killed before they could. Only a
// shared server has any; the others begin empty.
func (s *server) sweep(ctx context.Context) error {
	// Postgres would wait for a database in use, hoping that it is left.
	rows, err := s.admin.Query(ctx, `
		select d.datname from pg_database d
		where starts_with(d.datname, $1)
		  and not exists (select from pg_stat_activity a where a.datname = d.datname)`, databasePrefix)
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		made, ok := stampTime(name)
		if !ok || time.Since(made) < leftoverAge {
			continue
		}
		// Not by force: whoever is connected still wants it.
		_, err := s.admin.Exec(ctx, "drop database if exists "+quote(name))
		if pgErr := (*pgconn.PgError)(nil); errors.As(err, &pgErr) {
			continue // in use after all, or another test binary was faster
		} else if err != nil {
			return err
		}
	}
	return nil
}

// stamp is a time as it stands in a database's name; stampTime reads it back.
func stamp(at time.Time) string {
	return strconv.FormatInt(at.Unix(), 10)
}

func stampTime(database string) (time.Time, bool) {
	seconds, _, ok := strings.Cut(strings.TrimPrefix(database, databasePrefix), "_")
	n, err := strconv.ParseInt(seconds, 10, 64)
	return time.Unix(n, 0), ok && err == nil
}

// withDatabase is a connection string that differs from given in its database.
func withDatabase(given, name string) string {
	if !strings.HasPrefix(given, "postgres://") && !strings.HasPrefix(given, "postgresql://") {
		return given + " dbname=" + name // of two settings the later counts
	}
	u, err := url.Parse(given)
	if err != nil {
		return given // it was connected to, so it parses
	}
	u.Path, u.RawPath = "/"+name, ""
	q := u.Query()
	q.Del("dbname")
	// A plus is a space to net/url, and a plus to Postgres.
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	return u.String()
}

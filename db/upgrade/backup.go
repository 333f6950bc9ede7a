package upgrade

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/migrate"
	"github.com/coppice-chat/coppice/fault"
)

// A backup is a zstd stream of lines: a header, then for each table a line of JSON
// that names it, its rows as COPY writes them, and the line \. that ends them; last a
// line with the sequences and the number of rows of each table. A backup without its
// last line is cut.
type (
	backupHeader struct {
		Version  int       `json:"coppice_backup"` // of this format
		Schema   int64     `json:"schema"`
		Postgres string    `json:"postgres"`
		MadeAt   time.Time `json:"made_at"`
	}
	backupEnd struct {
		Rows      map[string]int64    `json:"rows"`
		Sequences map[string]sequence `json:"sequences"`
	}
)

const backupVersion = 1

// What is backed up of a database: what is in Coppice's schema, but for the tables in
// which migrations are counted.
const backedUp = "and relnamespace = current_schema()::regnamespace and relname !~ '^(goose_|river_migration)'"

// rowsEnd ends the rows of a table. No row is written so.
const rowsEnd = `\.`

// ErrNotABackup says that a file is none that Backup made, or is cut.
var ErrNotABackup = fault.New(fault.Invalid, "not_a_backup", "", "The file is no backup of coppice backup, or it was cut. Nothing was restored.")

// notABackup is ErrNotABackup, with what else than the end of the file kept from reading it.
func notABackup(err error) error {
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrNotABackup
	}
	return errors.Join(ErrNotABackup, err)
}

// ErrNotEmpty says that a database can't be restored into.
var ErrNotEmpty = fault.New(fault.Conflict, "not_empty", "", "The database is in use, or has the tables of another version. Restore into a new one.")

// Backup writes what a database has, as of one moment, while servers work on it. It
// needs no program of Postgres', and any version from 14 on can read it. tell is
// called for each table. It returns how many rows the backup has.
//
// A database whose schema isn't that of the program is a [db.CheckSchema] error.
func Backup(ctx context.Context, url string, w io.Writer, tell func(text string)) (rows int64, err error) {
	defer db.Wrap(&err, "upgrade.Backup")
	conn, err := openLong(ctx, url)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return 0, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	if err := db.CheckSchema(ctx, tx); err != nil {
		return 0, err
	}
	header := backupHeader{Version: backupVersion, MadeAt: time.Now().UTC().Truncate(time.Second)}
	if err := tx.QueryRow(ctx, "select (select max(version_id) from goose_db_version), current_setting('server_version')").Scan(&header.Schema, &header.Postgres); err != nil {
		return 0, err
	}
	tables, err := tablesOf(ctx, conn, backedUp)
	if err != nil {
		return 0, err
	}
	z, err := zstd.NewWriter(w)
	if err != nil {
		return 0, err
	}
	defer z.Close()
	lines := json.NewEncoder(z)
	if err := lines.Encode(header); err != nil {
		return 0, err
	}
	end := backupEnd{Rows: map[string]int64{}}
	for _, t := range tables {
		if err := lines.Encode(t); err != nil {
			return 0, err
		}
		tag, err := conn.PgConn().CopyTo(ctx, z, fmt.Sprintf("copy %s (%s) to stdout", t.Name, t.Columns))
		if err != nil {
			return 0, fmt.Errorf("table %s: %w", t.Name, err)
		}
		if _, err := io.WriteString(z, rowsEnd+"\n"); err != nil {
			return 0, err
		}
		end.Rows[t.Name] = tag.RowsAffected()
		rows += tag.RowsAffected()
		told(tell, "copied", t.Name, tag.RowsAffected())
	}
	if end.Sequences, err = readSequences(ctx, conn, backedUp); err != nil {
		return 0, err
	}
	if err := lines.Encode(end); err != nil {
		return 0, err
	}
	return rows, z.Close()
}

// Restore reads a backup into a database that is empty, or has only tables of others.
// It makes the schema that the backup has, fills it in one transaction, and then
// brings it up to date. It is ErrNotEmpty where the database is in use, and
// ErrNotABackup for another file; the tables stay empty then. It returns how many
// rows it restored.
func Restore(ctx context.Context, url string, r io.Reader, tell func(text string)) (rows int64, err error) {
	defer db.Wrap(&err, "upgrade.Restore")
	z, err := zstd.NewReader(r, zstd.WithDecoderMaxMemory(64<<20), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return 0, err
	}
	defer z.Close()
	in := bufio.NewReaderSize(z, 64<<10)
	var header backupHeader
	if err := readLine(in, &header); err != nil || header.Version != backupVersion {
		return 0, notABackup(err)
	}
	if header.Schema > db.SchemaVersion {
		return 0, fmt.Errorf("%w (the backup's schema is version %d, the program's %d)", db.ErrSchemaNewer, header.Schema, db.SchemaVersion)
	}
	conn, err := openLong(ctx, url)
	if err != nil {
		return 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	config := db.Config{URL: url}
	if err := db.CheckSchema(ctx, conn); errors.Is(err, db.ErrNoSchema) {
		if err := migrate.To(ctx, config, header.Schema); err != nil {
			return 0, err
		}
	} else if err := checkEmpty(ctx, conn, header.Schema); err != nil {
		return 0, err
	}
	if rows, err = fill(ctx, conn, in, tell); err != nil {
		return 0, err
	}
	if _, _, err := migrate.Up(ctx, config); err != nil {
		return rows, err
	}
	_, err = conn.Exec(ctx, "analyze")
	return rows, err
}

// checkEmpty checks that a schema is of a version, and that nobody has used it: a
// restoration that failed left it so.
func checkEmpty(ctx context.Context, conn *pgx.Conn, version int64) error {
	var have int64
	var used bool
	err := conn.QueryRow(ctx, "select (select max(version_id) from goose_db_version), exists (select from conversations) or exists (select from api_keys)").Scan(&have, &used)
	if err == nil && (used || have != version) {
		err = ErrNotEmpty
	}
	return err
}

// fill reads the tables of a backup in one transaction.
func fill(ctx context.Context, conn *pgx.Conn, in *bufio.Reader, tell func(text string)) (rows int64, err error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	own, err := tablesOf(ctx, conn, backedUp)
	if err != nil {
		return 0, err
	}
	names, columns := make([]string, len(own)), map[string][]string{}
	for i, t := range own {
		names[i], columns[t.Name] = t.Name, strings.Split(t.Columns, ", ")
	}
	if _, err := tx.Exec(ctx, "truncate "+strings.Join(names, ", ")); err != nil { // migrations made some rows
		return 0, err
	}
	found := map[string]int64{}
	for {
		var line struct {
			table
			backupEnd
		}
		if err := readLine(in, &line); err != nil {
			return 0, notABackup(err)
		}
		if line.Name == "" {
			for table, n := range line.Rows {
				if found[table] != n {
					return 0, fmt.Errorf("%w: table %s has %d rows, and had %d", ErrNotABackup, table, found[table], n)
				}
			}
			if len(line.Rows) == 0 {
				return 0, ErrNotABackup
			}
			if err := writeSequences(ctx, conn, line.Sequences); err != nil {
				return 0, err
			}
			return rows, tx.Commit(ctx)
		}
		if len(without(strings.Split(line.Columns, ", "), columns[line.Name])) > 0 { // they become SQL
			return 0, fmt.Errorf("%w: this version has no table %q with the columns %q", ErrNotABackup, line.Name, line.Columns)
		}
		from := &tableRows{in: in}
		tag, err := conn.PgConn().CopyFrom(ctx, from, fmt.Sprintf("copy %s (%s) from stdin", line.Name, line.Columns))
		if err != nil {
			return 0, fmt.Errorf("table %s: %w", line.Name, cmp.Or(from.err, err))
		}
		found[line.Name] = tag.RowsAffected()
		rows += tag.RowsAffected()
		told(tell, "restored", line.Name, tag.RowsAffected())
	}
}

// told tells of a table that has rows.
func told(tell func(string), what, table string, rows int64) {
	if rows > 0 {
		tell(fmt.Sprintf("%s %s: %d rows", what, table, rows))
	}
}

// tableRows reads the rows of a table, to the line that ends them.
type tableRows struct {
	in    *bufio.Reader
	rest  []byte // of the piece of a line that was read
	amid  bool   // the next piece goes on with a line
	ended bool
	err   error // of reading the file, which Postgres would tell in its own words
}

func (t *tableRows) Read(p []byte) (int, error) {
	if t.ended {
		return 0, io.EOF
	}
	if len(t.rest) == 0 {
		piece, err := t.in.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			t.err = notABackup(err)
			return 0, t.err
		}
		if !t.amid && bytes.Equal(piece, []byte(rowsEnd+"\n")) {
			t.ended = true
			return 0, io.EOF
		}
		t.rest, t.amid = piece, err != nil
	}
	n := copy(p, t.rest)
	t.rest = t.rest[n:]
	return n, nil
}

// maxBackupLine bounds a line of JSON.
const maxBackupLine = 1 << 20

func readLine(in *bufio.Reader, into any) error {
	var line []byte
	for {
		piece, err := in.ReadSlice('\n')
		line = append(line, piece...)
		if err == nil {
			return json.Unmarshal(line, into)
		}
		if !errors.Is(err, bufio.ErrBufferFull) || len(line) > maxBackupLine {
			return err
		}
	}
}

// openLong connects for statements that take long.
func openLong(ctx context.Context, url string) (*pgx.Conn, error) {
	config, err := db.Config{URL: url}.Parse()
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, config.ConnConfig)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "set statement_timeout = 0; set idle_in_transaction_session_timeout = 0"); err != nil {
		_ = conn.Close(ctx)
		return nil, err
	}
	return conn, nil
}

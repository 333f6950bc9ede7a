package upgrade

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// A table is one whose rows are moved, as SQL writes its name and columns.
type table struct {
	Name    string `json:"table"`
	Columns string `json:"columns"`
}

// tablesOf lists the tables of a database, or which of them. Columns that Postgres
// computes aren't copied. A table comes after those that its foreign keys name.
func tablesOf(ctx context.Context, conn *pgx.Conn, which string) ([]table, error) {
	rows, err := conn.Query(ctx, `
		select c.oid::regclass::text as name, string_agg(quote_ident(attname), ', ' order by attnum) filter (where attgenerated = '') as columns
		from pg_class c join pg_attribute on attrelid = c.oid
		where c.oid >= 16384 and relkind = 'r' and attnum > 0 and not attisdropped
			and relnamespace not in (select oid from pg_namespace where nspname ~ '^pg_(toast|temp)')
			and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e') `+which+`
		group by c.oid order by c.oid`)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByName[table])
}

// copyExtensions makes the old database's extensions in the new one.
func (p pair) copyExtensions(ctx context.Context) error {
	statements, err := texts(ctx, p.from, extensions)
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := p.to.Exec(ctx, statement); err != nil {
			return fmt.Errorf("an extension of the old cluster can't be made in the new one: %w. Install it for the newer PostgreSQL, or drop it in the old cluster", err)
		}
	}
	return nil
}

// copyAll copies every row, in one transaction. Indexes are built afterwards, as
// they stand in the old database. Foreign keys are not checked on the way: they
// hold in the old database, and prove finds the same rows in the new one.
func (p pair) copyAll(ctx context.Context, tables []table, tell func(text string)) error {
	drop, err := texts(ctx, p.to, indexNames)
	if err != nil {
		return err
	}
	build, err := texts(ctx, p.from, indexDefinitions)
	if err != nil {
		return err
	}
	tx, err := p.to.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	names := make([]string, len(tables))
	for i, t := range tables {
		names[i] = t.Name
	}
	before := []string{"set local session_replication_role = replica", "set local maintenance_work_mem = '256MB'", "truncate " + strings.Join(names, ", ")}
	if len(drop) > 0 {
		before = append(before, "drop index "+strings.Join(drop, ", "))
	}
	if _, err := tx.Exec(ctx, strings.Join(before, ";")); err != nil {
		return err
	}
	for _, t := range tables {
		tag, err := p.copyRows(ctx, t)
		if err != nil {
			return fmt.Errorf("table %s: %w", t.Name, err)
		}
		tell(fmt.Sprintf("copied %s: %d rows", t.Name, tag.RowsAffected()))
	}
	all, err := readSequences(ctx, p.from, "")
	if err != nil {
		return err
	}
	if err := writeSequences(ctx, p.to, all); err != nil {
		return err
	}
	for _, statement := range build {
		tell("building the index: " + statement)
		if _, err := tx.Exec(ctx, statement); err != nil {
			return err
		}
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	_, err = p.to.Exec(ctx, "vacuum (analyze)") // for plans, and scans of indexes alone
	return err
}

// copyRows streams a table as text, which every version reads alike.
func (p pair) copyRows(ctx context.Context, t table) (tag pgconn.CommandTag, err error) {
	r, w := io.Pipe()
	sent := make(chan error, 1)
	go func() {
		_, err := p.from.PgConn().CopyTo(ctx, w, fmt.Sprintf("copy %s (%s) to stdout", t.Name, t.Columns))
		w.CloseWithError(err)
		sent <- err
	}()
	tag, err = p.to.PgConn().CopyFrom(ctx, r, fmt.Sprintf("copy %s (%s) from stdin (freeze)", t.Name, t.Columns))
	r.CloseWithError(err)
	return tag, errors.Join(err, <-sent)
}

// A sequence is where one stands.
type sequence struct {
	Last   int64 `json:"last"`
	Called bool  `json:"called"`
}

// readSequences reads where the sequences of a database stand, or which of them.
func readSequences(ctx context.Context, conn *pgx.Conn, which string) (map[string]sequence, error) {
	names, err := texts(ctx, conn, "select oid::regclass::text from pg_class where oid >= 16384 and relkind = 'S' "+which+" order by 1")
	if err != nil {
		return nil, err
	}
	all := map[string]sequence{}
	for _, name := range names {
		var s sequence
		if err := conn.QueryRow(ctx, "select last_value, is_called from "+name).Scan(&s.Last, &s.Called); err != nil {
			return nil, err
		}
		all[name] = s
	}
	return all, nil
}

func writeSequences(ctx context.Context, conn *pgx.Conn, all map[string]sequence) error {
	for name, s := range all {
		if _, err := conn.Exec(ctx, "select setval($1::text::regclass, $2, $3)", name, s.Last, s.Called); err != nil {
			return err
		}
	}
	return nil
}

// prove compares a table's rows, and returns their number: the number and the sum
// of digests are the same on both sides, in whatever order the rows stand.
func (p pair) prove(ctx context.Context, t table) (int64, error) {
	type sum struct {
		rows   int64
		digest string
		err    error
	}
	take := func(conn *pgx.Conn) (s sum) {
		s.err = conn.QueryRow(ctx, fmt.Sprintf(`select count(*), coalesce(sum(('x' || left(md5(row(%s)::text), 16))::bit(64)::bigint), 0)::text from %s`,
			t.Columns, t.Name)).Scan(&s.rows, &s.digest)
		return s
	}
	found := make(chan sum, 1)
	go func() { found <- take(p.to) }()
	from := take(p.from)
	to := <-found
	if err := errors.Join(from.err, to.err); err != nil {
		return 0, fmt.Errorf("table %s: %w", t.Name, err)
	}
	if from != to {
		return 0, fmt.Errorf("the table %s has %d rows in the new cluster with the digest %s, and %d with %s in the old one: the new one is not taken",
			t.Name, to.rows, to.digest, from.rows, from.digest)
	}
	return from.rows, nil
}

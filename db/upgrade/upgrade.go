// Package upgrade moves all the data of a database: a private Postgres to another
// major version, table by table between two servers, and any database to a file and
// back. It needs no program besides the servers, because the package from npm brings
// no others.
package upgrade

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/embedded"
	"github.com/coppice-chat/coppice/db/migrate"
)

// A Result tells what was moved.
type Result struct {
	embedded.Upgraded
	Tables int
	Rows   int64
}

// A ForeignError says that the old cluster holds what Coppice didn't make, and what
// isn't moved therefore; or that something of Coppice's is missing there. Nothing
// was moved.
type ForeignError struct {
	Foreign []string // what only the old cluster has
	Missing []string // what only a new one has
}

func (e *ForeignError) Error() string {
	var b strings.Builder
	b.WriteString("this data directory is not as Coppice made it. Nothing was moved, and the old cluster is in use as before.")
	if len(e.Foreign) > 0 {
		b.WriteString(" An upgrade would lose this; drop it first, and make it again after the upgrade, or use pg_dump as docs/operate.md says:\n  " + strings.Join(e.Foreign, "\n  "))
	}
	if len(e.Missing) > 0 {
		b.WriteString("\nThis is missing; restore it first:\n  " + strings.Join(e.Missing, "\n  "))
	}
	return b.String()
}

// Run moves the data directory that cfg names to Postgres cfg.Major, or to the
// newest version that can be had. It tells of each step that may take long. The
// errors are those of [embedded.Upgrade], [*ForeignError], and those of the
// migrations: the old cluster's schema is brought up to date first.
//
// Where an upgrade that was killed had all but ended, Run finishes it, and the
// result has no tables.
func Run(ctx context.Context, cfg embedded.Config, tell func(text string)) (r Result, err error) {
	done, err := embedded.Upgrade(ctx, cfg, func(ctx context.Context, from, to *embedded.Server) error {
		return r.move(ctx, from, to, tell)
	})
	if err != nil {
		return Result{}, err
	}
	r.Upgraded = *done
	return r, nil
}

func (r *Result) move(ctx context.Context, from, to *embedded.Server, tell func(text string)) (err error) {
	defer db.Wrap(&err, "upgrade.move(%s, %s)", from.Version(), to.Version())
	tell(fmt.Sprintf("moving from PostgreSQL %s to %s", from.Version(), to.Version()))
	_, have, err := migrate.Up(ctx, db.Config{URL: from.URL()})
	if err != nil {
		return err
	}
	_, want, err := migrate.Up(ctx, db.Config{URL: to.URL()})
	if err != nil {
		return err
	}
	if have > want {
		return fmt.Errorf("%w (the schema is version %d, the program's %d)", db.ErrSchemaNewer, have, want)
	}
	p, err := connect(ctx, from.SuperuserURL(), to.SuperuserURL())
	if err != nil {
		return err
	}
	defer p.close()
	if err := p.copyExtensions(ctx); err != nil {
		return err
	}
	outside, err := connect(ctx, outsideURL(from), outsideURL(to))
	if err != nil {
		return err
	}
	defer outside.close()
	e := &ForeignError{}
	if err := errors.Join(e.compare(ctx, outside, shared), e.compare(ctx, outside, objects), e.compare(ctx, p, objects)); err != nil {
		return err
	}
	if len(e.Foreign)+len(e.Missing) > 0 {
		return e
	}
	tables, err := tablesOf(ctx, p.from, "")
	if err != nil {
		return err
	}
	if err := p.copyAll(ctx, tables, tell); err != nil {
		return err
	}
	tell("comparing every row")
	for _, t := range tables {
		rows, err := p.prove(ctx, t)
		if err != nil {
			return err
		}
		r.Tables, r.Rows = r.Tables+1, r.Rows+rows
	}
	e = &ForeignError{}
	if err := e.compare(ctx, p, carried); err != nil {
		return err
	}
	if len(e.Foreign)+len(e.Missing) > 0 {
		return fmt.Errorf("the new cluster has other indexes or extensions than the old one, and is not taken: it lacks %q, and has %q", e.Foreign, e.Missing)
	}
	return nil
}

// outsideURL is the database that every cluster has, and that Coppice doesn't use.
func outsideURL(s *embedded.Server) string {
	return strings.Replace(s.SuperuserURL(), "/coppice?", "/postgres?", 1)
}

// A pair is a database on the old server and the same one on the new server.
type pair struct{ from, to *pgx.Conn }

func connect(ctx context.Context, from, to string) (p pair, err error) {
	if p.from, err = pgx.Connect(ctx, from); err != nil {
		return p, err
	}
	if p.to, err = pgx.Connect(ctx, to); err != nil {
		p.from.Close(ctx)
		return p, err
	}
	// Names come with their schemas, whichever these are.
	for _, conn := range []*pgx.Conn{p.from, p.to} {
		if _, err := conn.Exec(ctx, "set search_path = pg_catalog; set statement_timeout = 0; set idle_in_transaction_session_timeout = 0"); err != nil {
			p.close()
			return p, err
		}
	}
	return p, nil
}

func (p pair) close() {
	_ = p.from.Close(context.Background())
	_ = p.to.Close(context.Background())
}

// compare holds what a query tells of both databases against each other.
func (e *ForeignError) compare(ctx context.Context, p pair, query string) error {
	from, err := texts(ctx, p.from, query)
	if err != nil {
		return err
	}
	to, err := texts(ctx, p.to, query)
	if err != nil {
		return err
	}
	e.Foreign = append(e.Foreign, without(from, to)...)
	e.Missing = append(e.Missing, without(to, from)...)
	return nil
}

func texts(ctx context.Context, conn *pgx.Conn, query string) ([]string, error) {
	rows, err := conn.Query(ctx, query)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

func without(list, others []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(others, s) })
}

//go:build linux || darwin || freebsd || netbsd || openbsd

package upgrade

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// A row that is missing, doubled or changed is seen, in whatever order rows stand.
func TestProve(t *testing.T) {
	t.Parallel()
	p := check.Must(connect(t.Context(), dbtest.Empty(t), dbtest.Empty(t)))(t)
	t.Cleanup(p.close)
	execute := func(conn *pgx.Conn, statement string) {
		t.Helper()
		check.Must(conn.Exec(t.Context(), statement))(t)
	}
	const create = `create table public.rows (id int, said text, "odd name" bytea)`
	execute(p.from, create+`; insert into public.rows select n, 'said ' || n, '\xff00' from generate_series(1, 50) n`)
	execute(p.to, create+`; insert into public.rows select n, 'said ' || n, '\xff00' from generate_series(50, 1, -1) n`)
	tables, err := tablesOf(t.Context(), p.from, "")
	check.Need(t, err == nil && len(tables) == 1 && tables[0].Columns == `id, said, "odd name"`,
		"got %q, %v", tables, err)
	rows, err := p.prove(t.Context(), tables[0])
	check.That(t, err == nil && rows == 50, "the same rows: %d, %v", rows, err)
	for _, change := range []struct{ do, undo string }{
		{"delete from public.rows where id = 7", `insert into public.rows values (7, 'said 7', '\xff00')`},
		{"insert into public.rows values (51, '', '')", "delete from public.rows where id = 51"},
		{"update public.rows set said = null where id = 7", "update public.rows set said = 'said 7' where id = 7"},
		{`update public.rows set "odd name" = '\xff01' where id = 7`, `update public.rows set "odd name" = '\xff00' where id = 7`},
		{"update public.rows set id = 8 where id = 7", "update public.rows set id = 7 where said = 'said 7'"},
	} {
		execute(p.to, change.do)
		if _, err := p.prove(t.Context(), tables[0]); err == nil || !strings.Contains(err.Error(), "is not taken") {
			t.Errorf("%s: got %v, want an error", change.do, err)
		}
		execute(p.to, change.undo)
		if _, err := p.prove(t.Context(), tables[0]); err != nil {
			t.Errorf("%s: %v", change.undo, err)
		}
	}
}

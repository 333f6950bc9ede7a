package migrate_test

import (
	"os"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// riverColumns are a schema's columns of river_job, and the states of a job.
const riverColumns = `
select format('%s %s%s%s', a.attname, replace(format_type(a.atttypid, a.atttypmod), 'given.', ''), case when a.attnotnull then ' not null' end,
       ' default ' || replace(pg_get_expr(d.adbin, d.adrelid), 'given.', ''))
from pg_attribute a
left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where a.attrelid = ($1 || '.river_job')::regclass and a.attnum > 0 and not a.attisdropped
union all
select 'state ' || enumlabel from pg_enum where enumtypid = ($1 || '.river_job_state')::regtype
order by 1`

// sqlc checks the queries of jobs against river.sql, so what that says must be
// what River makes.
func TestRiversTableIsAsDescribed(t *testing.T) {
	t.Parallel()
	described := check.Must(os.ReadFile("../river.sql"))(t)
	conn := connect(t, dbtest.URL(t))
	check.Must(conn.Exec(t.Context(), "create schema given; set search_path to given;"+string(described)+"; set search_path to public"))(t)
	var columns [2][]string
	for i, schema := range []string{"public", "given"} {
		rows, err := conn.Query(t.Context(), riverColumns, schema)
		check.NoError(t, err)
		columns[i] = check.Must(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
	}
	made, said := columns[0], columns[1]
	if len(made) < 25 || !slices.Equal(made, said) {
		t.Errorf("River makes, and river.sql hasn't: %q\nriver.sql has, and River doesn't make: %q", without(made, said), without(said, made))
	}
}

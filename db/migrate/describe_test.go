package migrate_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/internal/check"
)

// catalog describes what a migration can make in the schema public, a line for
// each thing. Columns go by name: where in its table a column stands depends on
// when it came. goose_db_version is goose's own.
const catalog = `
with relation as (
    select c.* from pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind not in ('i', 'I', 't') and c.relname not like 'goose\_db\_version%'
)
select format('%s %s%s%s', case c.relkind
           when 'r' then 'table' when 'p' then 'partitioned table' when 'v' then 'view' when 'm' then 'materialized view'
           when 'S' then 'sequence' when 'c' then 'composite type' when 'f' then 'foreign table' else c.relkind::text end,
       c.relname, case when c.relpersistence <> 'p' then ' unlogged' end, ' with ' || c.reloptions::text)
from relation c
union all
select format('column %s.%s %s%s%s%s%s%s%s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod),
           case when a.attnotnull then ' not null' end,
           case when a.attgenerated <> '' then ' generated as ' || pg_get_expr(d.adbin, d.adrelid) else ' default ' || pg_get_expr(d.adbin, d.adrelid) end,
           case when a.attidentity <> '' then ' identity ' || a.attidentity::text end,
           (select ' collate ' || l.collname from pg_collation l where l.oid = a.attcollation and l.collname <> 'default'),
           case when a.attcompression <> '' then ' compression ' || a.attcompression::text end,
           case when a.attstorage <> t.typstorage then ' storage ' || a.attstorage::text end)
from relation c
join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
join pg_type t on t.oid = a.atttypid
left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
union all
select format('constraint %s on %s: %s', k.conname, c.relname, pg_get_constraintdef(k.oid))
from relation c
join pg_constraint k on k.conrelid = c.oid
where k.contype <> 'n' -- of Postgres 18; the column has it
union all
select 'index ' || pg_get_indexdef(i.indexrelid)
from relation c
join pg_index i on i.indrelid = c.oid
union all
select 'trigger ' || pg_get_triggerdef(g.oid)
from relation c
join pg_trigger g on g.tgrelid = c.oid and not g.tgisinternal
union all
select format('view %s: %s', v.viewname, v.definition) from pg_views v where v.schemaname = 'public'
union all
select format('function %s: %s', p.oid::regprocedure, pg_get_functiondef(p.oid))
from pg_proc p
where p.pronamespace = 'public'::regnamespace and p.prokind in ('f', 'p')
union all
select format('enum %s: %s', t.typname, (select string_agg(e.enumlabel, ', ' order by e.enumsortorder) from pg_enum e where e.enumtypid = t.oid))
from pg_type t
where t.typnamespace = 'public'::regnamespace and t.typtype = 'e'
union all
select format('domain %s: %s', t.typname, format_type(t.typbasetype, t.typtypmod))
from pg_type t
where t.typnamespace = 'public'::regnamespace and t.typtype = 'd'
union all
select 'extension ' || e.extname from pg_extension e where e.extname <> 'plpgsql'`

// describe returns the sorted lines that describe a database's schema.
func describe(t *testing.T, url string) []string {
	t.Helper()
	rows := check.Must(connect(t, url).Query(t.Context(), catalog))(t)
	lines := check.Must(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
	// The background jobs' tables are River's to describe, and Citus has views of its own.
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, "river_") || strings.Contains(line, "citus") })
	slices.Sort(lines)
	return lines
}

// without returns the lines of a that b has not.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(line string) bool {
		return slices.Contains(b, line)
	})
}

package upgrade

// The queries below describe databases of Postgres 14 to 18 alike, a text for each
// thing. Ids below 16384 are Postgres' own. What belongs to an extension comes with
// the extension.

// shared describes what all databases of a cluster share.
const shared = `
select format('role %I%s%s%s%s%s%s%s', rolname, case when rolsuper then ' superuser' end, case when rolcreatedb then ' createdb' end,
	case when rolcreaterole then ' createrole' end, case when rolreplication then ' replication' end, case when rolbypassrls then ' bypassrls' end,
	case when rolcanlogin then ' login' end, case when rolpassword is not null then ' password' end)
from pg_authid where rolname !~ '^pg_'
union all
select format('role %s is a member of %s', member::regrole, roleid::regrole) from pg_auth_members where member >= 16384 or roleid >= 16384
union all
select format('database %I, encoding %s%s', datname, pg_encoding_to_char(encoding), ' limit ' || nullif(datconnlimit, -1)) from pg_database
union all
select format('tablespace %I', spcname) from pg_tablespace where oid >= 16384
union all
select format('setting of role %s in database %s: %s', nullif(setrole, 0)::regrole, (select datname from pg_database d where d.oid = setdatabase), unnest(setconfig)) from pg_db_role_setting
union all
select format('setting by alter system: %s = %s', name, setting) from pg_file_settings where sourcefile like '%/postgresql.auto.conf'
union all
select 'prepared transaction ' || gid from pg_prepared_xacts
union all
select format('replication slot %s', slot_name) from pg_replication_slots
order by 1`

// objects describes a database without its indexes, which carried describes.
const objects = `
with own as (
	select oid, relname, relkind, relpersistence, relowner, relacl, reloptions, relnamespace::regnamespace::text || '.' || quote_ident(relname) as name
	from pg_class c
	where oid >= 16384 and relnamespace not in (select oid from pg_namespace where nspname ~ '^pg_(toast|temp)')
		and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid and deptype = 'e')
)
select format('%s %s of %s%s%s%s', case relkind when 'r' then 'table' when 'S' then 'sequence' when 'v' then 'view' when 'm' then 'materialized view' else 'relation ' || relkind::text end,
	name, relowner::regrole, case relpersistence when 'u' then ' unlogged' end, ' ' || reloptions::text,
	(select string_agg(format(', %s granted to %s', privilege_type, nullif(grantee, 0)::regrole), '' order by grantee, privilege_type) from aclexplode(relacl) where grantee <> relowner))
from own where relkind not in ('i', 'I')
union all
select format('column %s.%I %s%s%s', name, attname, format_type(atttypid, atttypmod), case when attnotnull then ' not null' end, ' default ' || pg_get_expr(adbin, adrelid))
from own join pg_attribute a on attrelid = own.oid left join pg_attrdef on adrelid = attrelid and adnum = attnum
where relkind in ('r', 'p', 'v', 'm', 'f') and attnum > 0 and not attisdropped
union all
select format('constraint %I on %s: %s', conname, name, pg_get_constraintdef(c.oid)) from own join pg_constraint c on conrelid = own.oid where contype <> 'n'
union all
select format('function %s of %s: %s', p.oid::regprocedure, proowner::regrole, md5(pg_get_functiondef(p.oid)))
from pg_proc p where p.oid >= 16384 and prokind in ('f', 'p') and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = p.oid and deptype = 'e')
union all
select o.type || ' ' || o.identity
from (
	select distinct classid, objid from pg_depend d
	where objid >= 16384 and deptype <> 'e' and objsubid = 0
		and not exists (select from pg_depend e where e.classid = d.classid and e.objid = d.objid and e.deptype = 'e')
	union select 'pg_namespace'::regclass, oid from pg_namespace where oid >= 16384 and nspname !~ '^pg_(toast|temp)'
	union select 'pg_publication'::regclass, oid from pg_publication
	union select 'pg_event_trigger'::regclass, oid from pg_event_trigger
	union select 'pg_foreign_data_wrapper'::regclass, oid from pg_foreign_data_wrapper
	union select 'pg_cast'::regclass, oid from pg_cast where oid >= 16384
) d, pg_identify_object(d.classid, d.objid, 0) o
where classid not in ('pg_class'::regclass, 'pg_constraint'::regclass, 'pg_attrdef'::regclass, 'pg_rewrite'::regclass, 'pg_trigger'::regclass, 'pg_largeobject'::regclass)
	and o.type not in ('extension', 'function', 'procedure') and not (o.type = 'type' and exists ( -- a table's own, or an array
		select from pg_type t left join pg_class c on c.oid = typrelid where t.oid = objid and (typelem <> 0 or relkind <> 'c')))
union all
select format('trigger %I on %s', tgname, name) from own join pg_trigger on tgrelid = own.oid where not tgisinternal
union all
select format('rule %I on %s', rulename, name) from own join pg_rewrite on ev_class = own.oid where rulename <> '_RETURN'
union all
select 'large object ' || oid from pg_largeobject_metadata
order by 1`

// indexes are those that no constraint made, and that are whole.
const indexes = `
from pg_index i join pg_class c on c.oid = indexrelid
where indexrelid >= 16384 and indisvalid and c.relnamespace not in (select oid from pg_namespace where nspname ~ '^pg_(toast|temp)')
	and not exists (select from pg_constraint where conindid = indexrelid and contype in ('p', 'u', 'x'))
	and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = indexrelid and deptype = 'e')
order by 1`

const indexNames = "select indexrelid::regclass::text" + indexes
const indexDefinitions = "select pg_get_indexdef(indexrelid)" + indexes

// carried describes what is made new, from what the old database says of it.
const carried = "select * from (" + indexDefinitions + ") i union all select 'extension ' || extname from pg_extension order by 1"

// extensions are the statements that make them.
const extensions = `
select format('create extension if not exists %I schema %I', extname, extnamespace::regnamespace::text) from pg_extension where oid >= 16384 order by oid`

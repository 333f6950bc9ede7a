package embedded

import (
	"context"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	databaseName = "coppice"
	roleName     = "coppice"       // owns the database; the program connects as this role
	superuser    = "coppice_admin" // made by initdb

	// maintenanceDatabase is one that every cluster has.
	maintenanceDatabase = "postgres"
)

// setUpRoles makes the role and the database that the program works with, and
// gives the role whatever is in the database. It finds out by itself what is left
// to do, so a kill between two of its steps does no harm: the next start goes on.
// A replica has the roles of its primary.
func setUpRoles(ctx context.Context, e endpoint) error {
	e.Database = maintenanceDatabase
	admin, err := pgconn.Connect(ctx, e.as(superuser).url())
	if err != nil {
		return err
	}
	defer admin.Close(ctx)
	replica := admin.ExecParams(ctx, "select where pg_is_in_recovery()", nil, nil, nil, nil).Read()
	if replica.Err != nil || len(replica.Rows) > 0 {
		return replica.Err
	}
	if err := makeRole(ctx, admin); err != nil {
		return err
	}
	e.Database = databaseName
	inside, err := pgconn.Connect(ctx, e.as(superuser).url())
	if err != nil {
		return err
	}
	defer inside.Close(ctx)
	return run(ctx, inside, handOver)
}

// makeRole makes the role and its database.
func makeRole(ctx context.Context, admin *pgconn.PgConn) error {
	err := makeUnless(ctx, admin, "select from pg_roles where rolname = '"+roleName+"'",
		"create role "+roleName+" login nosuperuser nocreatedb nocreaterole noreplication nobypassrls")
	if err != nil {
		return err
	}
	err = makeUnless(ctx, admin, "select from pg_database where datname = '"+databaseName+"'",
		"create database "+databaseName+" owner "+roleName)
	if err != nil {
		return err
	}
	return run(ctx, admin, "alter database "+databaseName+" owner to "+roleName)
}

// handOver gives the role what the superuser that initdb made owns in the
// database: what a superuser restored, and the schema public before Postgres 15.
// REASSIGN OWNED refuses that superuser, as Postgres itself belongs to it. With
// another search path the role's own functions could stand in for Postgres', and run
// as the superuser.
const handOver = `
set local search_path = pg_catalog;
do $$
declare
	statement text;
begin
	for statement in
		select format('alter schema %s owner to ` + roleName + `', oid::regnamespace)
		from pg_namespace
		where nspowner = 10 and nspname !~ '^pg_' and nspname <> 'information_schema'
		union all
		select format('alter table %s owner to ` + roleName + `', c.oid::regclass)
		from pg_class c join pg_namespace n on n.oid = c.relnamespace
		where relowner = 10 and relkind in ('r', 'p', 'v', 'm', 'S', 'f') and nspname !~ '^pg_' and nspname <> 'information_schema'
		  and not exists (select from pg_depend where classid = 'pg_class'::regclass and objid = c.oid
			and (deptype = 'e' or relkind = 'S' and deptype in ('a', 'i'))) -- an extension's; a column's, which goes with its table
		union all
		select format('alter type %s owner to ` + roleName + `', t.oid::regtype)
		from pg_type t join pg_namespace n on n.oid = t.typnamespace left join pg_class c on c.oid = t.typrelid
		where typowner = 10 and (typtype in ('e', 'd', 'r') or relkind = 'c') and nspname !~ '^pg_' and nspname <> 'information_schema'
		  and not exists (select from pg_depend where classid = 'pg_type'::regclass and objid = t.oid and deptype = 'e')
		union all
		select format('alter routine %s owner to ` + roleName + `', p.oid::regprocedure)
		from pg_proc p join pg_namespace n on n.oid = p.pronamespace
		where proowner = 10 and nspname !~ '^pg_' and nspname <> 'information_schema'
		  and not exists (select from pg_depend where classid = 'pg_proc'::regclass and objid = p.oid and deptype in ('e', 'i'))
	loop
		execute statement;
	end loop;
end
$$`

// makeUnless makes what a query finds no row of. Trying would leave an error in the
// server's log on each start.
func makeUnless(ctx context.Context, conn *pgconn.PgConn, query, statement string) error {
	found := conn.ExecParams(ctx, query, nil, nil, nil, nil).Read()
	if found.Err != nil || len(found.Rows) > 0 {
		return found.Err
	}
	return run(ctx, conn, statement)
}

func run(ctx context.Context, conn *pgconn.PgConn, statement string) error {
	return conn.Exec(ctx, statement).Close()
}

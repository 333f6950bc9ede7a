package migrate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
)

// distributed are the tables that Citus distributes, each after the tables that it
// refers to, with the column that it is distributed by: the conversation's, or the
// tenant's where rows belong to no conversation. All other tables stay on the
// coordinator.
var distributed = []struct{ table, column string }{
	{"conversations", "id"},
	{"nodes", "conversation_id"},
	{"compactions", "conversation_id"},
	{"replies", "conversation_id"},
	{"reply_events", "conversation_id"},
	{"embeddings", "conversation_id"},
	{"changes", "conversation_id"},
	{"follower_places", "conversation_id"},
	{"search_chunks", "conversation_id"},
	{"search_segments", byTenant},
	{"attachments", byTenant},
	{"attachment_uses", "conversation_id"},
	{"shares", "conversation_id"},
}

const byTenant = "tenant_id"

// functions are those that queries call. Each node of Citus needs them.
var functions = []string{"embedding_values(bytea)"}

// A Distribution is what [Distribute] did.
type Distribution struct {
	CreatedExtension bool               `json:"created_extension"`
	Nodes            int                `json:"nodes"` // that hold shards
	Tables           []DistributedTable `json:"tables"`
}

// A DistributedTable is one that is distributed now.
type DistributedTable struct {
	Name    string `json:"name"`
	Shards  int    `json:"shards"`
	Already bool   `json:"already"` // it was distributed before
}

// Errors of Distribute.
var (
	ErrNoCitus = errors.New("this Postgres doesn't have Citus, and so has no nodes to distribute the tables over: install Citus on each node and add it to shared_preload_libraries, or go on without")
	ErrInUse   = errors.New("other programs of Coppice are connected to the database, and would go on as if its tables were in one place: stop them, and start them again afterwards")
)

// Distribute distributes the tables of the tree over the nodes of a Citus cluster,
// of which url names the coordinator: by conversation, so that all of a conversation
// stands on one node. Tables that hold data are moved. shards is the number of
// parts; 0 leaves it to citus.shard_count. Distribute changes all tables or none, and
// leaves alone what is distributed already.
//
// It returns an ErrNoCitus where the database can't have the extension, and an
// ErrInUse while other programs of this kind are connected. The log tells where it
// waits for other programs.
func Distribute(ctx context.Context, url string, shards int, log *slog.Logger) (d Distribution, err error) {
	defer db.Wrap(&err, "migrate.Distribute")
	parsed, err := db.Config{URL: url}.Parse()
	if err != nil {
		return d, err
	}
	conf := parsed.ConnConfig
	conf.RuntimeParams["application_name"] = programName
	conn, err := pgx.ConnectConfig(ctx, conf)
	if err != nil {
		return d, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	unlock, err := lockMigrations(ctx, conf, log)
	if err != nil {
		return d, err
	}
	defer unlock()
	if err := db.CheckSchema(ctx, conn); err != nil {
		return d, err
	}
	var available, preloaded, inUse bool
	const ask = `select exists (select from pg_available_extensions where name = 'citus'),
		exists (select from pg_settings where name = 'citus.shard_count'),
		exists (select from pg_stat_activity where datname = current_database() and application_name = 'coppice')`
	if err := conn.QueryRow(ctx, ask).Scan(&available, &preloaded, &inUse); err != nil {
		return d, err
	}
	switch {
	case !available || !preloaded:
		return d, ErrNoCitus
	case inUse:
		return d, ErrInUse
	}
	there, err := db.Distributed(ctx, conn)
	if err != nil {
		return d, err
	}
	if !there {
		if _, err := conn.Exec(ctx, "create extension citus"); err != nil {
			return d, err
		}
		d.CreatedExtension = true
	}
	if shards > 0 {
		if _, err := conn.Exec(ctx, fmt.Sprintf("set citus.shard_count = %d", shards)); err != nil {
			return d, err
		}
	}
	if d.Tables, err = distribute(ctx, conn, newBlockers(conf, log)); err != nil {
		return d, err
	}
	err = conn.QueryRow(ctx, "select count(distinct groupid) from pg_dist_placement").Scan(&d.Nodes)
	return d, err
}

// distribute distributes the tables and functions that aren't yet.
func distribute(ctx context.Context, conn *pgx.Conn, locks *blockers) (tables []DistributedTable, err error) {
	err = locks.run(ctx, func() error {
		tables, err = distributeTables(ctx, conn)
		return err
	})
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "set "+lockTimeout); err != nil {
		return tables, err
	}
	defer func() {
		if _, resetErr := conn.Exec(ctx, "reset lock_timeout"); err == nil {
			err = resetErr
		}
	}()
	run := func(statement string, argument string) error {
		return locks.run(ctx, func() error { _, err := conn.Exec(ctx, statement, argument); return err })
	}
	for _, f := range functions { // which Citus refuses to do in the transaction
		if err := run("select create_distributed_function(to_regprocedure($1)) where to_regprocedure($1) is not null", f); err != nil {
			return tables, err
		}
	}
	if err := planOnNodes(ctx, conn); err != nil {
		return tables, err
	}
	// What was copied to the shards still stands in the tables of the coordinator,
	// where nobody sees it.
	for _, t := range tables {
		if t.Already {
			continue
		}
		if err := run("select truncate_local_data_after_distributing_table($1)", t.Name); err != nil {
			return tables, err
		}
	}
	return tables, nil
}

// distributeTables distributes all tables that aren't yet, or none.
func distributeTables(ctx context.Context, conn *pgx.Conn) (tables []DistributedTable, err error) {
	err = pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
		// A copy of many rows takes its time.
		if _, err := tx.Exec(ctx, "set local statement_timeout = 0; set local "+lockTimeout); err != nil {
			return err
		}
		for _, t := range distributed {
			var already bool
			const ask = `select exists (select from pg_dist_partition where logicalrelid = to_regclass($1))`
			if err := tx.QueryRow(ctx, ask, t.table).Scan(&already); err != nil {
				return err
			}
			if !already {
				with := "default"
				switch {
				case t.column == byTenant:
					with = "none"
					// A migration has another count set than Distribute had.
					const same = "select set_config('citus.shard_count', count(*)::text, true) from pg_dist_shard where logicalrelid = to_regclass($1)"
					if _, err := tx.Exec(ctx, same, distributed[0].table); err != nil {
						return err
					}
				case len(tables) > 0:
					with = distributed[0].table
				}
				if _, err := tx.Exec(ctx, "select create_distributed_table($1, $2, colocate_with => $3)", t.table, t.column, with); err != nil {
					return err
				}
			}
			tables = append(tables, DistributedTable{Name: t.table, Already: already})
		}
		for i, t := range tables {
			const count = "select count(*) from pg_dist_shard where logicalrelid = to_regclass($1)"
			if err := tx.QueryRow(ctx, count, t.Name).Scan(&tables[i].Shards); err != nil {
				return err
			}
		}
		return nil
	})
	return tables, err
}

// planOnNodes has the nodes plan each query without the values of its parameters, as
// plain Postgres does for this program. Citus takes the setting to all nodes with the
// role, and the program's own connections to the coordinator have another one. With
// the value of a conversation that a shard's statistics don't know, Postgres takes it
// for a single row, and then reads all of the conversation once per message. A setting
// that the role has is left: to change it takes all nodes, and a server must start
// while one is away.
func planOnNodes(ctx context.Context, conn *pgx.Conn) error {
	var is bool
	const ask = `select exists (select from pg_db_role_setting s, unnest(s.setconfig) c
		where s.setrole = current_user::regrole and s.setdatabase = (select oid from pg_database where datname = current_database())
		  and c like 'plan_cache_mode=%')`
	if err := conn.QueryRow(ctx, ask).Scan(&is); err != nil || is {
		return err
	}
	database := pgx.Identifier{conn.Config().Database}.Sanitize()
	_, err := conn.Exec(ctx, "alter role current_user in database "+database+" set plan_cache_mode = 'force_generic_plan'")
	return err
}

// onCitus lets a migration of a distributed database do one thing after the other.
// Otherwise Citus refuses to make a function after an index in one transaction.
func onCitus(ctx context.Context, conn *pgx.Conn) error {
	there, err := db.Distributed(ctx, conn)
	if there {
		_, err = conn.Exec(ctx, "set citus.multi_shard_modify_mode to 'sequential'")
	}
	return err
}

// distributeNew distributes what a migration made on a distributed database.
func distributeNew(ctx context.Context, conf *pgx.ConnConfig, locks *blockers) error {
	conn, err := pgx.ConnectConfig(ctx, conf)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	there, err := db.Distributed(ctx, conn)
	if err != nil || !there {
		return err
	}
	var is bool
	if err := conn.QueryRow(ctx, "select exists (select from pg_dist_partition where logicalrelid = to_regclass('conversations'))").Scan(&is); err != nil || !is {
		return err
	}
	_, err = distribute(ctx, conn, locks)
	return err
}

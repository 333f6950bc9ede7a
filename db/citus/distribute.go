package citus

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
)

// lockTimeout bounds the waits of a step, as in migrations.
const lockTimeout = "lock_timeout = '2s'"

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
	{"annotations", "conversation_id"},
	{"changes", "conversation_id"},
	{"follower_places", "conversation_id"},
	{"search_chunks", "conversation_id"},
	{"search_segments", byTenant},
	{"title_words", "conversation_id"},
	{"attachments", byTenant},
	{"attachment_uses", "conversation_id"},
	{"shares", "conversation_id"},
}

const byTenant = "tenant_id"

// functions are those that queries call. Each node of Citus needs them.
var functions = []string{"embedding_values(bytea)"}

// A Table is one that is distributed now.
type Table struct {
	Name    string `json:"name"`
	Shards  int    `json:"shards"`
	Already bool   `json:"already"` // it was distributed before
}

// Distribute distributes the tables and functions that aren't yet. run runs each step,
// and again where it didn't get its locks.
func Distribute(ctx context.Context, conn *pgx.Conn, run func(ctx context.Context, step func() error) error) (tables []Table, err error) {
	err = run(ctx, func() error {
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
	execute := func(statement string, argument string) error {
		return run(ctx, func() error { _, err := conn.Exec(ctx, statement, argument); return err })
	}
	for _, f := range functions { // which Citus refuses to do in the transaction
		if err := execute("select create_distributed_function(to_regprocedure($1)) where to_regprocedure($1) is not null", f); err != nil {
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
		if err := execute("select truncate_local_data_after_distributing_table($1)", t.Name); err != nil {
			return tables, err
		}
	}
	return tables, nil
}

// distributeTables distributes all tables that aren't yet, or none.
func distributeTables(ctx context.Context, conn *pgx.Conn) (tables []Table, err error) {
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
			tables = append(tables, Table{Name: t.table, Already: already})
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

// InSequence lets a migration of a distributed database do one thing after the other.
// Otherwise Citus refuses to make a function after an index in one transaction.
func InSequence(ctx context.Context, conn *pgx.Conn) error {
	there, err := db.Distributed(ctx, conn)
	if there {
		_, err = conn.Exec(ctx, "set citus.multi_shard_modify_mode to 'sequential'")
	}
	return err
}

// DistributeNew distributes what a migration made on a distributed database. run is as
// with Distribute.
func DistributeNew(ctx context.Context, conf *pgx.ConnConfig, run func(ctx context.Context, step func() error) error) error {
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
	_, err = Distribute(ctx, conn, run)
	return err
}

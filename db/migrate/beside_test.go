package migrate_test

import (
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/db/migrate"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

// Coppice's tables stand in their own schema, beside a host's of the same names.
func TestBesideAHost(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	config := db.Config{URL: dbtest.Empty(t), Schema: "coppice"}
	host, err := pgx.Connect(ctx, config.URL)
	check.NoError(t, err)
	defer host.Close(ctx)
	check.Must(host.Exec(ctx, `create table conversations (id int primary key); insert into conversations values (1);
		create table goose_db_version (id serial primary key, version_id bigint not null, is_applied bool not null, tstamp timestamp default now());
		insert into goose_db_version (version_id, is_applied) values (900, true)`))(t)
	for _, want := range []int64{0, latest(t)} { // made, and then left alone
		before, after, err := migrate.Up(ctx, config)
		check.Need(t, err == nil && before == want && after == latest(t), "from %d to %d, %v", before, after, err)
	}
	pool := check.Must(db.Open(ctx, config))(t)
	defer pool.Close()
	store := tree.New(pool)
	c, _, err := store.CreateConversation(ctx, tree.NewConversation{})
	check.NoError(t, err)
	check.Must(store.Append(ctx, c.ID, uuid.Nil, tree.Text(tree.RoleUser, "What grows fastest?")))(t)
	contexts := check.Must(summarize.New(store, summarize.Config{}))(t)
	read, err := contexts.Context(ctx, c.ID, uuid.Nil, summarize.Window{})
	check.That(t, err == nil && len(read.Messages) == 1, "%s, %v", read.Messages, err)
	var rows, tables int
	if err := host.QueryRow(ctx, "select (select sum(id) from conversations), (select count(*) from pg_tables where schemaname = 'public')").Scan(&rows, &tables); err != nil || rows != 1 || tables != 2 {
		t.Errorf("the host has rows of the sum %d and %d tables, %v", rows, tables, err)
	}
}

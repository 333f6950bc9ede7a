package tree_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/tree"
)

// Of a deleted tenant no table has a row, and of another tenant none is gone.
func TestDeleteTenant(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	all := keys.New(pool)
	stores := map[string]*tree.Store{}
	for _, id := range []string{"gone", "stays"} {
		s := tree.New(pool).ForTenant(id)
		stores[id] = s
		c := start(t, s)
		say(t, s, c, uuid.Nil, naming("a question", upload(t, s, "a.png", picture(t, 3, 3))))
		upload(t, s, "unnamed.png", picture(t, 4, 4))
		_, err := pool.Exec(t.Context(), `with chunk as (
				insert into search_chunks (conversation_id, number, tenant_id, messages, newest_at, data) values ($1, 1, $2, '{}', now(), '')
			) insert into search_segments (tenant_id, bucket, segment, newest_at, data) values ($2, 256, $1, now(), '')`, c, id)
		noError(t, err)
		_, err = pool.Exec(t.Context(), "create index embeddings_nearest_"+id+" on embeddings (stamp) where tenant_key = '"+db.TenantKey(id)+"' and model = 'm'")
		noError(t, err)
	}
	create := func(tenant string) {
		_, _, err := all.Create(t.Context(), tenant, "a key")
		noError(t, err)
	}
	create("gone")
	if _, err := stores["gone"].DeleteTenant(t.Context(), nil); !errors.Is(err, fault.Conflict) {
		t.Errorf("the last keys are deleted: %v", err)
	}
	create("stays")
	before := rowsOf(t, pool, "stays")

	if n := must(stores["gone"].RevokeKeys(t.Context()))(t); n != 1 {
		t.Errorf("%d keys were revoked, want 1", n)
	}
	went := must(stores["gone"].DeleteTenant(t.Context(), nil))(t)
	if went.Conversations != 1 || went.Messages != 1 || went.Attachments != 2 || went.Keys != 1 {
		t.Errorf("went %+v", went)
	}
	rows := rowsOf(t, pool, "gone")
	if delete(rows, "audit_events"); len(rows) > 0 {
		t.Errorf("left of the tenant: %v", rows)
	}
	var indexes string
	noError(t, pool.QueryRow(t.Context(), `select string_agg(indexname, ' ') from pg_indexes where indexname like 'embeddings\_nearest\_%'`).Scan(&indexes))
	if indexes != "embeddings_nearest_stays" {
		t.Errorf("the indexes of vectors are %s", indexes)
	}
	done := must(stores["gone"].AuditEvents(t.Context(), tree.Paging{}))(t)
	if len(done.Data) != 3 || done.Data[0].Action != tree.ActionTenantDeleted || done.Data[1].Action != tree.ActionConversationDeleted {
		t.Errorf("the audit tells %+v", done.Data)
	}
	after := rowsOf(t, pool, "stays")
	for table, n := range before {
		if after[table] != n {
			t.Errorf("the other tenant has %d rows of %s, and had %d", after[table], table, n)
		}
	}
	if n := must(stores["stays"].ForgetAudit(t.Context(), done.Data[0].At))(t); n != 3 { // two of gone and the key of stays
		t.Errorf("%d events were forgotten, want 3", n)
	}
	if left := must(stores["gone"].AuditEvents(t.Context(), tree.Paging{}))(t); len(left.Data) != 1 {
		t.Errorf("left are %+v", left.Data)
	}
	if _, err := stores["gone"].DeleteTenant(t.Context(), nil); !errors.Is(err, fault.NotFound) {
		t.Errorf("a tenant without anything: %v", err)
	}
}

// rowsOf counts a tenant's rows, of each table that names tenants.
func rowsOf(t *testing.T, pool *pgxpool.Pool, tenant string) map[string]int {
	t.Helper()
	rows, err := pool.Query(t.Context(), "select table_name::text from information_schema.columns where table_schema = 'public' and column_name = 'tenant_id'")
	noError(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	noError(t, err)
	if len(tables) < 5 {
		t.Fatalf("only %v name tenants", tables)
	}
	counts := map[string]int{}
	for _, table := range tables {
		var n int
		noError(t, pool.QueryRow(t.Context(), "select count(*) from "+pgx.Identifier{table}.Sanitize()+" where tenant_id = $1", tenant).Scan(&n))
		if n > 0 {
			counts[table] = n
		}
	}
	return counts
}

// What was said since stays.
func TestDeleteIdle(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool)
	old, young := start(t, s), start(t, s)
	say(t, s, old, uuid.Nil, naming("long ago"))
	say(t, s, young, uuid.Nil, naming("today"))
	_, err := pool.Exec(t.Context(), "update conversations set updated_at = now() - interval '91 days', pinned = true where id = $1", old)
	noError(t, err)
	conversations, messages, err := s.DeleteIdle(t.Context(), time.Now().AddDate(0, 0, -90), nil)
	noError(t, err)
	if conversations != 1 || messages != 1 {
		t.Errorf("%d conversations with %d messages went, want one with one", conversations, messages)
	}
	if _, err := s.Conversation(t.Context(), young); err != nil {
		t.Error(err)
	}
	if _, err := s.Conversation(t.Context(), old); !errors.Is(err, fault.NotFound) {
		t.Errorf("the old one: %v", err)
	}
}

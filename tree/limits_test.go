package tree_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/keys"
	"github.com/coppice-chat/coppice/tree"
)

// full wants an error of a limit.
func full(t *testing.T, what string, err error, code string) {
	t.Helper()
	check.That(t, errors.Is(err, fault.Full) && fault.Of(err).Code == code && fault.Of(err).Detail != "", "%s: %v, want %s", what, err, code)
}

// stored counts a conversation's messages, by themselves and as they are kept.
func stored(t testing.TB, pool *pgxpool.Pool, id uuid.UUID) (messages int) {
	t.Helper()
	var kept int
	err := pool.QueryRow(t.Context(), `select (select count(*) from nodes where conversation_id = $1 and kind = 'message'),
		(select message_count from conversations where id = $1)`, id).Scan(&messages, &kept)
	noError(t, err)
	check.That(t, kept == messages, "message_count is %d, and there are %d messages", kept, messages)
	return messages
}

func bundleOf(id uuid.UUID, messages int) tree.Bundle {
	b := tree.Bundle{Conversation: tree.NewConversation{ID: id}}
	for range messages {
		b.Nodes = append(b.Nodes, tree.BundleNode{ID: uuid.New(), Body: json.RawMessage(`{"role":"user","content":"imported"}`)})
	}
	return b
}

// Every way in ends at the limit. What is there can be sent again, and what is pruned makes room.
func TestMessageLimit(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool, tree.WithLimits(tree.Limits{MessagesPerConversation: 5}))
	c := newConversation(t, s)
	root := mustAppend(t, s, c.ID, uuid.Nil, user("1"))
	rest := must(s.AppendChain(t.Context(), c.ID, root.ID, []tree.NewMessage{user("2"), user("3"), user("4")}))(t).Messages
	full(t, "a chain over the limit", second(s.AppendChain(t.Context(), c.ID, root.ID, []tree.NewMessage{user("5"), user("6")})), "too_many_messages")
	last := chainOf(1)[0]
	mustAppend(t, s, c.ID, root.ID, last)
	full(t, "a message over the limit", second(s.Append(t.Context(), c.ID, root.ID, user("6"))), "too_many_messages")
	refused(t, "an absent parent", second(s.Append(t.Context(), c.ID, uuid.New(), user("6"))), fault.NotFound)
	m := must(s.Append(t.Context(), c.ID, root.ID, last))(t)
	check.That(t, !m.Created && m.ID == last.ID, "the last one again: created %t", m.Created)
	chain := make([]tree.NewMessage, len(rest))
	for i, m := range rest {
		chain[i] = tree.NewMessage{ID: m.ID, Message: chat.Read(m.Body)}
	}
	check.That(t, !must(s.AppendChain(t.Context(), c.ID, root.ID, chain))(t).Created, "the chain is created again")
	full(t, "an import over the limit", second(s.Import(t.Context(), bundleOf(c.ID, 1))), "too_many_messages")
	full(t, "an import of too many", second(s.Import(t.Context(), bundleOf(uuid.New(), 6))), "too_many_messages")
	// A summary is the server's, and doesn't count.
	must(s.Summaries().Add(t.Context(), c.ID, tree.NewSummary{AnchorID: rest[2].ID, Range: tree.SummaryRange{LastSummarizedID: root.ID, Model: "m"}, Body: json.RawMessage(`{"role":"user","content":"s"}`)}))(t)
	small := tree.New(pool, tree.WithLimits(tree.Limits{MessagesPerConversation: 3}))
	full(t, "a fork over the limit", third(small.Fork(t.Context(), c.ID, rest[2].ID, tree.NewConversation{})), "too_many_messages")
	fork := must3(s.Fork(t.Context(), c.ID, rest[2].ID, tree.NewConversation{}))(t)
	holds := func(id uuid.UUID, want int) {
		t.Helper()
		check.Equal(t, "messages", stored(t, pool, id), want)
	}
	holds(c.ID, 5)
	holds(fork.ID, 4)
	must(s.Prune(t.Context(), c.ID, rest[1].ID))(t) // and the summary
	holds(c.ID, 3)
	must(s.Import(t.Context(), bundleOf(c.ID, 2)))(t)
	holds(c.ID, 5)
	// Without the limit, it goes on.
	mustAppend(t, tree.New(pool), c.ID, root.ID, user("6"))
}

// Every way to make a conversation ends at the tenant's limit. A deletion makes room.
func TestConversationLimit(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	s := tree.New(pool, tree.WithLimits(tree.Limits{Conversations: 2}))
	newConversation(t, s.ForTenant("other"))
	c, last := newConversation(t, s), newConversation(t, s)
	m := mustAppend(t, s, c.ID, uuid.Nil, user("x"))
	for name, err := range map[string]error{
		"a new one": third(s.CreateConversation(t.Context(), tree.NewConversation{})),
		"a fork":    third(s.Fork(t.Context(), c.ID, m.ID, tree.NewConversation{})),
		"an import, which also adds to one that is there": second(s.Import(t.Context(), bundleOf(c.ID, 1), bundleOf(uuid.New(), 1))),
	} {
		full(t, name, err, "too_many_conversations")
	}
	check.Equal(t, "messages after a refused import", stored(t, pool, c.ID), 1)
	_, created, err := s.CreateConversation(t.Context(), tree.NewConversation{ID: c.ID})
	check.That(t, err == nil && !created, "one that is there, again: %v, created %t", err, created)
	noError(t, s.DeleteConversation(t.Context(), last.ID))
	newConversation(t, s)
}

// Derived ids differ between tenants, kinds and names, and never change: clients may keep them.
func TestDerivedIDsStay(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	must(pool.Exec(t.Context(), "update installation set secret = sha256('a secret')"))(t)
	one := tree.New(pool)
	derive := func(s *tree.Store, kind, name string) uuid.UUID { return must(s.DeriveID(t.Context(), kind, name))(t) }
	for _, other := range []uuid.UUID{derive(one.ForTenant("other"), "kind", "name"), derive(one, "kin", "dname"), derive(one, "kind", "names")} {
		check.That(t, other != derive(one, "kind", "name") && other.Version() == 8, "%s is of another tenant, kind or name", other)
	}
	check.Equal(t, "a derived id", derive(tree.New(pool), "kind", "name").String(), "5c6dc713-a708-861f-8c1b-f3d986fcd9a9")
	_, err := pool.Exec(t.Context(), "insert into installation (secret) values ('another')")
	check.That(t, err != nil, "there can be two secrets")
	must(pool.Exec(t.Context(), "delete from installation"))(t)
	_, err = tree.New(pool).DeriveID(t.Context(), "kind", "name")
	check.That(t, err != nil && strings.Contains(err.Error(), "installation"), "without the secret: %v", err)
}

// Another tenant's id is refused as a taken one of one's own: same error, same statements.
func TestForeignIDIsAsAnyTaken(t *testing.T) {
	t.Parallel()
	pool, sent := counted(t)
	s := tree.New(pool)
	for _, s := range []*tree.Store{s, tree.New(pool, tree.WithLimits(tree.Limits{Conversations: 1000}))} {
		c := newConversation(t, s)
		m := mustAppend(t, s, c.ID, uuid.Nil, user("root"))
		own, other, gone := newConversation(t, s), newConversation(t, s.ForTenant("other")), newConversation(t, s)
		noError(t, s.DeleteConversation(t.Context(), gone.ID))
		for name, call := range map[string]func(id uuid.UUID) error{
			"a create": func(id uuid.UUID) error {
				return third(s.CreateConversation(t.Context(), tree.NewConversation{ID: id, Title: "Another"}))
			},
			"a fork": func(id uuid.UUID) error { return third(s.Fork(t.Context(), c.ID, m.ID, tree.NewConversation{ID: id})) },
			"a fork of what is gone": func(id uuid.UUID) error {
				return third(s.Fork(t.Context(), gone.ID, m.ID, tree.NewConversation{ID: id}))
			},
		} {
			told := func(id uuid.UUID) (string, []string) {
				sent.sql = nil
				err := call(id)
				var e *fault.Error
				check.Need(t, errors.As(err, &e), "%s: %v", name, err)
				return strings.ReplaceAll(e.Code+" "+e.Error()+" "+err.Error(), id.String(), "ID"), sent.sql
			}
			ownError, ownSQL := told(own.ID)
			otherError, otherSQL := told(other.ID)
			check.That(t, ownError == otherError && !strings.Contains(otherError, "tenant"),
				"%s by another's id says %q, and by one's own %q", name, otherError, ownError)
			check.That(t, slices.Equal(ownSQL, otherSQL), "%s by another's id sends\n%q\nand by one's own\n%q", name, otherSQL, ownSQL)
		}
		_, err := s.Import(t.Context(), bundleOf(other.ID, 1))
		check.That(t, errors.Is(err, fault.Conflict) && !strings.Contains(err.Error(), "tenant"), "an import of another's id: %v", err)
	}
}

// Of a deleted tenant no table has a row, and of another tenant none is gone.
func TestDeleteTenant(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	all := keys.New(pool)
	stores := map[string]*tree.Store{}
	for _, id := range []string{"gone", "stays"} {
		s := tree.New(pool).ForTenant(id)
		stores[id] = s
		c := newConversation(t, s).ID
		say(t, s, c, uuid.Nil, naming("a question", upload(t, s, "a.png", picture(t, 3, 3))))
		upload(t, s, "unnamed.png", picture(t, 4, 4))
		must(pool.Exec(t.Context(), `with chunk as (
				insert into search_chunks (conversation_id, number, tenant_id, messages, newest_at, data) values ($1, 1, $2, '{}', now(), '')
			) insert into search_segments (tenant_id, bucket, segment, newest_at, data) values ($2, 256, $1, now(), '')`, c, id))(t)
		must(pool.Exec(t.Context(), "create index embeddings_nearest_"+id+" on embeddings (stamp) where tenant_key = '"+db.TenantKey(id)+"' and model = 'm'"))(t)
	}
	must3(all.Create(t.Context(), "gone", "a key"))(t)
	refused(t, "the last keys are deleted", second(stores["gone"].Admin().DeleteTenant(t.Context(), nil)), fault.Conflict)
	must3(all.Create(t.Context(), "stays", "a key"))(t)
	before := rowsOf(t, pool, "stays")

	check.Equal(t, "revoked keys", must(stores["gone"].Admin().RevokeKeys(t.Context()))(t), 1)
	went := must(stores["gone"].Admin().DeleteTenant(t.Context(), nil))(t)
	check.That(t, went.Conversations == 1 && went.Messages == 1 && went.Attachments == 2 && went.Keys == 1, "went %+v", went)
	rows := rowsOf(t, pool, "gone")
	delete(rows, "audit_events")
	check.That(t, len(rows) == 0, "left of the tenant: %v", rows)
	var indexes string
	noError(t, pool.QueryRow(t.Context(), `select string_agg(indexname, ' ') from pg_indexes where indexname like 'embeddings\_nearest\_%'`).Scan(&indexes))
	check.That(t, indexes == "embeddings_nearest_stays", "the indexes of vectors are %s", indexes)
	done := must(stores["gone"].Admin().AuditEvents(t.Context(), tree.Paging{}))(t)
	check.That(t, len(done.Data) == 3 && done.Data[0].Action == tree.ActionTenantDeleted && done.Data[1].Action == tree.ActionConversationDeleted,
		"the audit tells %+v", done.Data)
	after := rowsOf(t, pool, "stays")
	for table, n := range before {
		check.That(t, after[table] == n, "the other tenant has %d rows of %s, and had %d", after[table], table, n)
	}
	check.Equal(t, "forgotten events, two of gone and the key of stays", must(stores["stays"].Admin().ForgetAudit(t.Context(), done.Data[0].At))(t), 3)
	left := must(stores["gone"].Admin().AuditEvents(t.Context(), tree.Paging{}))(t)
	check.That(t, len(left.Data) == 1, "left are %+v", left.Data)
	refused(t, "a tenant without anything", second(stores["gone"].Admin().DeleteTenant(t.Context(), nil)), fault.NotFound)
}

// rowsOf counts a tenant's rows, of each table that names tenants.
func rowsOf(t *testing.T, pool *pgxpool.Pool, tenant string) map[string]int {
	t.Helper()
	rows := must(pool.Query(t.Context(), "select table_name::text from information_schema.columns where table_schema = 'public' and column_name = 'tenant_id'"))(t)
	tables := must(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
	check.Need(t, len(tables) >= 5, "only %v name tenants", tables)
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
	old, young := newConversation(t, s).ID, newConversation(t, s).ID
	say(t, s, old, uuid.Nil, naming("long ago"))
	say(t, s, young, uuid.Nil, naming("today"))
	must(pool.Exec(t.Context(), "update conversations set updated_at = now() - interval '91 days', pinned = true where id = $1", old))(t)
	conversations, messages, err := s.Admin().DeleteIdle(t.Context(), time.Now().AddDate(0, 0, -90), nil)
	noError(t, err)
	check.That(t, conversations == 1 && messages == 1, "%d conversations with %d messages went, want one with one", conversations, messages)
	must(s.Conversation(t.Context(), young))(t)
	refused(t, "the old one", second(s.Conversation(t.Context(), old)), fault.NotFound)
}

package migrate_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/coppice-chat/coppice/chat"
	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/db/migrate"
	"github.com/coppice-chat/coppice/internal/check"
	"github.com/coppice-chat/coppice/search"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/summarize/jobs"
	"github.com/coppice-chat/coppice/tree"
)

// TestUpgrade migrates a database that the 22 steps before the squashed migration
// made: no row changes, and everything reads, writes and works on.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	makeOld(t, url)
	columns := kept(columnsOf(t, url))
	was := rows(t, url, columns)
	if before, after, err := migrate.Up(t.Context(), db.Config{URL: url}); err != nil || before != 23 || after != latest(t) {
		t.Fatalf("from %d to %d, %v; want from 23 to %d", before, after, err, latest(t))
	}
	unchanged(t, was, rows(t, url, columns))
	if fresh, upgraded := describe(t, dbtest.URL(t)), describe(t, url); !slices.Equal(fresh, upgraded) {
		t.Errorf("the schema lacks %q and has besides %q", without(fresh, upgraded), without(upgraded, fresh))
	}
	works(t, url)
}

// A job of version 23 that waits to make a summary again becomes a compaction's, which
// does that now, and sweeps of that version go.
func TestUpgradeTurnsJobs(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	makeOld(t, url)
	conn := connect(t, url)
	check.Must(conn.Exec(t.Context(), `update river_job set kind = 'resummarizing', queue = 'resummarizing';
		insert into river_job (kind, queue, args, state, max_attempts) values ('due_sweep', 'due_sweep', '{}', 'scheduled', 1)`))(t)
	if _, _, err := migrate.Up(t.Context(), db.Config{URL: url}); err != nil {
		t.Fatal(err)
	}
	var kinds string
	if err := conn.QueryRow(t.Context(), "select string_agg(kind || ' ' || queue, ', ') from river_job where finalized_at is null").Scan(&kinds); err != nil || kinds != "compaction default" {
		t.Errorf("left: %s, %v", kinds, err)
	}
	works(t, url)
}

// A database of an older version is refused, with the program that migrates it,
// and stays as it is.
func TestUpgradeRefusesOlder(t *testing.T) {
	t.Parallel()
	url := dbtest.Empty(t)
	makeOld(t, url)
	check.Must(connect(t, url).Exec(t.Context(), "delete from goose_db_version where version_id = 23"))(t)
	was := rows(t, url, nil)
	before, after, err := migrate.Up(t.Context(), db.Config{URL: url})
	if !errors.Is(err, migrate.ErrTooOld) || before != 22 || after != 22 {
		t.Fatalf("from %d to %d, %v; want 22, ErrTooOld", before, after, err)
	}
	unchanged(t, was, rows(t, url, nil))
}

// makeOld makes a database with data as the last program with 22 steps left it.
// Its dump differed from one of the squashed migration in goose's rows alone:
// there was one for each step.
func makeOld(t *testing.T, url string) {
	t.Helper()
	data := check.Must(os.ReadFile("testdata/version23.sql"))(t)
	conf := check.Must(pgx.ParseConfig(url))(t)
	handle := stdlib.OpenDB(*conf)
	defer handle.Close()
	provider := check.Must(goose.NewProvider(goose.DialectPostgres, handle, migrate.Files()))(t)
	check.Must(provider.UpTo(t.Context(), 23))(t)
	pool := check.Must(pgxpool.New(t.Context(), url))(t)
	defer pool.Close()
	migrator := check.Must(rivermigrate.New(riverpgxv5.New(pool), nil))(t)
	check.Must(migrator.Migrate(t.Context(), rivermigrate.DirectionUp, &rivermigrate.MigrateOpts{TargetVersion: 8}))(t)
	const steps = `delete from goose_db_version;
		insert into goose_db_version (version_id, is_applied) select v, true from generate_series(0, 23) v where v <> 17 order by v;`
	check.Must(connect(t, url).Exec(t.Context(), steps+string(data)))(t)
}

// unchanged compares the rows of each table before and after.
func unchanged(t *testing.T, was, is map[string][]string) {
	t.Helper()
	for table, want := range was {
		if got := is[table]; !slices.Equal(got, want) {
			t.Errorf("%s changed:\n%s\nwas\n%s", table, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// kept are the columns that no migration takes away or fills anew.
func kept(columns map[string][]string) map[string][]string {
	delete(columns, "reply_checkpoints") // whose rows become those of replies
	delete(columns, "reply_states")
	columns["nodes"] = slices.DeleteFunc(columns["nodes"], func(name string) bool { return name == "search_text" || name == "search_key" })
	columns["conversations"] = slices.DeleteFunc(columns["conversations"], func(name string) bool { return name == "change_count" }) // 1 where it was 0
	columns["installation"] = slices.DeleteFunc(columns["installation"], func(name string) bool { return name == "oldest_program" })
	return columns
}

// columnsOf gives the columns of all tables, in their order.
func columnsOf(t *testing.T, url string) map[string][]string {
	t.Helper()
	found := check.Must(connect(t, url).Query(t.Context(), `select table_name::text, column_name::text from information_schema.columns
		where table_schema = 'public' and table_name not in ('goose_db_version', 'river_migration') order by table_name, ordinal_position`))(t)
	columns := map[string][]string{}
	var table, column string
	if _, err := pgx.ForEachRow(found, []any{&table, &column}, func() error {
		columns[table] = append(columns[table], column)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return columns
}

// rows gives all rows of all tables as text, of these columns or else of all.
func rows(t *testing.T, url string, columns map[string][]string) map[string][]string {
	t.Helper()
	if columns == nil {
		columns = columnsOf(t, url)
	}
	all := map[string][]string{}
	conn := connect(t, url)
	for table, names := range columns {
		found, err := conn.Query(t.Context(), fmt.Sprintf(`select row("%s")::text from "%s" order by 1`, strings.Join(names, `", "`), table))
		check.NoError(t, err)
		all[table] = check.Must(pgx.CollectRows(found, pgx.RowTo[string]))(t)
	}
	return all
}

// broken finds rows that break what every tree keeps.
const broken = `
select 'depth, tokens or prefix of ' || n.id from nodes n left join nodes p on p.conversation_id = n.conversation_id and p.id = n.parent_id
where n.depth <> coalesce(p.depth + 1, 0) or n.path_tokens <> coalesce(p.path_tokens, 0) + n.tokens
   or n.prefix_id is distinct from case
        when n.kind = 'message' and n.role in ('system', 'developer') and p.prefix_id is not distinct from p.id then n.id
        else p.prefix_id end
union all
select 'siblings below ' || coalesce(parent_id::text, 'the root') from nodes where kind = 'message'
group by conversation_id, parent_id having max(sibling_index) <> count(*)
union all
select 'count of messages of ' || c.id from conversations c
where c.message_count <> (select count(*) from nodes n where n.conversation_id = c.id and n.kind = 'message')
union all
select 'active head of ' || c.id from conversations c
where c.head_id is distinct from null and not exists (select from nodes n where n.conversation_id = c.id and n.id = c.head_id and n.kind = 'message')
union all
select 'cutoff of ' || s.id from nodes s where s.kind = 'summary' and not exists (
    with recursive path as (
        select a.id, a.parent_id from nodes a where a.conversation_id = s.conversation_id and a.id = s.parent_id
        union all
        select u.id, u.parent_id from path join nodes u on u.conversation_id = s.conversation_id and u.id = path.parent_id)
    select from path where path.id = s.last_summarized_id)
union all
select 'child of the summary ' || s.id from nodes s join nodes n on n.conversation_id = s.conversation_id and n.parent_id = s.id where s.kind = 'summary'`

// works reads, works off, writes and compacts the data, which keeps its promises.
func works(t *testing.T, url string) {
	t.Helper()
	pool := check.Must(db.Open(t.Context(), db.Config{URL: url, MaxConns: 4}))(t)
	defer pool.Close()
	holds(t, pool)
	reads(t, pool)
	worksOff(t, pool)
	writes(t, pool)
	holds(t, pool)
}

func holds(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	found := check.Must(pool.Query(t.Context(), broken))(t)
	wrong := check.Must(pgx.CollectRows(found, pgx.RowTo[string]))(t)
	if len(wrong) > 0 {
		t.Errorf("broken: %s", strings.Join(wrong, "; "))
	}
}

// id gives an id of the fixtures by its last three digits.
func id(n int) uuid.UUID {
	return uuid.MustParse(fmt.Sprintf("01990000-0000-7000-8000-000000000%03d", n))
}

// reads reads transcripts, contexts, hits of a search and a reply that was streaming.
func reads(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	ctx, store := t.Context(), tree.New(pool)
	c := check.Must(store.Conversation(ctx, id(1)))(t)
	if c.Title != "Coppicing" || string(c.Metadata) != `{"b": 1.0, "a": "é"}` || c.HeadID != id(107) || !c.CreatedAt.Equal(time.Date(2026, 3, 1, 10, 0, 0, 1000, time.UTC)) {
		t.Errorf("%+v", c)
	}
	var told []string
	for _, m := range check.Must(store.Transcript(ctx, id(1), id(107), tree.Paging{}))(t).Data {
		told = append(told, fmt.Sprintf("%s %d/%d", m.ID.String()[33:], m.Siblings.Index, m.Siblings.Count))
	}
	if got, want := strings.Join(told, ", "), "101 1/1, 102 1/1, 103 1/3, 105 1/1, 106 1/1, 107 1/1"; got != want {
		t.Errorf("the transcript is %s, want %s", got, want)
	}
	for query, want := range map[string]int{"trees": 1, "coppice": 1, "hedge": 1, "secret": 0} {
		if n := len(check.Must(search.New(0).Messages(ctx, store, query, search.Within{}, tree.Paging{}))(t).Data); n != want {
			t.Errorf("%d hits for %s, want %d", n, query, want)
		}
	}
	contexts := check.Must(summarize.New(store, summarize.Config{}))(t)
	for head, want := range map[int]struct {
		summary  int
		messages int
	}{107: {202, 6}, 105: {201, 4}, 104: {0, 3}, 109: {0, 4}} {
		c := check.Must(contexts.Context(ctx, id(1), id(head), summarize.Window{}))(t)
		summary := uuid.Nil
		if c.Summary != nil {
			summary = c.Summary.ID
		}
		if !c.Complete || len(c.Messages) != want.messages || (summary != uuid.Nil) != (want.summary != 0) || want.summary != 0 && summary != id(want.summary) {
			t.Errorf("the context of %d: complete %v, summary %v, %d messages; want %+v", head, c.Complete, summary, len(c.Messages), want)
		}
	}
	if r, events, err := store.Replies().Log(ctx, id(1), id(110), 0); err != nil || r.State != tree.StateRunning || r.ServerID != "a host 127.0.0.1:8080" || string(r.Metadata) != `{"openai":{}}` ||
		len(events) != 1 || !strings.Contains(string(events[0].Payload), "Hazel, ash and") {
		t.Errorf("an answer that was streaming: %+v, %v, %v", r, events, err)
	}
}

// writes appends until a compaction merges the summary that was there.
func writes(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	ctx, store := t.Context(), tree.New(pool)
	contexts := check.Must(summarize.New(store, summarize.Config{}))(t)
	head := id(107)
	for i := range 12 {
		role := []string{"assistant", "user"}[i%2]
		m := check.Must(store.Append(ctx, id(1), head, tree.NewMessage{Message: chat.Read(fmt.Appendf(nil, `{"role":%q,"content":%q}`, role, strings.Repeat("More of the woods. ", 60)))}))(t)
		head = m.ID
	}
	k := check.Must(contexts.Compact(ctx, id(1), head, summarize.TriggerRequest, &summarize.Demand{}))(t)
	if k.Outcome != tree.OutcomeSaved || k.PriorSummaryID != id(202) {
		t.Errorf("a compaction came to %s (%s) over %s", k.Outcome, k.Reason, k.PriorSummaryID)
	}
}

// worksOff lets a worker take up the job that was waiting.
func worksOff(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	contexts := check.Must(summarize.New(tree.New(pool), summarize.Config{}))(t)
	outcomes := make(chan jobs.Outcome, 1)
	w := check.Must(jobs.New(pool, contexts, jobs.Config{ID: t.Name(), Observe: func(o jobs.Outcome) { outcomes <- o }}))(t)
	if left := check.Must(w.Count(t.Context()))(t); left.Queued != 1 || left.OldestQueued <= 0 || left.Running != 0 {
		t.Errorf("jobs before: %+v", left)
	}
	check.NoError(t, w.Start(context.WithoutCancel(t.Context())))
	select {
	case o := <-outcomes:
		if o != jobs.Completed {
			t.Errorf("the job is %s", o)
		}
	case <-time.After(time.Minute):
		t.Error("the job was not worked off")
	}
	if err := w.Stop(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	if left := check.Must(w.Count(t.Context()))(t); left != (jobs.Counts{}) {
		t.Errorf("jobs after: %+v", left)
	}
}

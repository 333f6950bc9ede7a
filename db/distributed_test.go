package db_test

import (
	"context"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/fault"
	"github.com/coppice-chat/coppice/internal/check"
)

// onlyPlain names the queries that a distributed database isn't asked, or not in one
// piece.
var onlyPlain = map[string]string{
	"InsertConversation": "its two insertions go to the shard one after the other",
	"AppendMessage":      "citus.LockParentState and citus.Insert stand for it",
	"CopyNodes":          "it is a COPY, which has no plan",
	"CopyAnnotations":    "it is a COPY, too",
	"InsertAuditEvent":   "the coordinator has its table, and its conversation is a note",
	"InsertKey":          "the same",
	"WithTx":             "it is no query",
}

// everyShard names the queries about more than one conversation. All others go to one
// shard, or to none where they read a table of the coordinator.
var everyShard = []string{
	"CountConversations", "CountLooseChunks", "DeleteTenantChanges", "FindConversation", "ForgetChanges", "ForgetReplies", "GetEmbeddingSize", "ListAllBehind",
	"ListBehind", "ListChanged", "ListChangedConversations", "ListIdleConversations", "ListLooseChunks", "ListLooseKeys",
	"ListNamingConversations", "ListOldAttachments", "ListOfAllTenants", "ListPlacedChunks", "ListRatings", "ListRecentHeads", "ListReplies", "ListTags", "ListTenantBehind", "ListTenantChanged",
	"ListTenantChanges", "ListTenantEmbeddings", "ListTenantIDs", "ListTitled", "ListUsedAttachments", "LoosenChunks", "MoveChunks", "NamesAttachment", "SumBodies", "SumConversations",
}

// severalTimes names those of them that first ask other tables, and then for conversations.
var severalTimes = map[string]int{"ListTenantBehind": 2, "ListTitled": 3}

var taskCount = regexp.MustCompile(`Task Count: (\d+)`)

// Citus takes every query, to one shard where it names a conversation, else to each once.
func TestQueriesReadEachShardOnce(t *testing.T) {
	t.Parallel()
	dbtest.NeedsCitus(t)
	pool := dbtest.New(t)
	var id pgtype.UUID
	check.NoError(t, id.Scan("01990000-0000-7000-8000-000000000001"))
	counted := 0
	all := reflect.TypeFor[*db.Queries]()
	for i := range all.NumMethod() {
		method := all.Method(i)
		if onlyPlain[method.Name] != "" {
			continue
		}
		names := false
		s := db.StatementOf(func(q *db.Queries) {
			in := []reflect.Value{reflect.ValueOf(q), reflect.ValueOf(t.Context())}
			if method.Type.NumIn() > 2 {
				arg := reflect.New(method.Type.In(2)).Elem()
				fillWith(arg, id)
				in = append(in, arg)
				if arg.Kind() == reflect.Struct {
					_, names = arg.Type().FieldByName("ConversationID")
				}
			}
			method.Func.Call(in)
		})
		args := []any{pgx.QueryExecModeSimpleProtocol}
		for _, arg := range s.Args {
			if raw, ok := arg.([]byte); ok {
				arg = string(raw)
			}
			args = append(args, arg)
		}
		rows, err := pool.Query(t.Context(), "explain (costs off) "+s.SQL, args...)
		if err != nil {
			t.Errorf("%s: %v", method.Name, err)
			continue
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil {
			t.Errorf("%s: %v", method.Name, err)
			continue
		}
		if plan := strings.Join(lines, "\n"); strings.Contains(plan, "Could not get remote plan") {
			t.Errorf("%s is refused by a node\n%s", method.Name, plan)
		}
		tasks, every := 0, 0
		for _, m := range taskCount.FindAllStringSubmatch(strings.Join(lines, "\n"), -1) {
			n, _ := strconv.Atoi(m[1])
			tasks += n
			if n > 1 {
				every += n
			}
		}
		if names {
			counted++
		}
		shards := dbtest.Shards(t) * max(1, severalTimes[method.Name])
		switch several := slices.Contains(everyShard, method.Name); {
		case several && every != shards:
			t.Errorf("%s has %d tasks in %d shards\n%s", method.Name, every, shards, strings.Join(lines, "\n"))
		case !several && (tasks > 1 || names && tasks != 1):
			t.Errorf("%s: %d tasks\n%s", method.Name, tasks, strings.Join(lines, "\n"))
		}
	}
	check.That(t, counted >= 40, "only %d queries name a conversation: they were not understood", counted)
}

// fillWith gives the parameters of a query values that it can be planned with.
func fillWith(v reflect.Value, id pgtype.UUID) {
	switch p := v.Addr().Interface().(type) {
	case *pgtype.UUID:
		*p = id
	case *[]pgtype.UUID:
		*p = []pgtype.UUID{id, id}
	case *time.Time:
		*p = time.Now()
	case *pgtype.Timestamptz:
		*p = pgtype.Timestamptz{Time: time.Now(), Valid: true}
	case *pgtype.Date:
		*p = pgtype.Date{Time: time.Now(), Valid: true}
	case *string:
		*p = "1"
	case *pgtype.Text:
		*p = pgtype.Text{String: "x", Valid: true}
	case *pgtype.Int4:
		*p = pgtype.Int4{Int32: 1, Valid: true}
	case *pgtype.Int2:
		*p = pgtype.Int2{Int16: 1, Valid: true}
	case *bool:
		*p = true
	case *[]byte:
		*p = []byte("{}")
	default:
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				fillWith(v.Field(i), id)
			}
		case reflect.Int16, reflect.Int32, reflect.Int64:
			v.SetInt(3)
		case reflect.Float64:
			v.SetFloat(3)
		case reflect.Slice:
			if v.Type().Elem().Kind() == reflect.Uint8 {
				v.SetBytes([]byte("{}"))
				return
			}
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fillWith(v.Index(0), id)
		default:
			panic(v.Type())
		}
	}
}

// A node that is killed while rows are copied to it is a database that doesn't
// answer. Citus says so with the code of a defect, as it does of all that a node
// says in a copy.
func TestCopyToAKilledNode(t *testing.T) {
	t.Parallel()
	dbtest.NeedsCitus(t)
	pool := dbtest.New(t)
	ctx := t.Context()
	for _, s := range []string{"create table copied (conversation_id uuid, text text)", "select create_distributed_table('copied', 'conversation_id')"} {
		check.Must(pool.Exec(ctx, s))(t)
	}
	err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		// Over a connection, as to another node.
		if _, err := tx.Exec(ctx, "set local citus.enable_local_execution = off"); err != nil {
			return err
		}
		id, text, killed := pgtype.UUID{Bytes: uuid.New(), Valid: true}, strings.Repeat("an oak ", 1000), false
		rows := 0
		_, err := tx.CopyFrom(ctx, pgx.Identifier{"copied"}, []string{"conversation_id", "text"}, pgx.CopyFromFunc(func() ([]any, error) {
			rows++
			switch {
			case rows > 2000:
				return nil, nil
			case rows > 100 && !killed: // by then the first ones have been sent
				if killed = true; !killCopies(ctx, t, pool) {
					t.Error("no connection copied to a node")
				}
			}
			return []any{id, text}, nil
		}))
		return err
	})
	raw := err
	db.Wrap(&err, "copy")
	check.That(t, fault.Of(err).Kind == fault.Unavailable, "%#v", raw)
}

// killCopies ends what copies rows to the shards of the pool's database.
func killCopies(ctx context.Context, t *testing.T, pool *pgxpool.Pool) bool {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var ended int
		err := pool.QueryRow(ctx, `select count(pg_terminate_backend(pid, 30000)) from pg_stat_activity
			where datname = current_database() and application_name like 'citus_internal%' and query ilike 'copy %'`).Scan(&ended)
		check.NoError(t, err)
		if ended > 0 {
			return true
		}
	}
	return false
}

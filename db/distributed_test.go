package db_test

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
)

// onlyPlain names the queries that a distributed database isn't asked.
var onlyPlain = map[string]string{
	"AppendMessage":      "LockPlace and InsertInTurn stand for it",
	"InsertConversation": "AddConversation and InsertChange stand for it",
	"NoteChange":         "CountChange and InsertChange stand for it",
	"SearchTenant":       "SearchTenantInShards stands for it",
	"FindConversations":  "FindConversationsInShards stands for it",
	"MeasureHits":        "MeasureHitsInShards stands for it",
	"CopyNodes":          "it is a COPY, which has no plan",
	"WithTx":             "it is no query",
}

// everyShard names the queries about more than one conversation. All others go to one
// shard, or to none where they read a table of the coordinator.
var everyShard = map[string]string{
	"CountConversations":        "counts a tenant's conversations",
	"CountMessages":             "counts a tenant's messages",
	"FindConversation":          "finds conversations by the beginning of an id",
	"FindConversationsInShards": "finds conversations by what their messages say",
	"FindTitles":                "finds conversations by their titles",
	"ForgetChanges":             "deletes what is old, of all tenants",
	"ForgetReplyStates":         "deletes what is old, of all tenants",
	"GetEmbeddingSize":          "measures a tenant's vectors",
	"ListChanged":               "looks at the newest changes of tenants",
	"ListCheckpoints":           "lists the replies of a server",
	"ListConversations":         "lists a tenant's conversations",
	"ListConversationsToEmbed":  "lists the conversations of all tenants",
	"ListConversationsWithWord": "finds conversations by a word of their messages",
	"ListNamingConversations":   "looks for messages of a tenant that name an attachment",
	"ListOldAttachments":        "lists the attachments of all tenants",
	"ListOfAllTenants":          "lists the conversations of all tenants",
	"ListRecognizedAnswers":     "lists a tenant's answers",
	"ListTenantChanged":         "lists the conversations of a tenant that changed",
	"ListTags":                  "lists a tenant's tags",
	"ListTenantChanges":         "lists a tenant's changes",
	"ListTenantEmbeddings":      "lists a tenant's vectors",
	"ListTouched":               "lists the conversations of all tenants",
	"ListUsedAttachments":       "looks for messages of a tenant that name attachments",
	"MeasureHitsInShards":       "measures messages of several conversations",
	"SearchNewest":              "looks at a tenant's newest messages",
	"SearchTenantInShards":      "finds a tenant's messages by their words",
}

var taskCount = regexp.MustCompile(`Task Count: (\d+)`)

// testShards is how many shards a test's database has.
const testShards = 4

// Citus takes every query. It sends one that names a conversation to one shard, and
// any other to each shard once.
func TestQueriesReadEachShardOnce(t *testing.T) {
	t.Parallel()
	dbtest.NeedsCitus(t)
	pool := dbtest.New(t)
	var id pgtype.UUID
	if err := id.Scan("01990000-0000-7000-8000-000000000001"); err != nil {
		t.Fatal(err)
	}
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
				fillWith(arg, method.Name, id)
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
		switch why, several := everyShard[method.Name]; {
		case several && every != testShards:
			t.Errorf("%s, which %s, has %d tasks in %d shards\n%s", method.Name, why, every, testShards, strings.Join(lines, "\n"))
		case !several && (tasks > 1 || names && tasks != 1):
			t.Errorf("%s: %d tasks\n%s", method.Name, tasks, strings.Join(lines, "\n"))
		}
	}
	if counted < 40 {
		t.Errorf("only %d queries name a conversation: they were not understood", counted)
	}
}

// fillWith gives the parameters of a query values that it can be planned with.
func fillWith(v reflect.Value, name string, id pgtype.UUID) {
	switch p := v.Addr().Interface().(type) {
	case *pgtype.UUID:
		*p = id
	case *[]pgtype.UUID:
		*p = []pgtype.UUID{id, id}
	case *time.Time:
		*p = time.Now()
	case *pgtype.Timestamptz:
		*p = pgtype.Timestamptz{Time: time.Now(), Valid: true}
	case *string:
		*p = "x"
		switch name {
		case "Words", "Entries":
			*p = "'x'"
		case "Placeholder":
			*p = "coppice"
		}
	case *pgtype.Text:
		*p = pgtype.Text{String: "x", Valid: true}
	case *[]string:
		*p = []string{"x"}
	case *int32:
		*p = 3
	case *int64:
		*p = 3
	case *pgtype.Int4:
		*p = pgtype.Int4{Int32: 1, Valid: true}
	case *bool:
		*p = true
	case *[]byte:
		*p = []byte("{}")
	case *[][]byte:
		*p = [][]byte{[]byte("{}")}
	default:
		if v.Kind() == reflect.Struct {
			for i := range v.NumField() {
				fillWith(v.Field(i), v.Type().Field(i).Name, id)
			}
			return
		}
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("{}"))
			return
		}
		panic(fmt.Sprint(name, v.Type()))
	}
}

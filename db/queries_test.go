package db_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/internal/check"
)

// Every term of every query that reads nodes names conversation_id: a plan then
// stays in one conversation's part of an index and, on Citus, on one shard.
func TestQueriesNameTheConversation(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../queries/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files of queries, %v", len(files), err)
	}
	terms := 0
	for _, file := range files {
		text := check.Must(os.ReadFile(file))(t)
		for name, sql := range queries(string(text)) {
			all, bad := nodeTerms(sql)
			terms += all
			for _, term := range bad {
				t.Errorf("%s, %s: a term reads nodes without naming conversation_id: %s", file, name, term)
			}
		}
	}
	if terms < 20 {
		t.Errorf("only %d terms that read nodes: the queries were not understood", terms)
	}
}

// queries splits a file for sqlc into its queries by name.
func queries(text string) map[string]string {
	found := map[string]string{}
	for _, part := range strings.Split(text, "-- name: ")[1:] {
		name, sql, _ := strings.Cut(part, " ")
		found[name] = sql
	}
	return found
}

var (
	sqlToken    = regexp.MustCompile(`--[^\n]*|'[^']*'|[@$]?\w+|[^\w\s]`)
	identifier  = regexp.MustCompile(`^[a-z]\w*$`)
	notAnAlias  = []string{"on", "where", "set", "using", "join", "left", "inner", "cross", "group", "order", "limit", "for", "returning", "select", "values"}
	tableFollow = []string{"from", "join", "update", "using", "into", ","}
)

// nodeTerms counts the places where a query reads or writes nodes, and lists
// the terms of those that name no conversation. A term is what stands between
// parentheses, or between unions, without the terms inside it.
func nodeTerms(sql string) (all int, bad []string) {
	var tokens []string
	for _, token := range sqlToken.FindAllString(strings.ToLower(sql), -1) {
		if !strings.HasPrefix(token, "--") {
			tokens = append(tokens, token)
		}
	}
	for _, term := range splitTerms(tokens) {
		for i := 1; i < len(term); i++ {
			column := i+1 < len(term) && term[i+1] == "." // of an alias that has the table's name
			if term[i] != "nodes" || !slices.Contains(tableFollow, term[i-1]) || column {
				continue
			}
			all++
			if !namesConversation(term, i) {
				bad = append(bad, strings.Join(term, " "))
			}
		}
	}
	return all, bad
}

// splitTerms takes a statement apart into its terms, the outermost one last.
func splitTerms(tokens []string) (terms [][]string) {
	type level struct {
		term     []string
		subquery bool
	}
	stack := []level{{subquery: true}}
	end := func() { terms = append(terms, stack[len(stack)-1].term) }
	for i, token := range tokens {
		top := &stack[len(stack)-1]
		switch token {
		case "(":
			subquery := i+1 < len(tokens) && slices.Contains([]string{"select", "with", "insert", "update", "delete"}, tokens[i+1])
			stack = append(stack, level{subquery: subquery})
		case ")":
			inner := *top
			if inner.subquery {
				end()
			}
			stack = stack[:len(stack)-1]
			top = &stack[len(stack)-1]
			top.term = append(top.term, "(")
			if !inner.subquery {
				top.term = append(top.term, inner.term...)
			}
			top.term = append(top.term, ")")
		case "union", "intersect", "except":
			end()
			top.term = nil
		default:
			top.term = append(top.term, token)
		}
	}
	end()
	return terms
}

// namesConversation tells whether a term equates conversation_id of the table
// at a position with something, or gives it a value there.
func namesConversation(term []string, table int) bool {
	if term[table-1] == "into" {
		return slices.Contains(columnsAfter(term[table+1:]), "conversation_id")
	}
	alias := "nodes"
	if rest := term[table+1:]; len(rest) > 1 && rest[0] == "as" {
		alias = rest[1]
	} else if len(rest) > 0 && identifier.MatchString(rest[0]) && !slices.Contains(notAnAlias, rest[0]) {
		alias = rest[0]
	}
	for i, token := range term {
		if token != "conversation_id" {
			continue
		}
		first, owner := i, "nodes"
		if i > 1 && term[i-1] == "." {
			first, owner = i-2, term[i-2]
		}
		equated := i+1 < len(term) && term[i+1] == "=" || first > 0 && term[first-1] == "="
		if owner == alias && equated {
			return true
		}
	}
	return false
}

// columnsAfter returns the tokens of a list in parentheses.
func columnsAfter(tokens []string) []string {
	if len(tokens) == 0 || tokens[0] != "(" {
		return nil
	}
	return tokens[:slices.Index(tokens, ")")]
}

// The migration makes keys of tenants by the expression below.
func TestTenantKeyIsThatOfTheMigration(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	for _, tenant := range []string{"default", "", "acme", "été", "a'b\\c"} {
		var want string
		check.NoError(t, pool.QueryRow(t.Context(), "select left(encode(sha256(convert_to($1, 'UTF8')), 'base64'), 8)", tenant).Scan(&want))
		if got := db.TenantKey(tenant); got != want {
			t.Errorf("%q has the key %s, in the migration %s", tenant, got, want)
		}
	}
}

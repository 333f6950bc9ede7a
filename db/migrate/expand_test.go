package migrate_test

import (
	"fmt"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"

	"github.com/coppice-chat/coppice/db/migrate"
)

// firstBeside is the first migration that a program of the version before must
// work with.
const firstBeside = 15

// breaking are the changes that a program of the version before may trip over, of
// which a migration may have none without saying which program it takes.
var breaking = []struct {
	why string
	sql *regexp.Regexp
}{
	{"drops something", regexp.MustCompile(`\bdrop\s+(table|column|view|function|type|schema|default|expression)\b`)},
	{"renames something", regexp.MustCompile(`\brename\b`)},
	{"changes a column's type", regexp.MustCompile(`\balter\s+column\s+\w+\s+(set\s+data\s+)?type\b`)},
	{"has a column never be null", regexp.MustCompile(`\bset\s+not\s+null\b`)},
	{"truncates a table", regexp.MustCompile(`\btruncate\b`)},
}

var (
	sqlComment  = regexp.MustCompile(`--[^\n]*`)
	addsColumn  = regexp.MustCompile(`\badd\s+column\s+[^,;]*`)
	notNull     = regexp.MustCompile(`\bnot\s+null\b`)
	hasDefault  = regexp.MustCompile(`\b(default|generated)\b`)
	takesNewer  = regexp.MustCompile(`\bupdate\s+installation\s+set\s+oldest_program\s*=\s*(\d+)`)
	whiteSpaces = regexp.MustCompile(`\s+`)
)

// breaks tells what of a migration a program of the version before trips over; ""
// for nothing.
func breaks(version int64, sql string) string {
	up, _, _ := strings.Cut(sql, "-- +goose Down")
	up = whiteSpaces.ReplaceAllString(strings.ToLower(sqlComment.ReplaceAllString(up, "")), " ")
	if m := takesNewer.FindStringSubmatch(up); m != nil && m[1] == fmt.Sprint(version) {
		return ""
	}
	for _, b := range breaking {
		if b.sql.MatchString(up) {
			return b.why
		}
	}
	for _, column := range addsColumn.FindAllString(up, -1) {
		if notNull.MatchString(column) && !hasDefault.MatchString(column) {
			return "adds a column that is never null and has no default"
		}
	}
	return ""
}

// While a new version is rolled out, programs of the version before work on the
// schema that the new one made: a migration only adds. One that takes something
// away comes a version after the last program that used it, and says so.
func TestMigrationsOnlyAdd(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(migrate.Files(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		version, err := goose.NumericComponent(name)
		if err != nil {
			t.Fatal(err)
		}
		sql, err := fs.ReadFile(migrate.Files(), name)
		if err != nil {
			t.Fatal(err)
		}
		if why := breaks(version, string(sql)); why != "" && version >= firstBeside {
			t.Errorf("%s %s, so that programs of the version before fail beside it. Add first, and take away in a later version. "+
				"Where that can't be, add: update installation set oldest_program = %d;", name, why, version)
		}
	}
}

func TestBreaks(t *testing.T) {
	t.Parallel()
	for sql, want := range map[string]string{
		"create table a (b text not null);":                                          "",
		"alter table a add column b text;":                                           "",
		"alter table a add column b text not null default '';":                       "",
		"alter table a add column b text -- not null\n;":                             "",
		"alter table a add column b bigint not null generated always as (1) stored;": "",
		"create index a on b (c); -- then drop column d":                             "",
		"select 1;\n-- +goose Down\ndrop table a;":                                   "",
		"alter table a add column b text not null;":                                  "adds a column that is never null and has no default",
		"ALTER TABLE a\n DROP\n COLUMN b;":                                           "drops something",
		"drop table a;":                                                              "drops something",
		"alter table a rename b to c;":                                               "renames something",
		"alter table a alter column b type bigint;":                                  "changes a column's type",
		"alter table a alter column b set data type bigint;":                         "changes a column's type",
		"alter table a alter column b set not null;":                                 "has a column never be null",
		"drop table a; update installation set oldest_program = 20;":                 "",
		"drop table a; update installation set oldest_program = 19;":                 "drops something",
	} {
		if got := breaks(20, sql); got != want {
			t.Errorf("%q: %q, want %q", sql, got, want)
		}
	}
}

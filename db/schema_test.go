package db_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// schema.sql is the schema's documentation: each table is explained by a
// comment above it, each column by one beside or above it.
func TestSchemaIsExplained(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	if names := unexplained(string(text)); len(names) > 0 {
		t.Errorf("schema.sql has no comment on %s", strings.Join(names, ", "))
	}
}

func TestUnexplained(t *testing.T) {
	t.Parallel()
	got := unexplained(`
-- Explained.
create table a (
    one uuid primary key, -- is explained
    -- So is this.
    two text not null,
    three text,
    check (one is not null),
    four text
);

create table b (
    one text -- is explained
);`)
	if want := []string{"a.three", "a.four", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

var (
	createTable = regexp.MustCompile(`^create table (\w+) \($`)
	columnLine  = regexp.MustCompile(`^    ([a-z_]+) +[a-z]`)
	notAColumn  = []string{"primary", "foreign", "constraint", "unique", "check", "exclude", "like"}
)

// unexplained lists the tables and columns of a schema, laid out as schema.sql
// is, that no comment explains.
func unexplained(schema string) (names []string) {
	var table, above string
	for line := range strings.Lines(schema) {
		line = strings.TrimRight(line, "\n")
		if m := createTable.FindStringSubmatch(line); m != nil {
			if table = m[1]; !isComment(above) {
				names = append(names, table)
			}
		} else if m := columnLine.FindStringSubmatch(line); m != nil && table != "" && !slices.Contains(notAColumn, m[1]) {
			if !strings.Contains(line, "--") && !isComment(above) {
				names = append(names, table+"."+m[1])
			}
		} else if line == ");" {
			table = ""
		}
		above = line
	}
	return names
}

func isComment(line string) bool {
	return strings.HasPrefix(strings.TrimSpace(line), "--")
}

package speed

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/tree"
)

func TestCorpus(t *testing.T) {
	t.Parallel()
	c, again := newCorpus(3, 200), newCorpus(3, 200)
	for _, role := range []tree.Role{tree.RoleUser, tree.RoleAssistant} {
		for i, text := range c.texts[role] {
			if string(text.body) != string(again.texts[role][i].body) {
				t.Fatal("the same seed gives other texts")
			}
			var m struct{ Role, Content string }
			if err := json.Unmarshal(text.body, &m); err != nil || m.Role != string(role) || !strings.HasSuffix(m.Content, ".") {
				t.Fatalf("%s: %v", text.body, err)
			}
		}
	}
	words := c.vocabulary()
	if len(words) != vocabularySize || words[0] != "the" {
		t.Errorf("%d words, the first %q", len(words), words[0])
	}
}

// Made-up texts are like what people and models say to each other in what they
// take on disk: as many different words, and packed no better.
func TestTextsAreLikePeoples(t *testing.T) {
	t.Parallel()
	real := openAssistantTexts(t)
	c := newCorpus(1, 4000)
	var made []string
	for _, texts := range c.texts {
		for _, text := range texts {
			made = append(made, string(text.body))
		}
	}
	pool := dbtest.New(t)
	theirs, ours := measureTexts(t, pool, real), measureTexts(t, pool, made)
	for i := range theirs {
		r, m := theirs[i], ours[i]
		t.Logf("%5d bytes: people's %4d texts have %.2f different words for each word and take %.2f of their bytes; made-up %.2f and %.2f", r.From, r.Texts, r.Different, r.Stored, m.Different, m.Stored)
		if math.Abs(m.Different-r.Different) > 0.07 {
			t.Errorf("texts of %d bytes: %.2f different words for each word, and people's have %.2f", r.From, m.Different, r.Different)
		}
		if m.Stored < r.Stored-0.02 || m.Stored > r.Stored+0.2 {
			t.Errorf("texts of %d bytes: %.2f of their bytes are stored, and %.2f of people's", r.From, m.Stored, r.Stored)
		}
	}
}

// textSizes says of texts of like size how they are told and stored.
type textSizes struct {
	From, Texts       int     // bytes of the smallest that might be, and how many there are
	Different, Stored float64 // words that differ, to all words; bytes on disk, to all bytes
}

func measureTexts(t *testing.T, pool *pgxpool.Pool, bodies []string) []textSizes {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if _, err := conn.Exec(t.Context(), "create temporary table texts (pad text, body json)"); err != nil {
		t.Fatal(err)
	}
	defer conn.Exec(t.Context(), "drop table texts")
	rows := make([][]any, len(bodies))
	for i, body := range bodies {
		rows[i] = []any{strings.Repeat(".", 120), body} // a node's other columns have about as many bytes
	}
	if _, err := conn.CopyFrom(t.Context(), pgx.Identifier{"texts"}, []string{"pad", "body"}, pgx.CopyFromRows(rows)); err != nil {
		t.Fatal(err)
	}
	found, err := conn.Query(t.Context(), `
		with text as (
			select octet_length(body::text) as bytes, pg_column_size(body) as stored, length(to_tsvector('simple', body ->> 'content')) as different,
			       (select count(*) from regexp_split_to_table(body ->> 'content', '\s+')) as words
			from texts)
		select (array[200, 500, 1000, 2000])[width_bucket(bytes, array[200, 500, 1000, 2000])], count(*)::integer,
		       (avg(different) / avg(words))::float8, (avg(stored) / avg(bytes))::float8
		from text where bytes between 200 and 3999 group by 1 order by 1`)
	if err != nil {
		t.Fatal(err)
	}
	sizes, err := pgx.CollectRows(found, pgx.RowToStructByPos[textSizes])
	if err != nil || len(sizes) != 4 {
		t.Fatalf("%d classes of size: %v", len(sizes), err)
	}
	return sizes
}

// openAssistantTexts are the bodies of the trees that people wrote for Open
// Assistant.
func openAssistantTexts(t *testing.T) (bodies []string) {
	t.Helper()
	path := filepath.Join("shared", "data", "oasst", "en_100_tree.jsonl")
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; !exists(filepath.Join(dir, path)); dir = filepath.Dir(dir) {
		if dir == filepath.Dir(dir) {
			t.Skipf("%s is not above this package; it holds real exports, which are not part of the repository", path)
		}
	}
	file, err := os.Open(filepath.Join(dir, path))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	type message struct {
		Role, Text string
		Replies    []message
	}
	var add func(message)
	add = func(m message) {
		role := tree.RoleAssistant
		if m.Role == "prompter" {
			role = tree.RoleUser
		}
		bodies = append(bodies, string(newText(role, m.Text).body))
		for _, reply := range m.Replies {
			add(reply)
		}
	}
	lines := bufio.NewScanner(file)
	for lines.Buffer(nil, 16<<20); lines.Scan(); {
		var one struct{ Prompt message }
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			t.Fatal(err)
		}
		add(one.Prompt)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return bodies
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

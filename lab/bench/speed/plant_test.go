package speed

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db/dbtest"
	"github.com/coppice-chat/coppice/summarize"
	"github.com/coppice-chat/coppice/tree"
)

func plant(t testing.TB, pool *pgxpool.Pool, c *corpus, do func(*planter)) {
	t.Helper()
	p, err := newPlanter(t.Context(), pool, c)
	if err != nil {
		t.Fatal(err)
	}
	do(p)
	if err := p.close(); err != nil {
		t.Fatal(err)
	}
}

// What is planted is what appends and compactions would have stored: the store
// reads it, goes on with it, and a copy of it made by the store is the same.
func TestPlantedIsStored(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	store := tree.New(pool)
	var at planted
	var messages []*spot
	plant(t, pool, newCorpus(1, 16), func(p *planter) {
		c := p.chat()
		line, err := c.grow(nil, 40)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.grow(line[20], 3); err != nil { // a branch
			t.Fatal(err)
		}
		if err := c.fold(line, 29); err != nil {
			t.Fatal(err)
		}
		c.end()
		at, messages = planted{c.id, line[39].id}, line
	})
	wrong := 0
	err := pool.QueryRow(t.Context(), `
		select count(*) from nodes n left join nodes p on p.conversation_id = n.conversation_id and p.id = n.parent_id
		where n.depth <> coalesce(p.depth + 1, 0) or n.path_tokens <> coalesce(p.path_tokens, 0) + n.tokens
		   or n.parent_id is null <> (p.id is null) or n.prefix_id is distinct from (select r.id from nodes r where r.depth = 0)`).Scan(&wrong)
	if err != nil || wrong != 0 {
		t.Errorf("%d rows don't fit their parent's: %v", wrong, err)
	}
	err = pool.QueryRow(t.Context(), `
		select count(*) from conversations c
		where c.message_count <> (select count(*) from nodes n where n.conversation_id = c.id and n.kind = 'message')`).Scan(&wrong)
	if err != nil || wrong != 0 {
		t.Errorf("%d conversations count their messages wrongly: %v", wrong, err)
	}
	v, err := store.View(t.Context(), at.id, at.head, 1_000_000)
	if err != nil {
		t.Fatal(err)
	}
	if v.Summary == nil || len(v.Prefix) != 1 || len(v.Tail) != 10 || v.Folded != 29 || len(v.Summary.Range.KeptIDs) != keeps {
		t.Errorf("the view has %d messages before, %d folded, %d after, summary %v", len(v.Prefix), v.Folded, len(v.Tail), v.Summary)
	}
	service, err := summarize.New(store, summarize.Config{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := service.Context(t.Context(), at.id, at.head, summarize.Window{})
	if err != nil || !c.Complete || len(c.Messages) != 12 {
		t.Errorf("a context of %d messages, complete %t, %v", len(c.Messages), c.Complete, err)
	}
	m, _, err := store.Append(t.Context(), at.id, messages[20].id, tree.NewMessage{Body: []byte(`{"role":"assistant","content":"x"}`), CreatedAt: time.Now()})
	if err != nil || m.Siblings != (tree.Siblings{Index: 3, Count: 3}) {
		t.Errorf("the third sibling is %+v, %v", m.Siblings, err)
	}
	// Counted as the store counts.
	for _, spot := range messages {
		stored, err := store.Message(t.Context(), at.id, spot.id)
		if err != nil {
			t.Fatal(err)
		}
		again, _, err := store.Append(t.Context(), at.id, spot.id, tree.NewMessage{Body: stored.Body})
		if err != nil || again.Tokens != stored.Tokens {
			t.Fatalf("%d tokens, counted as %d: %v", again.Tokens, stored.Tokens, err)
		}
	}
}

// The floors and the designs read what the server reads.
func TestWaysGiveTheSame(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	var line plantedLine
	plant(t, pool, newCorpus(1, 16), func(p *planter) {
		var err error
		if line, err = p.line(30); err != nil {
			t.Fatal(err)
		}
	})
	if _, err := pool.Exec(t.Context(), designTables); err != nil {
		t.Fatal(err)
	}
	if err := copyToDesigns(t.Context(), pool, line.id); err != nil {
		t.Fatal(err)
	}
	plain, err := newPlain(t.Context(), pool.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.close()
	bodies := 0
	store := tree.New(pool)
	page, err := store.Transcript(t.Context(), line.id, line.head, tree.Paging{Limit: 7})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range page.Data {
		bodies += len(m.Body)
	}
	if n, err := pageSQL(t.Context(), pool, line.id, line.head, 7); err != nil || n != bodies {
		t.Errorf("a page has %d bytes of bodies, by SQL %d, %v", bodies, n, err)
	}
	if n, err := plain.page(t.Context(), line.id, line.head, 7); err != nil || n <= bodies {
		t.Errorf("prepared, a page has %d bytes, %v", n, err)
	}
	if n, err := viewSQL(t.Context(), pool, line.id, line.head, 1_000_000); err != nil || n <= bodies {
		t.Errorf("a view has %d bytes, %v", n, err)
	}
	if n, err := plain.view(t.Context(), line.id, line.head, 1_000_000); err != nil || n <= bodies {
		t.Errorf("prepared, a view has %d bytes, %v", n, err)
	}
	if n, err := plain.tree(t.Context(), line.id); err != nil || n == 0 {
		t.Errorf("prepared, a tree has %d bytes, %v", n, err)
	}
	for name, load := range map[string]func() (int, error){
		nameLoadAll: func() (int, error) {
			m, err := loadAll(t.Context(), pool, line.id)
			if err != nil {
				return 0, err
			}
			return lastOf(m, line.head, 7)
		},
		nameOneRow: func() (int, error) {
			m, err := loadRow(t.Context(), pool, line.id)
			if err != nil {
				return 0, err
			}
			return lastOf(m, line.head, 7)
		},
	} {
		// jsonb spaces its text.
		if n, err := load(); err != nil || n < bodies || n > bodies+7*10 {
			t.Errorf("%s: %d bytes of a page of %d, %v", name, n, bodies, err)
		}
	}
	head := line.head
	say := newText(tree.RoleUser, "And then?")
	for range 2 {
		if head, _, err = appendSQL(t.Context(), pool, line.id, head, say, tree.RoleUser); err != nil {
			t.Fatal(err)
		}
		if head, _, err = plain.append(t.Context(), line.id, head, say, tree.RoleUser); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := store.Message(t.Context(), line.id, head); err != nil || m.Depth != 33 || m.Tokens != say.tokens {
		t.Errorf("after four appends the last one is %+v, %v", m, err)
	}
	for _, add := range []func() error{
		func() error {
			_, _, err := appendRow(t.Context(), pool, line.id, line.head, say, tree.RoleUser)
			return err
		},
		func() error {
			_, _, err := appendDocument(t.Context(), pool, line.id, line.head, say, tree.RoleUser)
			return err
		},
	} {
		if err := add(); err != nil {
			t.Error(err)
		}
	}
	rows, err := loadAll(t.Context(), pool, line.id)
	if err != nil || len(rows) != 31 {
		t.Errorf("%d rows after an append, %v", len(rows), err)
	}
	document, err := loadRow(t.Context(), pool, line.id)
	if err != nil || len(document) != 31 {
		t.Errorf("%d messages in the row after an append, %v", len(document), err)
	}
}

func TestStorage(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	var bodies int64
	plant(t, pool, newCorpus(1, 16), func(p *planter) {
		if _, err := p.interleave(3, 50); err != nil {
			t.Fatal(err)
		}
		bodies = p.bodies
	})
	s, err := measureStorage(t.Context(), pool, 150, bodies)
	if err != nil {
		t.Fatal(err)
	}
	var total int64
	names := map[string]bool{}
	for _, p := range s.Pieces {
		total += p.Bytes
		names[p.Name] = true
	}
	if total != s.Total || s.Ratio <= 1 || !names["nodes"] || !names["nodes_search"] || !names["conversations_pkey"] {
		t.Errorf("%+v", s)
	}
}

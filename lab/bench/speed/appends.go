package speed

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coppice-chat/coppice/db"
	"github.com/coppice-chat/coppice/tree"
)

// shortText is a message as people write them: neither a word nor a page.
const shortText = "A message of some length, as people write them to a model: neither a word nor a page."

// lineLength is how long lines are before they are appended to.
const lineLength = 200

// append measures appends to lines of 200 messages that grow with it, one line
// for each writer of each variant.
func (s *session) append(ctx context.Context, r *rig) error {
	writers := []int{1, 8, 32}
	if s.cfg.Quick {
		writers = []int{1, 3}
	}
	most := writers[len(writers)-1]
	p, err := newPlanter(ctx, r.pool, s.corpus)
	if err != nil {
		return err
	}
	places := map[string][]place{}
	for _, name := range []string{nameCoppice, nameSQL, namePrepared, nameBare, nameLoadAll, nameOneRow, nameBefore} {
		for range most {
			c := p.chat()
			line, err := c.grow(nil, lineLength)
			if err != nil {
				return err
			}
			c.end()
			places[name] = append(places[name], place{c.id, line[len(line)-1].id})
		}
	}
	if err := p.close(); err != nil {
		return err
	}
	for _, name := range []string{nameLoadAll, nameOneRow} {
		for _, at := range places[name] {
			if err := copyToDesigns(ctx, r.pool, at.conversation); err != nil {
				return err
			}
		}
	}
	// What HTTP costs by itself.
	nothing, err := r.compare(ctx, s.pace, "a request that does nothing", []task{{coppice: get("/healthz"), before: get("/healthz")}})
	if err != nil {
		return err
	}
	s.add(nothing)
	if err := r.serveBare(ctx, s.cfg.Host); err != nil {
		return err
	}
	short := newText(tree.RoleUser, shortText)
	tasks := func(n int, say func(*corpus) (text, tree.Role)) (out []task) {
		for i := range n {
			own := s.corpus.fork(uint64(i))
			out = append(out, r.appendTask(func(variant string) *place { return &places[variant][i] },
				func() (text, tree.Role) { return say(own) }, true, true))
		}
		return out
	}
	c, err := r.compare(ctx, s.pace, fmt.Sprintf("append a message of %d bytes", len(shortText)),
		tasks(1, func(*corpus) (text, tree.Role) { return short, tree.RoleUser }))
	if err != nil {
		return err
	}
	s.add(c)
	for _, n := range writers {
		c, err := r.compare(ctx, s.pace, "append messages of all sizes", tasks(n, (*corpus).turn))
		if err != nil {
			return err
		}
		s.add(c)
	}
	return s.searchCost(ctx, r)
}

// searchCost compares the SQL of an append with the same on a database without
// the search index.
func (s *session) searchCost(ctx context.Context, r *rig) error {
	url, err := s.cfg.Host.Database(ctx)
	if err != nil {
		return err
	}
	bare, err := db.Open(ctx, db.Config{URL: url, MaxConns: 2})
	if err != nil {
		return err
	}
	defer bare.Close()
	if _, err := bare.Exec(ctx, "drop index nodes_search"); err != nil {
		return err
	}
	own := s.corpus.fork(1)
	var variants []variant
	for _, v := range []struct {
		name string
		pool *pgxpool.Pool
	}{{nameWithout, bare}, {nameSQL, r.pool}} {
		p, err := newPlanter(ctx, v.pool, s.corpus)
		if err != nil {
			return err
		}
		line, err := p.line(lineLength)
		if err != nil {
			return err
		}
		if err := p.close(); err != nil {
			return err
		}
		head := line.head
		variants = append(variants, variant{name: v.name, cost: ownMeter{}, jobs: []job{func(ctx context.Context) (n int, err error) {
			t, role := own.turn()
			head, n, err = appendSQL(ctx, v.pool, line.id, head, t, role)
			return n, err
		}}})
	}
	c, err := compare(ctx, s.pace, "the SQL of an append without the search index", variants, nameSQL)
	if err == nil {
		s.add(c)
	}
	return err
}

const nameWithout = "without search"

// turn draws a user's or an assistant's text.
func (c *corpus) turn() (text, tree.Role) {
	role := tree.RoleUser
	if c.rand.IntN(2) == 0 {
		role = tree.RoleAssistant
	}
	return c.draw(role), role
}

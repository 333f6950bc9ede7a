package speed

import (
	"context"
	"errors"
)

// databases: each with a server of its own, with conversations of 100 messages,
// of which 64 go on at a time, so that a conversation's rows lie apart.
func (s *session) databases(ctx context.Context) (a Axis, err error) {
	const length, active, sample = 100, 64, 1000
	a = Axis{Name: "size of the database", Unit: "messages", Sizes: []int{100_000}}
	for _, n := range []int{1_000_000, s.cfg.LargestDatabase} {
		if n > a.Sizes[len(a.Sizes)-1] && n <= s.cfg.LargestDatabase {
			a.Sizes = append(a.Sizes, n)
		}
	}
	if s.cfg.Quick {
		a.Sizes = []int{2000, 4000}
	}
	var rigs []*rig
	defer func() {
		for _, r := range rigs {
			err = errors.Join(err, r.close())
		}
	}()
	var stages []stage
	for _, n := range a.Sizes {
		r, err := newRig(ctx, s.cfg.Host)
		if err != nil {
			return a, err
		}
		rigs = append(rigs, r)
		all, bodies, err := s.fill(ctx, r, n, length, active)
		if err != nil {
			return a, err
		}
		stored, err := measureStorage(ctx, r.pool, n, bodies)
		if err != nil {
			return a, err
		}
		a.Storage = append(a.Storage, stored)
		s.cfg.Remark("  %s messages: %.2f bytes stored for each of a body", thousands(n), stored.Ratio)
		s.corpus.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:min(sample, len(all))]
		places := make([]place, len(all))
		for i, b := range all {
			places[i] = place{b.id, b.head}
		}
		next := 0
		stages = append(stages, stage{rig: r, branches: all, grow: true, append: func() *place {
			next++
			return &places[next%len(places)]
		}})
	}
	// Filling the largest took minutes, in which the others' pages went from
	// memory: all that is asked for is read once.
	for _, st := range stages {
		for _, b := range st.branches {
			if _, err := viewSQL(ctx, st.pool, b.id, b.head, warmBudget); err != nil {
				return a, err
			}
		}
	}
	if err := s.measureAxis(ctx, &a, stages); err != nil {
		return a, err
	}
	for _, r := range rigs {
		s.noteMemory(r)
	}
	return a, nil
}

// warmBudget, in tokens, is more than a line of the axis has.
const warmBudget = 1 << 30

// grown is how large a database is filled with its search index in place.
// Larger ones get theirs afterwards, as when a backup is restored: to keep it up
// to date is most of the work.
const grown = 100_000

// fill plants lines until there are n messages.
func (s *session) fill(ctx context.Context, r *rig, n, length, active int) (all []planted, bodies int64, err error) {
	index := ""
	if n > grown {
		if err := r.pool.QueryRow(ctx, "select pg_get_indexdef('nodes_search'::regclass)").Scan(&index); err != nil {
			return nil, 0, err
		}
		if _, err := r.pool.Exec(ctx, "drop index nodes_search"); err != nil {
			return nil, 0, err
		}
	}
	p, err := newPlanter(ctx, r.pool, s.corpus)
	if err != nil {
		return nil, 0, err
	}
	for made := 0; made < n; made += active * length {
		ended, err := p.interleave(min(active, max(1, (n-made)/length)), length)
		if err != nil {
			return nil, 0, errors.Join(err, p.close())
		}
		all = append(all, ended...)
	}
	if index != "" {
		if err := errors.Join(p.flush(), p.build(index)); err != nil {
			return nil, 0, errors.Join(err, p.close())
		}
	}
	return all, p.bodies, p.close()
}

// build makes an index of what was planted.
func (p *planter) build(definition string) error {
	_, err := p.conn.Exec(p.ctx, "set maintenance_work_mem = '1GB'; "+definition)
	return err
}

// interleave plants lines that grow at the same time.
func (p *planter) interleave(lines, length int) (ended []planted, err error) {
	chats := make([]*chat, lines)
	tips := make([]*spot, lines)
	for i := range chats {
		chats[i] = p.chat()
	}
	for range length {
		for i, c := range chats {
			grown, err := c.grow(tips[i], 1)
			if err != nil {
				return nil, err
			}
			tips[i] = grown[0]
		}
	}
	for _, c := range chats {
		c.end()
		ended = append(ended, planted{c.id, c.head})
	}
	return ended, nil
}

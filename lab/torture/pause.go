package torture

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// quietPatience is how long what is under way may take to end once the faults
// have: longer than the servers' timeouts together.
const quietPatience = 45 * time.Second

// pause holds the writers, waits until nothing is under way, and checks what
// they work on; at the last one everything that was ever made.
func (r *run) pause(ctx context.Context, last bool) error {
	r.gate.Lock()
	defer r.gate.Unlock()
	for _, p := range r.programs {
		if err := r.awaitReady(ctx, p); err != nil {
			if ctx.Err() != nil {
				return err
			}
			r.report.violate("not ready", "%v", err)
			return nil
		}
	}
	if err := r.awaitQuiet(ctx); err != nil {
		return err
	}
	if err := r.awaitReplica(ctx); err != nil {
		return err
	}
	r.report.count(func(p *Report) { p.Checks.Pauses++ })
	r.mu.Lock()
	all, shared := r.all, r.shared
	r.mu.Unlock()
	now := map[*conversation]bool{}
	for _, c := range shared {
		now[c] = true
	}
	for _, c := range all {
		c.mu.Lock()
		open := c.state == unknown || c.fork != nil || c.deleted == unknown || c.deleted == acknowledged && last
		c.mu.Unlock()
		if c.shared && (last || open || now[c]) {
			r.checkConversation(ctx, c, now[c])
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	for slot := range r.histories {
		r.closeHistory(ctx, slot)
	}
	r.checkRows(ctx)
	r.checkChats(ctx)
	r.checkPages(ctx)
	r.checkFeeds(ctx)
	r.checkDesks(ctx)
	if last {
		r.checkLists(ctx)
		return nil
	}
	r.renew(ctx)
	return nil
}

// awaitQuiet waits until the servers have no request or reply under way, and
// Postgres no transaction that began before. Compactions may go on.
func (r *run) awaitQuiet(ctx context.Context) error {
	begin := time.Now()
	for {
		busy := ""
		for _, p := range r.programs {
			metrics, err := r.metrics(ctx, p)
			if err != nil {
				busy = err.Error()
			} else if metrics["coppice_http_requests_in_flight"] > 1 || metrics["coppice_replies_running"] > 0 {
				busy = fmt.Sprintf("server %s: %v requests, %v replies", p.name, metrics["coppice_http_requests_in_flight"], metrics["coppice_replies_running"])
			}
		}
		if busy == "" {
			const open = `select count(*) from pg_stat_activity where application_name = 'coppice' and xact_start < $1`
			var n int
			if err := r.admin.QueryRow(ctx, open, begin).Scan(&n); err != nil {
				busy = err.Error()
			} else if n > 0 {
				busy = fmt.Sprintf("%d transactions", n)
			}
		}
		switch {
		case busy == "":
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case time.Since(begin) > quietPatience:
			return fmt.Errorf("%w within %s: %s", errNotQuiet, quietPatience, busy)
		}
		r.sleep(ctx, 50*time.Millisecond)
	}
}

// metrics reads a server's figures, of those with labels none.
func (r *run) metrics(ctx context.Context, p *program) (map[string]float64, error) {
	a := r.client.do(ctx, nil, p.number, http.MethodGet, "/metrics", nil, nil)
	if a.outcome() != acknowledged {
		return nil, fmt.Errorf("the metrics of server %s: %d %v", p.name, a.status, a.err)
	}
	found := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(a.body)); lines.Scan(); {
		name, value, ok := strings.Cut(lines.Text(), " ")
		if !ok || strings.HasPrefix(name, "#") {
			continue
		}
		if v, err := strconv.ParseFloat(value, 64); err == nil {
			found[name] = v
		}
	}
	return found, nil
}

func (r *run) readTree(ctx context.Context, c *conversation) (tree treeAnswer, a answer) {
	return r.readTreeBy(ctx, r.as(c), c)
}

func (r *run) readTreeBy(ctx context.Context, by *client, c *conversation) (tree treeAnswer, a answer) {
	for range 5 { // nothing is wrong, so one should do; but compactions may hold it up
		a = by.do(ctx, nil, r.any(), http.MethodGet, r.path(c)+"/tree?preview=20", nil, &tree)
		if a.outcome() != unknown {
			break
		}
		r.sleep(ctx, 100*time.Millisecond)
	}
	return tree, a
}

// checkConversation compares a conversation with the ledger. It has one that
// writers work on do what can be checked exactly now.
func (r *run) checkConversation(ctx context.Context, c *conversation, works bool) {
	tree, a := r.readTree(ctx, c)
	c.mu.Lock()
	there, ok := r.settle(c, tree, a)
	if !ok || !there {
		c.mu.Unlock()
		return
	}
	r.report.findings(checkTree(c, tree, r.marks))
	standing := c.standing()
	c.mu.Unlock()
	r.report.count(func(p *Report) {
		p.Checks.Conversations++
		p.Checks.Messages += len(tree.Data)
	})
	rng := r.rng("check", len(standing))
	for range min(6, len(standing)) {
		m := standing[rng.IntN(len(standing))]
		r.compareContext(ctx, c, m)
		r.compareTranscript(ctx, c, m)
	}
	if works {
		r.exercise(ctx, c, tree)
	}
}

// settle decides whether a conversation is there, and whether it may be. The
// caller holds its mu.
func (r *run) settle(c *conversation, tree treeAnswer, a answer) (there, ok bool) {
	there = a.outcome() == acknowledged
	if !there && a.code != "conversation_not_found" {
		r.report.violate("lost", "conversation %s can't be read: %d %s %v", c.id, a.status, a.code, a.err)
		return there, false
	}
	if c.deleted == unknown {
		if c.deleted = refused; !there {
			c.deleted = acknowledged
		}
	}
	switch {
	case c.deleted == acknowledged && there:
		r.report.violate("came back", "conversation %s is there, and was deleted", c.id)
		return there, false
	case c.deleted == acknowledged:
		return there, true
	case c.state == refused && there:
		r.report.violate("invented", "conversation %s is there, and was refused", c.id)
	case c.state == acknowledged && !there:
		r.report.violate("lost", "conversation %s was acknowledged, and is lost", c.id)
	}
	if c.state == unknown {
		if c.state = refused; there {
			c.state = acknowledged
		}
	}
	if there && c.fork != nil {
		c.fill(c.fork, tree)
	}
	c.fork = nil
	return there, true
}

// renew replaces conversations that are large by new ones. Some are deleted.
func (r *run) renew(ctx context.Context) {
	for i, c := range r.shared {
		c.mu.Lock()
		size := len(c.order)
		ok := c.state == acknowledged && c.deleted == refused
		c.mu.Unlock()
		if ok && size < maxMessages {
			continue
		}
		next := r.create(ctx, c.tenant, true)
		r.mu.Lock()
		r.shared[i] = next
		r.mu.Unlock()
		if ok && i%2 == 0 && !r.isShared(c) {
			r.remove(ctx, c)
		}
	}
}

func (r *run) isShared(c *conversation) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, other := range r.shared {
		if other == c {
			return true
		}
	}
	return false
}

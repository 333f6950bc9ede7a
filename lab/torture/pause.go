package torture

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// pause holds the writers, waits until nothing is under way, and checks what
// they work on; the last one checks everything that was ever made.
func (r *run) pause(ctx context.Context, last bool) error {
	r.gate.Lock()
	defer r.gate.Unlock()
	if err := r.awaitQuiet(ctx); err != nil {
		if ctx.Err() == nil {
			r.report.violate("not quiet", "%v", err)
		}
		return err
	}
	for _, c := range r.all {
		if last || c.state == unknown || c.deleted != refused || slices.Contains(r.shared, c) {
			r.checkConversation(ctx, c)
			r.checkSome(ctx, c)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	r.checkRows(ctx)
	r.feed.check(ctx)
	for i, c := range r.shared { // large ones are replaced; some are deleted
		if len(c.order) < maxMessages && c.stands() || last {
			continue
		}
		if r.shared[i] = r.create(ctx, c.tenant); i%2 == 0 && c.stands() && !slices.Contains(r.shared, c) {
			r.delete(ctx, c)
		}
	}
	return nil
}

// awaitQuiet waits until the servers are ready, have no request or reply under
// way, and Postgres no transaction that began before. Compactions may go on.
func (r *run) awaitQuiet(ctx context.Context) error {
	const (
		transactions = `select count(*) from pg_stat_activity where application_name = 'coppice' and xact_start < $1`
		replies      = `select count(*) from replies where state in ('running', 'stopping')` // by itself, as it is on the workers
	)
	for _, s := range r.servers {
		if err := awaitReady(ctx, s); err != nil {
			return err
		}
	}
	for begin := time.Now(); ctx.Err() == nil; sleep(ctx, 50*time.Millisecond) {
		busy := ""
		for _, s := range r.servers {
			a := r.do(ctx, request{server: s, method: http.MethodGet, path: "/metrics"})
			for _, quiet := range []string{"coppice_http_requests_in_flight 1", "coppice_replies_running 0"} { // the request is this one
				if !strings.Contains(string(a.body), "\n"+quiet+"\n") {
					busy = fmt.Sprintf("server %s doesn't say %s", s.name, quiet)
				}
			}
		}
		var open, running int
		err := r.admin.QueryRow(ctx, transactions, begin).Scan(&open)
		if err == nil {
			err = r.admin.QueryRow(ctx, replies).Scan(&running)
		}
		if busy == "" && (err != nil || open+running > 0) {
			busy = fmt.Sprintf("%d transactions, %d replies, %v", open, running, err)
		}
		if busy == "" {
			return nil
		}
		if time.Since(begin) > quietBound {
			return fmt.Errorf("the servers don't come to rest within %s: %s", quietBound, busy)
		}
	}
	return context.Cause(ctx)
}

func (r *run) readTree(ctx context.Context, c *conversation) (tree treeAnswer, a answer) {
	for range 5 { // compactions may hold it up
		if a = r.get(ctx, c.to("", "/tree?preview=20", nil), &tree); a.outcome() != unknown {
			break
		}
		sleep(ctx, 100*time.Millisecond)
	}
	return tree, a
}

// checkConversation compares a conversation with the ledger, while nothing but
// compactions is under way in it.
func (r *run) checkConversation(ctx context.Context, c *conversation) {
	tree, a := r.readTree(ctx, c)
	c.mu.Lock()
	defer c.mu.Unlock()
	there := a.outcome() == acknowledged
	if !there && a.code != "conversation_not_found" {
		if ctx.Err() == nil {
			c.violate("lost", "it can't be read: %d %s %v", a.status, a.code, a.err)
		}
		return
	}
	settle := func(o *outcome, happened bool) {
		if *o == unknown {
			*o = map[bool]outcome{true: acknowledged, false: refused}[happened]
		}
	}
	settle(&c.deleted, !there)
	settle(&c.state, there)
	switch {
	case c.deleted == acknowledged && there:
		c.violate("came back", "it is there, and was deleted")
		return
	case c.deleted == acknowledged:
		r.report.checked("deleted conversations", 1)
		return
	case c.state == refused && there:
		c.violate("invented", "it is there, and was refused")
	case c.state == acknowledged && !there:
		c.violate("lost", "it was acknowledged, and is lost")
	}
	if there {
		c.checkTree(tree, r.marks)
		r.report.checked("trees", 1)
	}
}

// checkSome reads some of a conversation's branches, and the text of its last
// summary: it holds nothing of a message that isn't above its anchor. A message
// that was pruned isn't above any.
func (r *run) checkSome(ctx context.Context, c *conversation) {
	standing := c.standing(false)
	if !c.stands() || len(standing) == 0 {
		return
	}
	rng := r.rng("check", len(standing))
	for range 4 {
		(&writer{r, rng}).read(ctx, c, standing)
	}
	if c.summary == uuid.Nil {
		return
	}
	var got shown
	a := r.get(ctx, c.to("", "/summaries/"+c.summary.String(), nil), &got)
	if a.outcome() != acknowledged {
		return // there is none, or another one replaced it
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	branch := c.branch(got.ParentID)
	if foreign := notIn(marksIn(got.text), marksOf(branch)); len(foreign) > 0 || len(branch) == 0 || c.prunedBefore(branch[len(branch)-1], a.sentAt) {
		c.violate("came back", "summary %s at %s shows %v, which don't stand above its anchor, or were pruned", c.summary, got.ParentID, foreign)
	}
	r.report.checked("texts of summaries", 1)
}

// rowChecks are what no route shows. Each query finds what shouldn't be.
var rowChecks = map[string]string{
	"a node whose depth or tokens don't follow from its parent's": `
		select n.id from nodes n join nodes p on p.conversation_id = n.conversation_id and p.id = n.parent_id
		where n.kind = 'message' and (n.depth <> p.depth + 1 or n.path_tokens <> p.path_tokens + n.tokens)`,
	"a count of messages that isn't theirs": `
		select c.id from conversations c
		where c.message_count <> (select count(*) from nodes n where n.conversation_id = c.id and n.kind = 'message')`,
	"a summary of no compaction on record": `
		select n.id from nodes n join conversations c on c.id = n.conversation_id
		where n.kind = 'summary' and c.source_conversation_id is null
		  and (select count(*) from compactions k where k.conversation_id = n.conversation_id and k.summary_id = n.id and k.outcome = 'saved') <> 1`,
}

func (r *run) checkRows(ctx context.Context) {
	for what, query := range rowChecks {
		var found []string
		err := r.admin.QueryRow(ctx, "select array_agg(id::text) from ("+query+" limit 5) as found (id)").Scan(&found)
		if ctx.Err() == nil && (err != nil || len(found) > 0) {
			r.report.violate("rows", "%s: %v %v", what, found, err)
		}
	}
}

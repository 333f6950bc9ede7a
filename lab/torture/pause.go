package torture

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
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
	for _, c := range slices.Clone(r.all) {
		c.mu.Lock()
		open := c.state == unknown || c.source != nil || c.deleted != refused
		c.mu.Unlock()
		if last || open || slices.Contains(r.shared, c) {
			r.checkConversation(ctx, c)
			r.checkSome(ctx, c)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	r.checkRows(ctx)
	r.checkChats(ctx)
	for _, p := range r.pages {
		p.check(ctx)
	}
	for _, t := range r.tenants {
		r.checkEvents(ctx, t)
		if last {
			r.checkList(ctx, t)
		}
	}
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
	const open = `select (select count(*) from pg_stat_activity where application_name = 'coppice' and xact_start < $1) + (select count(*) from reply_checkpoints)`
	for _, s := range r.servers {
		if err := r.awaitReady(ctx, s); err != nil {
			return err
		}
	}
	for begin := time.Now(); ; sleep(ctx, 50*time.Millisecond) {
		busy := ""
		for _, s := range r.servers {
			requests, replies, err := r.underWay(ctx, s)
			if err != nil || requests > 1 || replies > 0 { // this request is one
				busy = fmt.Sprintf("server %s: %v requests, %v replies, %v", s.name, requests, replies, err)
			}
		}
		var n int
		if err := r.admin.QueryRow(ctx, open, begin).Scan(&n); busy == "" && (err != nil || n > 0) {
			busy = fmt.Sprintf("%d transactions and answers of replies, %v", n, err)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case busy == "":
			return nil
		case time.Since(begin) > quietBound:
			return fmt.Errorf("the servers don't come to rest within %s: %s", quietBound, busy)
		}
	}
}

// underWay reads from a server's metrics how many requests and replies it has.
func (r *run) underWay(ctx context.Context, s *server) (requests, replies float64, err error) {
	a := r.do(ctx, request{server: slices.Index(r.servers, s), method: http.MethodGet, path: "/metrics"})
	if a.outcome() != acknowledged {
		return 0, 0, fmt.Errorf("its metrics: %d %w", a.status, a.err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(a.body)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		v, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "coppice_http_requests_in_flight":
			requests = v
		case "coppice_replies_running":
			replies = v
		}
	}
	return requests, replies, nil
}

func (r *run) readTree(ctx context.Context, t *tenant, path string) (tree treeAnswer, a answer) {
	for range 5 { // compactions may hold it up
		if a = r.get(ctx, t, path+"/tree?preview=20", &tree); a.outcome() != unknown {
			break
		}
		sleep(ctx, 100*time.Millisecond)
	}
	return tree, a
}

// checkConversation compares a conversation with the ledger, while nothing but
// compactions is under way in it.
func (r *run) checkConversation(ctx context.Context, c *conversation) {
	tree, a := r.readTree(ctx, c.tenant, c.path())
	c.mu.Lock()
	defer c.mu.Unlock()
	there := a.outcome() == acknowledged
	if !there && a.code != "conversation_not_found" {
		if ctx.Err() == nil && r.undisturbed(0) {
			r.report.violate("lost", "conversation %s can't be read: %d %s %v", c.id, a.status, a.code, a.err)
		}
		return
	}
	if c.deleted == unknown {
		if c.deleted = refused; !there {
			c.deleted = acknowledged
		}
	}
	switch {
	case c.deleted == acknowledged && there:
		r.report.violate("came back", "conversation %s is there, and was deleted", c.id)
		return
	case c.deleted == acknowledged:
		r.report.checked("deleted conversations", 1)
		return
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
	if !there {
		c.source = nil
		return
	}
	if c.source != nil {
		c.fill(tree)
	}
	r.report.findings(checkTree(c, tree, r.marks))
	r.report.checked("trees", 1)
	r.report.checked("messages in trees", len(tree.Data))
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
		newWriter(r, rng).read(ctx, c, standing)
	}
	var got struct {
		ParentID uuid.UUID `json:"parent_id"`
		Content  string    `json:"content"`
	}
	if c.summary == uuid.Nil {
		return
	}
	a := r.get(ctx, c.tenant, c.path()+"/summaries/"+c.summary.String(), &got)
	if a.outcome() != acknowledged {
		return // there is none, or another one replaced it
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	branch := c.branch(got.ParentID)
	if strangers := notIn(marksIn(got.Content), marksOf(branch)); len(strangers) > 0 || len(branch) == 0 || c.prunedBefore(branch[len(branch)-1], a.sentAt) {
		r.report.violate("came back", "conversation %s: summary %s at %s shows %v, which don't stand above its anchor, or were pruned", c.id, c.summary, got.ParentID, strangers)
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
	"a summary by the digest in the place of messages that fitted": `
		select k.summary_id from compactions k
		where k.outcome = 'saved' and k.model = 'offline-digest' and k.settings ->> 'digest' = 'when_needed'
		  and k.tokens_before <= (k.settings ->> 'max_context_tokens')::bigint - (k.settings ->> 'reserved_tokens')::bigint`,
	"a compaction that was interrupted long ago, and that no server took up": `
		select id from river_job where kind = 'compaction' and state = 'running' and attempted_at < now() - interval '6 minutes'`,
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

package torture

import (
	"context"

	"github.com/google/uuid"
)

// rowChecks are what no route shows. Each query finds what shouldn't be. forks
// has the ids of the conversations that are forks.
var rowChecks = map[string]string{
	"a node whose depth, tokens or prefix don't follow from its parent's": `
		select n.conversation_id, n.id from nodes n join nodes p on p.conversation_id = n.conversation_id and p.id = n.parent_id
		where n.kind = 'message' and (n.depth <> p.depth + 1 or n.path_tokens <> p.path_tokens + n.tokens
		   or n.prefix_id is distinct from p.prefix_id and (n.prefix_id is distinct from n.id or p.prefix_id is distinct from p.id))`,
	"a count of messages that isn't theirs": `
		select c.id, null from conversations c
		where c.message_count <> (select count(*) from nodes n where n.conversation_id = c.id and n.kind = 'message')`,
	"siblings whose indexes have gaps": `
		select n.conversation_id, n.parent_id from nodes n where n.kind = 'message'
		group by n.conversation_id, n.parent_id having min(n.sibling_index) <> 1 or max(n.sibling_index) <> count(*)`,
	// The head moves with the answer to a first question that came by the Responses API.
	// Until then a checkpoint tells of the reply.
	"an active head that is no message": `
		select c.id, c.head_id from conversations c
		where case when c.head_id is null then exists (select from nodes n where n.conversation_id = c.id)
		                                   and not exists (select from reply_checkpoints r where r.conversation_id = c.id)
		      else not exists (select from nodes n where n.conversation_id = c.id and n.id = c.head_id and n.kind = 'message') end`,
	"a summary of no compaction on record": `
		select n.conversation_id, n.id from nodes n join conversations c on c.id = n.conversation_id
		where n.kind = 'summary' and n.conversation_id not in (table forks)
		  and (select count(*) from compactions k where k.conversation_id = n.conversation_id and k.summary_id = n.id and k.outcome = 'saved') <> 1`,
	"a digest in the place of messages that fitted": `
		select k.conversation_id, k.summary_id from compactions k
		where k.outcome = 'saved' and k.model = 'offline-digest' and k.settings ->> 'digest' = 'when_needed'
		  and k.tokens_before <= (k.settings ->> 'max_context_tokens')::bigint - (k.settings ->> 'reserved_tokens')::bigint`,
	"a summary by the digest in the place of another one": `
		select k.conversation_id, k.summary_id from compactions k
		where k.outcome = 'saved' and k.model = 'offline-digest' and k.remade_id is not null`,
}

// countHealed counts the summaries that were made again.
func (r *run) countHealed(ctx context.Context) {
	var n int
	err := r.admin.QueryRow(ctx, `select count(*) from compactions where trigger = 'healing' and outcome = 'saved'`).Scan(&n)
	if err != nil && ctx.Err() == nil {
		r.report.violate("rows", "the summaries that were made again: %v", err)
	}
	r.report.count(func(p *Report) { p.Checks.Healed = n })
}

// checkRows runs the row checks.
func (r *run) checkRows(ctx context.Context) {
	r.mu.Lock()
	var forks []uuid.UUID
	for _, c := range r.all {
		if c.id != c.origin {
			forks = append(forks, c.id)
		}
	}
	r.mu.Unlock()
	for what, query := range rowChecks {
		var conversation, id *uuid.UUID
		rows, err := r.admin.Query(ctx, "with forks as (select unnest($1::uuid[]) as id) "+query+" limit 1", forks)
		if err == nil {
			if rows.Next() {
				err = rows.Scan(&conversation, &id)
				r.report.violate("rows", "%s: conversation %v, node %v", what, conversation, id)
			}
			rows.Close()
		}
		if err != nil && ctx.Err() == nil {
			r.report.violate("rows", "%s: %v", what, err)
		}
	}
}

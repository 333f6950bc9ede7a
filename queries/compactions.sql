-- name: InsertCompaction :exec
insert into compactions (conversation_id, id, head_id, anchor_id, cutoff_id, summary_id, prior_summary_id, trigger, outcome, reason, model,
                         instructions, settings, attempts, messages_before, messages_after, tokens_before, tokens_after, folded_messages,
                         folded_tokens, prompt_tokens, completion_tokens, duration_ms, created_at, remade_id)
values (@conversation_id, @id, @head_id, @anchor_id, @cutoff_id, @summary_id, @prior_summary_id, @trigger, @outcome, @reason, @model,
        @instructions, @settings, @attempts, @messages_before, @messages_after, @tokens_before, @tokens_after, @folded_messages,
        @folded_tokens, @prompt_tokens, @completion_tokens, @duration_ms, @created_at, @remade_id);

-- name: ListCompactions :many
-- Newest first. A page ends as ListConversations' does.
select sqlc.embed(compactions), page.more::boolean as more
from (
    select listed.id, listed.created_at, row_number() over earlier as position,
           coalesce(sum(listed.bytes) over (earlier rows between unbounded preceding and 1 preceding), 0) as bytes_before,
           lead(listed.id) over earlier is not null as more
    from (
        select k.id, k.created_at, octet_length(k.settings::text) + octet_length(k.attempts::text) + octet_length(k.reason) + octet_length(k.instructions) as bytes
        from compactions k
        join conversations c on c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
        where k.conversation_id = @conversation_id
          and (k.created_at, k.id) < (@before_created_at::timestamptz, @before_id::uuid)
        order by k.created_at desc, k.id desc
        limit 1 + @row_limit::integer) listed
    window earlier as (order by listed.created_at desc, listed.id desc)) page
join lateral (select k.* from compactions k where k.conversation_id = @conversation_id and k.id = page.id offset 0) compactions on true
where page.position <= @row_limit::integer and page.bytes_before < @byte_limit::integer
order by page.position;

-- name: ListFruitlessCompactions :many
-- Those that left their branch as it was though the settings asked for them, by
-- the settings that are asked for, newest first.
select k.cutoff_id, k.remade_id, k.outcome, k.messages_before, k.tokens_before, k.created_at
from compactions k
join conversations c on c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
where k.conversation_id = @conversation_id and k.trigger <> 'request'
  and k.outcome in ('no_gain', 'superseded', 'stale', 'failed') and k.cutoff_id is not null
  and k.settings::text = @settings::text
order by k.created_at desc, k.id desc
limit @row_limit;

-- name: ListWriters :many
-- What wrote the summaries of a conversation, and its calls of models, also of
-- summaries that were undone since, of which there is no node any more.
select k.summary_id, k.prior_summary_id, k.model, k.attempts
from compactions k
join conversations c on c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
where k.conversation_id = @conversation_id and k.summary_id is not null;

-- name: ListReplyUsage :many
-- What replies of a conversation cost in tokens, by model, as their messages'
-- metadata say. A client may write there, so what is no count counts nothing. It
-- reads the conversation's messages.
with said as (
    select left(n.metadata -> 'reply' ->> 'model', 200) as model, n.metadata -> 'reply' -> 'usage' as usage
    from conversations c
    join nodes n on n.conversation_id = @conversation_id and n.kind = 'message' and n.role = 'assistant'
    where c.id = @conversation_id and c.tenant_id = @tenant_id
      and json_typeof(n.metadata -> 'reply' -> 'model') = 'string'
)
select said.model::text as model, count(*) as calls,
       coalesce(sum(case when said.usage ->> 'prompt_tokens' ~ '^[0-9]{1,9}$' then (said.usage ->> 'prompt_tokens')::bigint end), 0)::bigint as prompt_tokens,
       coalesce(sum(case when said.usage ->> 'completion_tokens' ~ '^[0-9]{1,9}$' then (said.usage ->> 'completion_tokens')::bigint end), 0)::bigint as completion_tokens,
       coalesce(sum(case when said.usage ->> 'reasoning_tokens' ~ '^[0-9]{1,9}$' then (said.usage ->> 'reasoning_tokens')::bigint end), 0)::bigint as reasoning_tokens
from said
group by said.model
order by said.model;

-- name: ListCompactionUsage :many
-- The same of the compactions: every call of a model, whatever came of it.
select (attempt ->> 'model')::text as model, count(*) as calls,
       coalesce(sum((attempt ->> 'prompt_tokens')::bigint), 0)::bigint as prompt_tokens,
       coalesce(sum((attempt ->> 'completion_tokens')::bigint), 0)::bigint as completion_tokens,
       coalesce(sum((attempt ->> 'reasoning_tokens')::bigint), 0)::bigint as reasoning_tokens
from compactions k
join conversations c on c.id = @conversation_id and c.tenant_id = @tenant_id
cross join lateral json_array_elements(k.attempts) attempt
where k.conversation_id = @conversation_id
group by attempt ->> 'model'
order by attempt ->> 'model';

-- name: ListTitleUsage :many
-- The same of the calls that looked for a title, which stand in the metadata of the
-- answer after which they were made. A client may write there, too.
select left(call ->> 'model', 200)::text as model, count(*) as calls,
       coalesce(sum(case when call ->> 'prompt_tokens' ~ '^[0-9]{1,9}$' then (call ->> 'prompt_tokens')::bigint end), 0)::bigint as prompt_tokens,
       coalesce(sum(case when call ->> 'completion_tokens' ~ '^[0-9]{1,9}$' then (call ->> 'completion_tokens')::bigint end), 0)::bigint as completion_tokens,
       coalesce(sum(case when call ->> 'reasoning_tokens' ~ '^[0-9]{1,9}$' then (call ->> 'reasoning_tokens')::bigint end), 0)::bigint as reasoning_tokens
from conversations c
join nodes n on n.conversation_id = @conversation_id and n.kind = 'message' and n.role = 'assistant'
cross join lateral json_array_elements(case when json_typeof(n.metadata -> 'title_calls') = 'array' then n.metadata -> 'title_calls' else '[]'::json end) call
where c.id = @conversation_id and c.tenant_id = @tenant_id
  and json_typeof(call -> 'model') = 'string'
group by left(call ->> 'model', 200)
order by left(call ->> 'model', 200);

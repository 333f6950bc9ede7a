-- name: ListUsage :many
-- What a conversation took in tokens, by model: its replies, as the metadata of their
-- messages say; its compactions, every call of a model, whatever came of it; and the
-- calls that looked for a title, which stand in the metadata of the answer after which
-- they were made. A client may write in metadata, so what is no count counts nothing.
-- It reads the conversation's messages.
with said as (
    select n.metadata
    from conversations c
    join nodes n on n.conversation_id = @conversation_id and n.kind = 'message' and n.role = 'assistant'
    where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*')) and n.metadata is not null
), call as (
    select 'reply' as what, left(said.metadata -> 'reply' ->> 'model', 200) as model, said.metadata -> 'reply' -> 'usage' as usage
    from said
    where json_typeof(said.metadata -> 'reply' -> 'model') = 'string'
    union all
    select 'compaction', attempt ->> 'model', attempt
    from compactions k
    join conversations c on c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
    cross join lateral json_array_elements(k.attempts) attempt
    where k.conversation_id = @conversation_id
    union all
    select 'title', left(named ->> 'model', 200), named
    from said
    cross join lateral json_array_elements(case when json_typeof(said.metadata -> 'title_calls') = 'array' then said.metadata -> 'title_calls' else '[]'::json end) named
    where json_typeof(named -> 'model') = 'string'
)
select call.what::text as what, call.model::text as model, count(*) as calls,
       coalesce(sum(case when call.usage ->> 'prompt_tokens' ~ '^[0-9]{1,9}$' then (call.usage ->> 'prompt_tokens')::bigint end), 0)::bigint as prompt_tokens,
       coalesce(sum(case when call.usage ->> 'completion_tokens' ~ '^[0-9]{1,9}$' then (call.usage ->> 'completion_tokens')::bigint end), 0)::bigint as completion_tokens,
       coalesce(sum(case when call.usage ->> 'reasoning_tokens' ~ '^[0-9]{1,9}$' then (call.usage ->> 'reasoning_tokens')::bigint end), 0)::bigint as reasoning_tokens
from call
group by call.what, call.model
order by call.what, call.model;

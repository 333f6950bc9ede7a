-- name: GetAnchor :one
-- What a summary inherits from its anchor. No row where the anchor is no message
-- of the conversation, or the cutoff is not the anchor or an ancestor of it. The
-- walk ends at the cutoff.
with recursive path as (
    select n.id, n.parent_id, n.depth, n.path_tokens, n.prefix_id
    from nodes n
    where n.conversation_id = @conversation_id and n.id = @anchor_id and n.kind = 'message'
    union all
    select p.id, p.parent_id, p.depth, p.path_tokens, p.prefix_id
    from path
    join lateral (select p.* from nodes p where p.conversation_id = @conversation_id and p.id = path.parent_id offset 0) p on true
    where path.id <> @cutoff_id::uuid
)
select anchor.id, anchor.depth, anchor.path_tokens, anchor.prefix_id
from path anchor
join path cutoff on cutoff.id = @cutoff_id::uuid
where anchor.id = @anchor_id::uuid;

-- name: GetView :many
-- What a context of @head_id, or of the active head where that is null, is made
-- of, in one walk from the head up: the
-- tail, the applicable summary (the first one met; of several at one anchor
-- the newest), the prefix, and the cutoff's own row, whose depth tells how much
-- is folded. The walk ends at the cutoff, at the prefix, or when the tail has
-- more than @budget tokens; it reads nothing above. Only where that is before
-- a summary is met does it go on to look for one, until @reach tokens, and
-- reads no message of those. The walk carries the messages' columns along, as
-- they would have to be looked up once more by their ids. Without bodies it
-- gives the ids of tool calls, and the folded messages that the summary keeps.
-- The model that answered last is taken from the first answer met. The summaries
-- @without pass for absent.
with recursive walk as (
    select n.id, n.parent_id, n.prefix_id, n.role, n.depth, n.tokens, n.path_tokens, n.pinned, n.created_at, n.body, n.origin,
           n.tokens::bigint as tail_tokens, true as in_budget, s.id as summary_id, s.last_summarized_id as cutoff_id,
           case n.role when 'assistant' then left(n.metadata #>> '{reply,model}', 200) end as answered_by
    from conversations c
    join nodes n on n.conversation_id = @conversation_id and n.id = coalesce(sqlc.narg(head_id)::uuid, c.head_id) and n.kind = 'message'
    left join lateral (
        select a.id, a.last_summarized_id from nodes a
        where a.conversation_id = @conversation_id and a.parent_id = n.id and a.sibling_index is null and a.id <> all(@without::uuid[])
        order by a.created_at desc, a.id desc limit 1) s on true
    where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
    union all
    select p.id, p.parent_id, p.prefix_id, p.role, p.depth, p.tokens, p.path_tokens, p.pinned, p.created_at,
           case when walk.in_budget and (walk.tail_tokens <= @budget::bigint or walk.role = 'tool') then p.body end, p.origin,
           walk.tail_tokens + p.tokens,
           walk.in_budget and (walk.tail_tokens <= @budget::bigint or walk.role = 'tool'), -- a result brings its call along
           coalesce(walk.summary_id, s.id), coalesce(walk.cutoff_id, s.last_summarized_id),
           coalesce(walk.answered_by, case p.role when 'assistant' then left(p.metadata #>> '{reply,model}', 200) end)
    from walk
    join lateral (select p.* from nodes p where p.conversation_id = @conversation_id and p.id = walk.parent_id offset 0) p on true
    left join lateral (
        select a.id, a.last_summarized_id from nodes a
        where walk.summary_id is null
          and a.conversation_id = @conversation_id and a.parent_id = p.id and a.sibling_index is null and a.id <> all(@without::uuid[])
        order by a.created_at desc, a.id desc limit 1) s on true
    where walk.id is distinct from walk.cutoff_id
      and walk.id is distinct from walk.prefix_id
      and (walk.in_budget and (walk.tail_tokens <= @budget or walk.role = 'tool')
           or walk.summary_id is null and walk.tail_tokens <= @reach::bigint)
), found as (
    select w.summary_id, w.cutoff_id from walk w where w.summary_id is not null limit 1
), prefix as (
    select n.id, n.parent_id
    from nodes n
    where n.conversation_id = @conversation_id and n.id = (select w.prefix_id from walk w limit 1)
    union all
    select p.id, p.parent_id
    from prefix
    join lateral (select p.* from nodes p where p.conversation_id = @conversation_id and p.id = prefix.parent_id offset 0) p on true
), parts as (
    select 1 as part, prefix.id from prefix
    union all
    select 2, found.summary_id from found
    union all
    select 3, unnest(s.kept_ids)
    from found
    join lateral (select s.kept_ids from nodes s where s.conversation_id = @conversation_id and s.id = found.summary_id offset 0) s on not @with_bodies::boolean
    union all
    select 4, found.cutoff_id from found
), n as (
    select parts.part, n.id, n.parent_id, n.role, n.depth, n.tokens, n.path_tokens, n.pinned, n.created_at, n.body,
           n.last_summarized_id, n.prior_summary_id, n.kept_ids, n.model, n.origin, n.metadata
    from parts
    join lateral (select n.* from nodes n where n.conversation_id = @conversation_id and n.id = parts.id offset 0) n on true
    union all
    select 5, w.id, w.parent_id, w.role, w.depth, w.tokens, w.path_tokens, w.pinned, w.created_at, w.body, null, null, null, null, w.origin, null
    from walk w
    where w.in_budget and w.id is distinct from w.prefix_id and w.id is distinct from w.cutoff_id
)
select n.part::integer as part,
       n.id, n.parent_id, n.role, n.depth, n.tokens, n.path_tokens, n.pinned, n.created_at,
       (case when @with_bodies::boolean or n.part = 2 then n.body end)::json as body,
       (case when not @with_bodies::boolean and n.part = 5 then case n.role
            when 'assistant' then array(select call ->> 'id' from json_array_elements(
                case when json_typeof(n.body -> 'tool_calls') = 'array' then n.body -> 'tool_calls' else '[]' end) call)
            when 'tool' then array[n.body ->> 'tool_call_id'] end
        end)::text[] as call_ids,
       n.last_summarized_id, n.prior_summary_id, n.kept_ids, n.model, n.origin, n.metadata,
       (select c.settings from conversations c where c.id = @conversation_id)::json as settings,
       coalesce((select w.answered_by from walk w where w.answered_by is not null limit 1), '')::text as answered_by
from n
order by n.part, n.depth;

-- name: GetApplicableSummary :one
-- The summary that applies at a message. The walk ends at its anchor.
with recursive walk as (
    select n.id, n.parent_id, s.id as summary_id
    from nodes n
    left join lateral (
        select a.id from nodes a
        where a.conversation_id = @conversation_id and a.parent_id = n.id and a.sibling_index is null
        order by a.created_at desc, a.id desc limit 1) s on true
    where n.conversation_id = @conversation_id and n.id = @id and n.kind = 'message'
    union all
    select p.id, p.parent_id, s.id
    from walk
    join lateral (select p.* from nodes p where p.conversation_id = @conversation_id and p.id = walk.parent_id offset 0) p on true
    left join lateral (
        select a.id from nodes a
        where a.conversation_id = @conversation_id and a.parent_id = p.id and a.sibling_index is null
        order by a.created_at desc, a.id desc limit 1) s on true
    where walk.summary_id is null
)
select walk.summary_id from walk where walk.summary_id is not null;

-- name: ListSummaries :many
-- A conversation's summaries without their bodies, newest first. They are found
-- by nodes_cutoffs, so that no message is read.
select n.id, n.parent_id, n.depth, n.tokens, n.created_at, n.last_summarized_id, n.prior_summary_id, n.kept_ids, n.model, n.origin
from conversations c
join nodes n on n.conversation_id = @conversation_id and n.last_summarized_id is not null
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
order by n.created_at desc, n.id desc;

-- name: ListBranchSummaries :many
-- The summaries anchored on root to @head_id. Walks the whole path.
with recursive path as (
    select n.id, n.parent_id
    from conversations c
    join nodes n on n.conversation_id = @conversation_id and n.id = @head_id and n.kind = 'message'
    where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
    union all
    select p.id, p.parent_id
    from path
    join lateral (select p.* from nodes p where p.conversation_id = @conversation_id and p.id = path.parent_id offset 0) p on true
)
select s.id
from path
join lateral (select s.id from nodes s where s.conversation_id = @conversation_id and s.parent_id = path.id and s.sibling_index is null offset 0) s on true;

-- name: CallsTools :one
-- Whether a message is answered by a call of a tool, on any branch.
select exists (
    select from nodes n
    join nodes answer on answer.conversation_id = @conversation_id and answer.parent_id = n.id and answer.sibling_index is not null
    where n.conversation_id = @conversation_id and n.id = @id and answer.role = 'assistant'
      and json_typeof(answer.body -> 'tool_calls') = 'array' and json_array_length(answer.body -> 'tool_calls') > 0);

-- name: ListDroppedPins :many
-- The pinned messages on the path from @cutoff_id up to the prefix that are not
-- among @kept_ids, oldest first. Walks that path.
with recursive path as (
    select n.id, n.parent_id, n.prefix_id, n.pinned, n.depth
    from conversations c
    join nodes n on n.conversation_id = @conversation_id and n.id = @cutoff_id and n.kind = 'message'
    where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
    union all
    select p.id, p.parent_id, p.prefix_id, p.pinned, p.depth
    from path
    join lateral (select p.* from nodes p where p.conversation_id = @conversation_id and p.id = path.parent_id offset 0) p on true
    where path.id is distinct from path.prefix_id
)
select path.id
from path
where path.pinned and path.id is distinct from path.prefix_id and path.id <> all(@kept_ids::uuid[])
order by path.depth;

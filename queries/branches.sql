-- name: GetTranscript :many
-- From @head_id, or the active head where that is null, towards the root,
-- @row_limit messages at most, and none beyond @byte_limit bytes but the first. The
-- cost is that of the page, wherever on the path it lies. A page's cursor is the parent of
-- its last message, which is where the next page's walk starts. The walk
-- carries the messages along, as GetView's does.
--
-- Here and in the other queries, "join lateral (select … from nodes … offset 0)"
-- looks a node up by an id that another row gives. "offset 0" keeps the subquery
-- apart, so that it stays a look-up in the primary key. Without it Postgres merges
-- the subquery into the join. Where most conversations are small it then takes
-- this one for small, too, and reads the whole conversation at each step of a walk
-- (TestReadsOnlyWhatItGives counts the rows).
with recursive path as (
    select n.id, n.parent_id, n.role, n.sibling_index, n.depth, n.tokens, n.path_tokens, n.pinned, n.created_at, n.body, n.metadata, n.reasoning, n.origin, 1 as position,
           octet_length(n.body::text) + coalesce(octet_length(n.metadata::text), 0) + coalesce(octet_length(n.reasoning), 0) as bytes
    from conversations c
    join nodes n on n.conversation_id = @conversation_id and n.id = coalesce(sqlc.narg(head_id)::uuid, c.head_id) and n.kind = 'message'
    where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
    union all
    select p.id, p.parent_id, p.role, p.sibling_index, p.depth, p.tokens, p.path_tokens, p.pinned, p.created_at, p.body, p.metadata, p.reasoning, p.origin, path.position + 1,
           path.bytes + octet_length(p.body::text) + coalesce(octet_length(p.metadata::text), 0) + coalesce(octet_length(p.reasoning), 0)
    from path
    join lateral (select p.* from nodes p where p.conversation_id = @conversation_id and p.id = path.parent_id offset 0) p on true
    where path.position < @row_limit::integer and path.bytes < @byte_limit::integer
)
select path.id, path.parent_id, path.role, path.sibling_index, path.depth, path.tokens, path.path_tokens, path.pinned, path.created_at, path.body, path.metadata, path.reasoning, path.origin,
       coalesce(case when path.parent_id is null
           then (select max(r.sibling_index) from nodes r where r.conversation_id = @conversation_id and r.parent_id is null)
           else (select max(s.sibling_index) from nodes s where s.conversation_id = @conversation_id and s.parent_id = path.parent_id)
       end, 0)::integer as sibling_count,
       (select to_json(a) from annotations a where a.conversation_id = @conversation_id and a.message_id = path.id) as annotation
from path
order by path.position;

-- name: StreamBranch :many
-- The last @row_limit messages of the branch that ends in @head_id, or all where
-- that is 0, oldest first. No @head_id stands for the active head. The walk
-- carries ids alone, because it goes from the head to the root and the messages
-- are given in the other direction.
with recursive path as (
    select n.id, n.parent_id, 1 as position
    from conversations c
    join nodes n on n.conversation_id = @conversation_id and n.id = coalesce(sqlc.narg(head_id)::uuid, c.head_id) and n.kind = 'message'
    where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
    union all
    select p.id, p.parent_id, path.position + 1
    from path
    join lateral (select p.* from nodes p where p.conversation_id = @conversation_id and p.id = path.parent_id offset 0) p on true
    where @row_limit::integer = 0 or path.position < @row_limit
)
select n.id, n.parent_id, n.role, n.sibling_index, n.depth, n.tokens, n.path_tokens, n.pinned, n.created_at, n.body, n.metadata, n.reasoning, n.origin,
       coalesce(case when n.parent_id is null
           then (select max(r.sibling_index) from nodes r where r.conversation_id = @conversation_id and r.parent_id is null)
           else (select max(s.sibling_index) from nodes s where s.conversation_id = @conversation_id and s.parent_id = n.parent_id)
       end, 0)::integer as sibling_count,
       (select to_json(a) from annotations a where a.conversation_id = @conversation_id and a.message_id = n.id) as annotation
from (select path.id, path.position from path order by path.position desc) path
join lateral (select n.* from nodes n where n.conversation_id = @conversation_id and n.id = path.id offset 0) n on true
order by path.position desc;

-- name: ListAncestors :many
-- The messages above one, nearest first, @row_limit at most, without their bodies.
with recursive path as (
    select n.id, n.parent_id, n.role, n.metadata, 0 as position
    from nodes n
    where n.conversation_id = @conversation_id and n.id = @id and n.kind = 'message'
    union all
    select p.id, p.parent_id, p.role, p.metadata, path.position + 1
    from path
    join lateral (select p.* from nodes p where p.conversation_id = @conversation_id and p.id = path.parent_id offset 0) p on true
    where path.position < @row_limit::integer
)
select path.id, path.parent_id, path.role, path.metadata,
       coalesce(case when path.parent_id is null
           then (select max(r.sibling_index) from nodes r where r.conversation_id = @conversation_id and r.parent_id is null)
           else (select max(s.sibling_index) from nodes s where s.conversation_id = @conversation_id and s.parent_id = path.parent_id)
       end, 0)::integer as sibling_count
from path
where path.position > 0
order by path.position;

-- name: GetBranchPage :many
-- The messages of the branch that ends in @head_id from a depth on, oldest first,
-- @row_limit at most. No @head_id stands for the active head. A page ends as
-- GetTranscript's does; more tells whether others of the branch come after a message.
-- The walk up carries ids alone and ends at the depth, so the cost grows with what
-- lies below the page, at the ids' price.
with recursive path as (
    select n.id, n.parent_id, n.depth
    from conversations c
    join nodes n on n.conversation_id = @conversation_id and n.id = coalesce(sqlc.narg(head_id)::uuid, c.head_id) and n.kind = 'message'
    where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
    union all
    select p.id, p.parent_id, p.depth
    from path
    join lateral (select p.* from nodes p where p.conversation_id = @conversation_id and p.id = path.parent_id offset 0) p on true
    where path.depth > @from_depth::integer
), listed as materialized (
    select array(
        select path.id from path
        where path.depth >= @from_depth::integer
        order by path.depth limit 1 + @row_limit::integer) as ids
), page as (
    select n.id, 1 as position, octet_length(n.body::text) + coalesce(octet_length(n.metadata::text), 0) + coalesce(octet_length(n.reasoning), 0) as bytes
    from listed
    join lateral (select n.* from nodes n where n.conversation_id = @conversation_id and n.id = listed.ids[1] offset 0) n on true
    union all
    select n.id, page.position + 1, page.bytes + octet_length(n.body::text) + coalesce(octet_length(n.metadata::text), 0) + coalesce(octet_length(n.reasoning), 0)
    from page
    cross join listed
    join lateral (select n.* from nodes n where n.conversation_id = @conversation_id and n.id = listed.ids[page.position + 1] offset 0) n on true
    where page.position < @row_limit::integer and page.bytes < @byte_limit::integer
)
select sqlc.embed(nodes), (page.position < cardinality(listed.ids))::boolean as more
from page
cross join listed
join lateral (select n.* from nodes n where n.conversation_id = @conversation_id and n.id = page.id offset 0) nodes on true
order by page.position;

-- name: ListBranches :many
-- Messages without child messages, newest first. Reads the conversation's part
-- of two indexes. A page ends as GetTranscript's does.
with recursive listed as materialized (
    select array(
        select n.id from nodes n
        where n.conversation_id = @conversation_id and n.kind = 'message'
          and (n.created_at, n.id) < (@before_created_at::timestamptz, @before_id::uuid)
          and not exists (
              select from nodes child
              where child.conversation_id = @conversation_id and child.parent_id = n.id and child.sibling_index is not null)
        order by n.created_at desc, n.id desc
        limit 1 + @row_limit::integer) as ids
), page as (
    select n.id, 1 as position, octet_length(n.body::text) + coalesce(octet_length(n.metadata::text), 0) + coalesce(octet_length(n.reasoning), 0) as bytes
    from listed
    join lateral (select n.* from nodes n where n.conversation_id = @conversation_id and n.id = listed.ids[1] offset 0) n on true
    union all
    select n.id, page.position + 1, page.bytes + octet_length(n.body::text) + coalesce(octet_length(n.metadata::text), 0) + coalesce(octet_length(n.reasoning), 0)
    from page
    cross join listed
    join lateral (select n.* from nodes n where n.conversation_id = @conversation_id and n.id = listed.ids[page.position + 1] offset 0) n on true
    where page.position < @row_limit::integer and page.bytes < @byte_limit::integer
)
select sqlc.embed(nodes), (page.position < cardinality(listed.ids))::boolean as more,
       coalesce(case when nodes.parent_id is null
           then (select max(r.sibling_index) from nodes r where r.conversation_id = @conversation_id and r.parent_id is null)
           else (select max(s.sibling_index) from nodes s where s.conversation_id = @conversation_id and s.parent_id = nodes.parent_id)
       end, 0)::integer as sibling_count,
       (select to_json(a) from annotations a where a.conversation_id = @conversation_id and a.message_id = page.id) as annotation
from page
cross join listed
join lateral (select n.* from nodes n where n.conversation_id = @conversation_id and n.id = page.id offset 0) nodes on true
order by page.position;

-- name: StreamTree :many
-- Every node without its body, a parent before its children. @preview is the
-- length of the text to bring along, in characters; 0 leaves bodies unread. A
-- message that has none names the tools that it calls, or what it refuses. Of one
-- that was brought from another branch it is the text between the tags.
select n.id, n.parent_id, n.kind, n.role, n.sibling_index, n.depth, n.tokens, n.pinned, n.created_at,
       n.last_summarized_id, n.prior_summary_id, n.kept_ids, n.model, n.origin,
       (case when @preview::integer > 0 then left(coalesce(
           nullif(case json_typeof(n.body -> 'content')
               when 'array' then (select string_agg(part ->> 'text', E'\n') from json_array_elements(n.body -> 'content') part)
               else case when n.kind = 'message' and n.origin is not null
                   then split_part(split_part(n.body ->> 'content', E'<coppice-graft>\n', 2), E'\n</coppice-graft>', 1) else n.body ->> 'content' end end, ''),
           'calls ' || (select string_agg(coalesce(call -> 'function' ->> 'name', call -> 'custom' ->> 'name', 'a tool'), ', ')
                        from json_array_elements(case json_typeof(n.body -> 'tool_calls') when 'array' then n.body -> 'tool_calls' else '[]' end) call),
           n.body ->> 'refusal', ''), @preview) else '' end)::text as preview,
       (select to_json(a) from annotations a where a.conversation_id = @conversation_id and a.message_id = n.id) as annotation
from nodes n
where n.conversation_id = @conversation_id
order by n.depth, n.created_at, n.id;

-- name: StreamNodes :many
-- The same, whole, in the order in which they can be inserted again: siblings
-- by their index, a summary after its prior.
select sqlc.embed(n),
       (select to_json(a) from annotations a where a.conversation_id = @conversation_id and a.message_id = n.id) as annotation
from nodes n
where n.conversation_id = @conversation_id
order by n.depth, n.sibling_index, n.created_at, n.id;

-- name: DeleteSubtree :one
-- A summary that saw a deleted message is anchored at it or below, hence in
-- the subtree. Foreign keys are checked when the statement ends. The replies to what
-- is deleted, and those whose answers are, go with it, and so do their logs.
with recursive doomed as (
    select n.id
    from nodes n
    where n.conversation_id = @conversation_id and n.id = @id
    union all
    select child.id
    from doomed
    join lateral (select child.* from nodes child where child.conversation_id = @conversation_id and child.parent_id = doomed.id offset 0) child on true
), deleted as (
    delete from nodes n
    where n.conversation_id = @conversation_id and n.id = any (array(select doomed.id from doomed))
    returning n.id, n.kind
), unsaid as (
    delete from replies r
    where r.conversation_id = @conversation_id
      and (r.message_id = any (array(select doomed.id from doomed)) or r.parent_id = any (array(select doomed.id from doomed)))
    returning r.state
)
select count(*) filter (where deleted.kind = 'message') as messages,
       coalesce(array_agg(deleted.id) filter (where deleted.kind = 'message'), '{}')::uuid[] as ids,
       count(*) filter (where deleted.kind = 'summary') as summaries,
       coalesce(bool_or(deleted.id = @head_id::uuid), false)::boolean as had_head,
       exists (select from unsaid where unsaid.state in ('running', 'stopping')) as had_reply
from deleted;

-- name: ShiftSiblings :exec
-- Closes the gap that a deleted child leaves, in two steps: indexes turn negative and
-- then positive, because uniqueness is checked row by row.
update nodes n
set sibling_index = -(n.sibling_index - @less::integer)
where n.conversation_id = @conversation_id and n.parent_id = @parent_id and n.sibling_index >= @first_index::integer and n.sibling_index <= @last_index::integer;

-- name: ShiftRoots :exec
update nodes n
set sibling_index = -(n.sibling_index - @less::integer)
where n.conversation_id = @conversation_id and n.parent_id is null and n.sibling_index >= @first_index::integer and n.sibling_index <= @last_index::integer;

-- name: ListPath :many
-- Root to @head_id, and the summaries anchored on the way, each after its
-- anchor and oldest first.
with recursive path as (
    select n.id, n.parent_id, n.depth
    from nodes n
    where n.conversation_id = @conversation_id and n.id = @head_id and n.kind = 'message'
    union all
    select p.id, p.parent_id, p.depth
    from path
    join lateral (select p.* from nodes p where p.conversation_id = @conversation_id and p.id = path.parent_id offset 0) p on true
), branch as (
    select path.id, path.depth, false as is_summary, null::timestamptz as created_at
    from path
    union all
    select s.id, path.depth, true, s.created_at
    from path
    join lateral (select s.id, s.created_at from nodes s where s.conversation_id = @conversation_id and s.parent_id = path.id and s.sibling_index is null offset 0) s on true
)
select branch.id, branch.is_summary
from branch
order by branch.depth, branch.is_summary, branch.created_at, branch.id;

-- name: ListBeside :many
-- All nodes but what stands below @id, its own summaries excepted: a parent before its
-- children, a summary after its anchor, the oldest first.
with recursive below as (
    select child.id
    from nodes child
    where child.conversation_id = @conversation_id and child.parent_id = @id and child.sibling_index is not null
    union all
    select child.id
    from below
    join lateral (select child.* from nodes child where child.conversation_id = @conversation_id and child.parent_id = below.id offset 0) child on true
)
select n.id, (n.kind = 'summary')::boolean as is_summary
from nodes n
where n.conversation_id = @conversation_id and not exists (select from below where below.id = n.id)
order by n.depth, is_summary, n.created_at, n.id;

-- name: ListNodes :many
-- Nodes of both kinds, in the order of @ids.
select sqlc.embed(nodes)
from unnest(@ids::uuid[]) with ordinality as wanted (id, position)
join lateral (select n.* from nodes n where n.conversation_id = @conversation_id and n.id = wanted.id offset 0) nodes on true
order by wanted.position;

-- name: ListNewestChildren :many
-- Of a message, or the roots where @parent_id is null. The newest first.
select sqlc.embed(n)
from conversations c
join lateral (
    (select n.* from nodes n
     where n.conversation_id = @conversation_id and n.parent_id = sqlc.narg(parent_id) and n.kind = 'message' and n.sibling_index is not null
     order by n.sibling_index desc limit @row_limit::integer)
    union all
    (select n.* from nodes n
     where sqlc.narg(parent_id)::uuid is null and n.conversation_id = @conversation_id and n.parent_id is null
     order by n.sibling_index desc limit @row_limit::integer)) n on true
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
order by n.sibling_index desc;

-- name: GetParting :one
-- The deepest message that the branches of two heads have in common. Both walks go up,
-- the deeper one first, until they meet: the cost is that of what stands below. No row
-- where the branches begin at different roots.
with recursive walk as (
    select l.id as left_id, l.parent_id as left_parent, l.depth as left_depth, r.id as right_id, r.parent_id as right_parent, r.depth as right_depth
    from conversations c
    join nodes l on l.conversation_id = @conversation_id and l.id = @left_id and l.kind = 'message'
    join nodes r on r.conversation_id = @conversation_id and r.id = @right_id and r.kind = 'message'
    where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
    union all
    select coalesce(l.id, walk.left_id), case when l.id is null then walk.left_parent else l.parent_id end, coalesce(l.depth, walk.left_depth),
           coalesce(r.id, walk.right_id), case when r.id is null then walk.right_parent else r.parent_id end, coalesce(r.depth, walk.right_depth)
    from walk
    left join lateral (
        select p.id, p.parent_id, p.depth from nodes p
        where p.conversation_id = @conversation_id and p.id = walk.left_parent and walk.left_depth >= walk.right_depth offset 0) l on true
    left join lateral (
        select p.id, p.parent_id, p.depth from nodes p
        where p.conversation_id = @conversation_id and p.id = walk.right_parent and walk.right_depth >= walk.left_depth offset 0) r on true
    where walk.left_id <> walk.right_id and (walk.left_depth > 0 or walk.right_depth > 0)
)
select sqlc.embed(nodes)
from walk
join lateral (select n.* from nodes n where n.conversation_id = @conversation_id and n.id = walk.left_id offset 0) nodes on true
where walk.left_id = walk.right_id;

-- name: ListBranchUsage :many
-- What the replies of a branch took, by model, above @head_id as far as @from_depth. As
-- ListUsage counts.
with recursive path as (
    select n.id, n.parent_id, n.depth, case when n.role = 'assistant' then n.metadata end as metadata
    from conversations c
    join nodes n on n.conversation_id = @conversation_id and n.id = @head_id and n.kind = 'message' and n.depth >= @from_depth::integer
    where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
    union all
    select p.id, p.parent_id, p.depth, case when p.role = 'assistant' then p.metadata end
    from path
    join lateral (select p.* from nodes p where p.conversation_id = @conversation_id and p.id = path.parent_id offset 0) p on true
    where path.depth > @from_depth
), call as (
    select left(path.metadata -> 'reply' ->> 'model', 200) as model, path.metadata -> 'reply' -> 'usage' as usage
    from path
    where json_typeof(path.metadata -> 'reply' -> 'model') = 'string'
)
select call.model::text as model, count(*) as calls,
       coalesce(sum(case when call.usage ->> 'prompt_tokens' ~ '^[0-9]{1,9}$' then (call.usage ->> 'prompt_tokens')::bigint end), 0)::bigint as prompt_tokens,
       coalesce(sum(case when call.usage ->> 'completion_tokens' ~ '^[0-9]{1,9}$' then (call.usage ->> 'completion_tokens')::bigint end), 0)::bigint as completion_tokens,
       coalesce(sum(case when call.usage ->> 'reasoning_tokens' ~ '^[0-9]{1,9}$' then (call.usage ->> 'reasoning_tokens')::bigint end), 0)::bigint as reasoning_tokens
from call
group by call.model
order by call.model;

-- name: ListBelow :many
-- The messages below one, a parent before its children, siblings by their index.
with recursive below as (
    select child.id, child.parent_id, child.depth, child.sibling_index, child.role
    from nodes child
    where child.conversation_id = @conversation_id and child.parent_id = @id and child.sibling_index is not null
    union all
    select child.id, child.parent_id, child.depth, child.sibling_index, child.role
    from below
    join lateral (select child.* from nodes child where child.conversation_id = @conversation_id and child.parent_id = below.id and child.sibling_index is not null offset 0) child on true
)
select below.id, below.parent_id, below.role
from below
order by below.depth, below.sibling_index, below.id;

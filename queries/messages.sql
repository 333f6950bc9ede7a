-- name: AppendMessage :one
-- Inserts one message from its parent's row and touches the conversation, in
-- one statement, which also notes the change. It runs right after LockConversation in one pipeline, hence
-- with a snapshot in which no other writer of the conversation is under way:
-- the sibling index it takes is free, and the head it compares is the active one.
-- @at_head stores it under that one, and @if_head only if it is @expected_head.
-- No row: the caller finds out why.
with place as (
    select p.id as parent_id,
           coalesce(p.depth + 1, 0) as depth,
           coalesce(p.path_tokens, 0) as path_tokens,
           p.prefix_id,
           p.path_hash,
           -- a system message extends the prefix while nothing else was said
           (p.id is null or p.prefix_id = p.id) as in_prefix
    from conversations c
    left join nodes p on p.conversation_id = @conversation_id and p.id = case when @at_head::boolean then c.head_id else sqlc.narg(parent_id)::uuid end and p.kind = 'message'
    where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
      and (@most_messages::integer = 0 or c.message_count < @most_messages)
      and (p.id is not null or case when @at_head then c.head_id else sqlc.narg(parent_id)::uuid end is null)
      and (not @if_head::boolean or c.head_id is not distinct from sqlc.narg(expected_head))
      and not exists (select from nodes d where d.conversation_id = @conversation_id and d.id = @id)
), inserted as (
    insert into nodes (conversation_id, id, parent_id, kind, role, sibling_index, depth, tokens, path_tokens, prefix_id,
                       pinned, created_at, body, metadata, path_hash, reasoning)
    select @conversation_id, @id, place.parent_id, 'message', @role::text,
           case when place.parent_id is null
               then (select coalesce(max(r.sibling_index), 0) + 1 from nodes r where r.conversation_id = @conversation_id and r.parent_id is null)
               else (select coalesce(max(s.sibling_index), 0) + 1 from nodes s where s.conversation_id = @conversation_id and s.parent_id = place.parent_id)
           end,
           place.depth, @tokens::integer, place.path_tokens + @tokens::integer,
           case when place.in_prefix and @role::text in ('system', 'developer') then @id else place.prefix_id end,
           @pinned, @created_at, @body, sqlc.narg(metadata),
           -- chat.PathHash.ChildOf; null below a message that has none
           case when @unhashed::boolean then null when place.parent_id is null then sqlc.narg(root_hash)::bytea else substring(sha256(place.path_hash || @form::bytea) for 16) end,
           sqlc.narg(reasoning)
    from place
    returning *
), touched as (
    update conversations c
    set head_id = case when @move_head::boolean and (not @compare_head::boolean or c.head_id is not distinct from sqlc.narg(expected_head)) then inserted.id else c.head_id end,
        updated_at = greatest(c.updated_at, @created_at),
        message_count = c.message_count + 1,
        change_count = c.change_count + 1
    from inserted
    where c.id = @conversation_id
    returning c.change_count, c.head_id
), noted as ( -- as NoteChange does. The program's time could be long ago: it was before the wait for a turn, a connection and the lock
    insert into changes (conversation_id, sequence, tenant_id, kind, message_id, parent_id, head_id, messages, at)
    select @conversation_id, touched.change_count, @tenant_id, 'messages.appended', @id, inserted.parent_id, touched.head_id, 1, clock_timestamp()
    from inserted, touched
)
select sqlc.embed(nodes) from inserted nodes;

-- name: GetNode :one
select sqlc.embed(n),
       coalesce(case when n.parent_id is null
           then (select max(r.sibling_index) from nodes r where r.conversation_id = @conversation_id and r.parent_id is null)
           else (select max(s.sibling_index) from nodes s where s.conversation_id = @conversation_id and s.parent_id = n.parent_id)
       end, 0)::integer as sibling_count,
       -- what readers say of it; null for nothing
       (select to_json(a) from annotations a where a.conversation_id = @conversation_id and a.message_id = @id) as annotation
from conversations c
join nodes n on n.conversation_id = @conversation_id and n.id = @id
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'));

-- name: GetAnswer :one
-- An answer to go on from, which no client deleted, in one look: each request that
-- continues a response asks for one.
select sqlc.embed(n)
from conversations c
join nodes n on n.conversation_id = @conversation_id and n.id = @id and n.kind = 'message' and n.role = 'assistant'
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
  and not exists (
      select from replies r where r.conversation_id = @conversation_id and r.message_id = @id and r.state = 'deleted');

-- name: ListChildren :many
-- Of a message, or the roots where @parent_id is null; in sibling order, after a
-- sibling index; these have no gaps. A page ends as GetTranscript's does. The
-- parent's own row tells an absent parent from a childless one.
with recursive page as (
    select null::uuid as id, @after_index::integer as sibling_index, 0 as position, 0 as bytes
    from conversations c
    where c.id = @conversation_id
    union all
    select n.id, n.sibling_index, page.position + 1, page.bytes + octet_length(n.body::text) + coalesce(octet_length(n.metadata::text), 0) + coalesce(octet_length(n.reasoning), 0)
    from page
    join lateral (
        select n.* from nodes n
        where n.conversation_id = @conversation_id and n.parent_id = sqlc.narg(parent_id) and n.sibling_index = page.sibling_index + 1
        union all
        select n.* from nodes n
        where sqlc.narg(parent_id)::uuid is null and n.conversation_id = @conversation_id and n.parent_id is null and n.sibling_index = page.sibling_index + 1
        offset 0) n on true
    where page.position < @row_limit::integer and page.bytes < @byte_limit::integer
)
select sqlc.embed(nodes),
       (select to_json(a) from annotations a where a.conversation_id = @conversation_id and a.message_id = page.id) as annotation
from page
join lateral (select n.* from nodes n where n.conversation_id = @conversation_id and n.id = page.id offset 0) nodes on true
order by page.position;

-- name: CountSiblings :one
-- Indexes have no gaps, so the highest is the count; one look into the index
-- however many there are.
select coalesce(case when sqlc.narg(parent_id)::uuid is null
           then (select max(r.sibling_index) from nodes r where r.conversation_id = @conversation_id and r.parent_id is null)
           else (select max(s.sibling_index) from nodes s where s.conversation_id = @conversation_id and s.parent_id = sqlc.narg(parent_id))
       end, 0)::integer as sibling_count;

-- name: GetCalls :many
-- The tool calls that a tool message under @parent_id may answer: those of the
-- nearest assistant message, which only other tool results may stand between.
-- Also those results, to tell which calls are answered already. The walk is as
-- long as the run of results.
with recursive run as (
    select n.id, n.parent_id, n.role, 1 as position
    from conversations c
    join nodes n on n.conversation_id = @conversation_id and n.id = @parent_id and n.kind = 'message'
    where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
    union all
    select p.id, p.parent_id, p.role, run.position + 1
    from run
    join lateral (select p.* from nodes p where p.conversation_id = @conversation_id and p.id = run.parent_id offset 0) p on true
    where run.role = 'tool'
)
select run.role, coalesce(n.body -> 'tool_calls', 'null')::json as tool_calls, (coalesce(n.body ->> 'tool_call_id', ''))::text as tool_call_id
from run
join lateral (select n.* from nodes n where n.conversation_id = @conversation_id and n.id = run.id offset 0) n on true
order by run.position;

-- name: FindCall :one
-- The newest message that makes a tool call. It reads the conversation's messages;
-- only of those whose text has the call's id the calls are taken apart.
select n.id
from conversations c
join nodes n on n.conversation_id = @conversation_id and n.kind = 'message' and n.role = 'assistant' and position(@call_id::text in n.body::text) > 0
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
  and exists (
      select from json_array_elements(case json_typeof(n.body -> 'tool_calls') when 'array' then n.body -> 'tool_calls' else '[]' end) made
      where made ->> 'id' = @call_id)
order by n.created_at desc, n.id desc
limit 1;

-- name: ListReasoning :many
-- Of those of these messages that have some.
select n.id, coalesce(n.reasoning, '')::text as reasoning
from conversations c
cross join unnest(@ids::uuid[]) as wanted (id)
join lateral (select n.* from nodes n where n.conversation_id = @conversation_id and n.id = wanted.id offset 0) n on true
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*')) and n.reasoning is not null;

-- name: ListParentStates :many
-- What inserting below existing nodes needs to know of them.
select id, parent_id, kind, role, depth, path_tokens, prefix_id, path_hash, sibling_index, created_at
from nodes
where conversation_id = @conversation_id;

-- name: CopyNodes :copyfrom
insert into nodes (conversation_id, id, parent_id, kind, role, sibling_index, depth, tokens, path_tokens, prefix_id, pinned, created_at,
                   body, metadata, last_summarized_id, prior_summary_id, kept_ids, model, origin, path_hash, reasoning)
values (@conversation_id, @id, @parent_id, @kind, @role, @sibling_index, @depth, @tokens, @path_tokens, @prefix_id, @pinned, @created_at,
        @body, @metadata, @last_summarized_id, @prior_summary_id, @kept_ids, @model, @origin, @path_hash, @reasoning);

-- name: InsertNode :exec
-- The same of one node.
insert into nodes (conversation_id, id, parent_id, kind, role, sibling_index, depth, tokens, path_tokens, prefix_id, pinned, created_at,
                   body, metadata, last_summarized_id, prior_summary_id, kept_ids, model, origin, path_hash, reasoning)
values (@conversation_id, @id, @parent_id, @kind, @role, @sibling_index, @depth, @tokens, @path_tokens, @prefix_id, @pinned, @created_at,
        @body, @metadata, @last_summarized_id, @prior_summary_id, @kept_ids, @model, @origin, @path_hash, @reasoning);

-- name: GetParentStates :many
-- Of messages, what their children inherit. It reads one table by its key, which
-- Citus sends to a shard without planning.
select id, kind, depth, path_tokens, prefix_id, path_hash
from nodes
where conversation_id = @conversation_id and id = any (@ids::uuid[]);

-- name: GetLastChild :one
-- The highest index among a message's children, 0 where it has none.
select coalesce(max(sibling_index), 0)::integer as sibling_count
from nodes
where conversation_id = @conversation_id and parent_id = @parent_id;

-- name: GetLastRoot :one
select coalesce(max(sibling_index), 0)::integer as sibling_count
from nodes
where conversation_id = @conversation_id and parent_id is null;

-- name: TouchConversation :exec
-- After LockConversation. Null leaves the head where it is.
update conversations c
set head_id = coalesce(sqlc.narg(head_id), c.head_id), updated_at = greatest(c.updated_at, @updated_at),
    message_count = c.message_count + @added_messages::integer, change_count = c.change_count + @added_changes::integer
where c.id = @id;

-- name: ListBodySums :many
-- To compare bodies without reading them.
select n.id, sha256(convert_to(n.body::text, 'UTF8')) as body_sum
from nodes n
where n.conversation_id = @conversation_id and n.id = any (@ids::uuid[]);

-- name: PinMessage :exec
-- The one change of a message's row: neither what it says nor where it stands.
update nodes n set pinned = @pinned where n.conversation_id = @conversation_id and n.id = @id and n.kind = 'message';

-- name: AnnotateMessage :exec
insert into annotations (conversation_id, message_id, rating, label, note)
values (@conversation_id, @message_id, @rating, @label, @note)
on conflict (conversation_id, message_id) do update set rating = excluded.rating, label = excluded.label, note = excluded.note;

-- name: DeleteAnnotation :exec
delete from annotations a where a.conversation_id = @conversation_id and a.message_id = @message_id;

-- name: CopyAnnotations :copyfrom
insert into annotations (conversation_id, message_id, rating, label, note) values (@conversation_id, @message_id, @rating, @label, @note);

-- name: ListMessages :many
-- Nodes of both kinds with their siblings, in the order of @ids.
select sqlc.embed(nodes),
       coalesce(case when nodes.parent_id is null
           then (select max(r.sibling_index) from nodes r where r.conversation_id = @conversation_id and r.parent_id is null)
           else (select max(s.sibling_index) from nodes s where s.conversation_id = @conversation_id and s.parent_id = nodes.parent_id)
       end, 0)::integer as sibling_count,
       (select to_json(a) from annotations a where a.conversation_id = @conversation_id and a.message_id = wanted.id) as annotation
from conversations c
cross join unnest(@ids::uuid[]) with ordinality as wanted (id, position)
join lateral (select n.* from nodes n where n.conversation_id = @conversation_id and n.id = wanted.id offset 0) nodes on true
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
order by wanted.position;

-- name: ListRecentHeads :many
-- The tenant's conversations, the one touched last first.
select c.id, c.head_id, c.message_count
from conversations c
where c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*')) and c.head_id is not null
order by c.updated_at desc, c.id desc
limit @row_limit;

-- name: ListRatings :many
-- Of the answers in conversations of one tenant, by the model that their replies name: how
-- many were kept, because something follows or they are an active head; the same of those
-- that stand beside others; and how readers rated them. It reads the messages of these
-- conversations and nothing else.
with answer as (
    select left(n.metadata -> 'reply' ->> 'model', 200) as model,
           n.id = any (@heads::uuid[]) or exists (
               select from nodes child
               where child.conversation_id = n.conversation_id and child.parent_id = n.id and child.sibling_index is not null) as kept,
           exists (
               select from nodes other
               where other.conversation_id = n.conversation_id and other.parent_id = n.parent_id and other.sibling_index = 2) as compared,
           (select a.rating from annotations a where a.conversation_id = n.conversation_id and a.message_id = n.id) as rating
    from nodes n
    where n.conversation_id = any (@ids::uuid[]) and n.kind = 'message' and n.role = 'assistant'
      and json_typeof(n.metadata -> 'reply' -> 'model') = 'string'
)
select answer.model::text as model, count(*) as answers, count(*) filter (where answer.kept) as kept,
       count(*) filter (where answer.compared) as compared, count(*) filter (where answer.compared and answer.kept) as compared_kept,
       count(*) filter (where answer.rating = 1) as rated_up, count(*) filter (where answer.rating = -1) as rated_down
from answer
group by answer.model
order by answer.model;

-- name: CarryAnnotations :exec
-- Those of messages @ids also stand at their copies in the same conversation.
insert into annotations (conversation_id, message_id, rating, label, note)
select @conversation_id, (@copies::uuid[])[wanted.position], a.rating, a.label, a.note
from unnest(@ids::uuid[]) with ordinality as wanted (id, position)
join lateral (select a.* from annotations a where a.conversation_id = @conversation_id and a.message_id = wanted.id offset 0) a on true;

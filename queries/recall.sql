-- Recall keeps the words of conversations in memory. It asks here what became
-- of a branch, and reads what it does not know yet.
--
-- version is the transaction that wrote the row. A message that was pruned and
-- stored again under its old id has another one. No message can be pruned
-- without those below it, so a head whose version is known vouches for its whole
-- path. A sibling's prune changes it too, which only costs a second reading.

-- name: GetRecallBranch :one
-- No @head_id stands for the active head.
select n.id as head_id, n.xmin::text::bigint as version, n.prefix_id, c.message_count, c.updated_at
from conversations c
join nodes n on n.conversation_id = @conversation_id and n.id = coalesce(sqlc.narg(head_id)::uuid, c.head_id) and n.kind = 'message'
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'));

-- name: WalkUp :many
-- From @id towards the root, @row_limit messages at most.
with recursive path as (
    select n.id, n.parent_id, n.xmin::text::bigint as version, n.role, n.depth, n.tokens, n.created_at, n.body, 1 as position
    from conversations c
    join nodes n on n.conversation_id = @conversation_id and n.id = @id and n.kind = 'message'
    where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
    union all
    select p.id, p.parent_id, p.version, p.role, p.depth, p.tokens, p.created_at, p.body, path.position + 1
    from path
    join lateral (select p.*, p.xmin::text::bigint as version from nodes p where p.conversation_id = @conversation_id and p.id = path.parent_id offset 0) p on true
    where path.position < @row_limit::integer
)
select path.id, path.parent_id, path.version, path.role, path.depth, path.tokens, path.created_at, path.body
from path
order by path.position;

-- name: ListVersions :many
-- Every message of a conversation, the newest first.
select n.id, n.xmin::text::bigint as version
from conversations c
join nodes n on n.conversation_id = @conversation_id and n.kind = 'message'
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
order by n.created_at desc, n.id desc;

-- name: ListTexts :many
-- In the order of @ids; what is absent is left out.
select n.id, n.parent_id, n.version, n.role, n.depth, n.tokens, n.created_at, n.body
from conversations c
cross join unnest(@ids::uuid[]) with ordinality as wanted (id, position)
join lateral (select n.*, n.xmin::text::bigint as version from nodes n where n.conversation_id = @conversation_id and n.id = wanted.id and n.kind = 'message' offset 0) n on true
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
order by wanted.position;

-- name: ListTenantsOwn :many
-- Of the conversations @ids, those that are the tenant's and have a message.
select c.id, c.message_count
from conversations c
where c.id = any (@ids::uuid[]) and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*')) and c.head_id is not null;

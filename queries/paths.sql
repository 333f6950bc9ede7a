-- name: FindPath :one
-- The deepest message that a chain of path hashes leads to, and how many of the
-- hashes lead there; 0 where there is none. It looks the deepest hash up first,
-- because nearly all of a client's history is known, and reads one message. Of
-- several with one hash it takes the newest. current is false where the hashes are
-- those of an older canonical form.
select coalesce(found.position, 0)::integer as position, found.id, coalesce(found.path_tokens, 0)::bigint as path_tokens,
       coalesce(c.path_form = 2, false)::boolean as current
from conversations c
left join lateral (
    select wanted.position, n.id, n.path_tokens
    from (select w.hash, w.position from unnest(@hashes::bytea[]) with ordinality as w (hash, position) order by w.position desc offset 0) wanted
    join lateral (
        select m.id, m.path_tokens from nodes m
        where m.conversation_id = @conversation_id and m.path_hash = wanted.hash
          and substring(m.path_hash for 7) = substring(wanted.hash for 7) -- as nodes_paths has it
        order by m.created_at desc, m.id desc limit 1) n on true
    order by wanted.position desc
    limit 1
) found on true
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'));

-- name: ListPathHashes :many
-- From @head_id towards the root, @row_limit messages at most, without bodies.
with recursive path as (
    select n.id, n.parent_id, n.role, n.path_hash, n.path_tokens, 1 as position
    from conversations c
    join nodes n on n.conversation_id = @conversation_id and n.id = @head_id and n.kind = 'message'
    where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
    union all
    select p.id, p.parent_id, p.role, p.path_hash, p.path_tokens, path.position + 1
    from path
    join lateral (select p.* from nodes p where p.conversation_id = @conversation_id and p.id = path.parent_id offset 0) p on true
    where path.position < @row_limit::integer
)
select path.id, path.parent_id, path.role, path.path_hash, path.path_tokens
from path
order by path.position;

-- name: SetPathHashes :exec
-- After LockConversation.
update nodes n
set path_hash = made.path_hash
from (select unnest(@ids::uuid[]) as id, unnest(@hashes::bytea[]) as path_hash) made
where n.conversation_id = @conversation_id and n.id = made.id;

-- name: SetPathForm :exec
-- After LockConversation: the path hashes are those of the present canonical form.
update conversations
set path_form = 2
where id = @conversation_id;

-- name: SetMetadata :exec
-- Of a message: the one thing about it that may change. After LockConversation.
update nodes
set metadata = @metadata
where conversation_id = @conversation_id and id = @id and kind = 'message';

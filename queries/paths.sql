-- name: FindPath :one
-- The deepest message that a chain of path hashes leads to, and how many of the
-- hashes lead there; 0 where there is none. It looks the deepest hash up first,
-- because nearly all of a client's history is known, and reads one message. Of
-- several with one hash it takes the oldest.
select coalesce(found.position, 0)::integer as position, found.id, coalesce(found.path_tokens, 0)::bigint as path_tokens
from conversations c
left join lateral (
    select wanted.position, n.id, n.path_tokens
    from (select w.hash, w.position from unnest(@hashes::bytea[]) with ordinality as w (hash, position) order by w.position desc offset 0) wanted
    join lateral (
        select m.id, m.path_tokens from nodes m
        where m.conversation_id = @conversation_id and m.path_hash = wanted.hash
          and substring(m.path_hash for 7) = substring(wanted.hash for 7) -- as nodes_paths has it
        order by m.created_at, m.id limit 1) n on true
    order by wanted.position desc
    limit 1
) found on true
where c.id = @conversation_id and c.tenant_id = @tenant_id;

-- name: SetMetadata :exec
-- Of a message: the one thing about it that may change. After LockConversation.
update nodes
set metadata = @metadata
where conversation_id = @conversation_id and id = @id and kind = 'message';

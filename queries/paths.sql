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

-- name: ListRecognizedAnswers :many
-- Answers of a tenant on paths with hashes that have metadata, from after one of
-- them: conversations by when they were made, and the answers of each by when they
-- were given. A conversation without such paths costs one look into an index. A page
-- ends as ListConversations' does.
select page.conversation_id, page.id, page.parent_id, page.role, page.depth, page.tokens, page.path_tokens, page.pinned, page.created_at,
       page.body, page.metadata, page.reasoning, page.more::boolean as more
from (
    -- The rows come in their order, so that the windows need none.
    select listed.*, row_number() over () as position,
           coalesce(sum(octet_length(listed.body::text) + octet_length(listed.metadata::text) + coalesce(octet_length(listed.reasoning), 0))
               over (rows between unbounded preceding and 1 preceding), 0) as bytes_before,
           lead(listed.id) over () is not null as more
    from (
        select n.conversation_id, n.id, n.parent_id, n.role, n.depth, n.tokens, n.path_tokens, n.pinned, n.created_at, n.body, n.metadata, n.reasoning
        from conversations c
        join lateral (
            select n.* from nodes n
            where n.conversation_id = c.id and n.path_hash is not null and n.role = 'assistant' and n.metadata is not null offset 0) n on true
        where c.tenant_id = @tenant_id
          and case when sqlc.narg(after_id)::uuid is null then true
                when @descending::boolean then (c.created_at, c.id, n.created_at, n.id) < (@after_conversation_at::timestamptz, @after_conversation_id::uuid, @after_at::timestamptz, sqlc.narg(after_id))
                else (c.created_at, c.id, n.created_at, n.id) > (@after_conversation_at, @after_conversation_id, @after_at, sqlc.narg(after_id)) end
        order by case when @descending then c.created_at end desc, case when @descending then c.id end desc,
                 case when @descending then n.created_at end desc, case when @descending then n.id end desc,
                 c.created_at, c.id, n.created_at, n.id
        limit 1 + @row_limit::integer) listed) page
where page.position <= @row_limit::integer and page.bytes_before < @byte_limit::integer
order by page.position;

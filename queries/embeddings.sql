-- Vectors of messages, for recall. No query of this file runs where no model for
-- them is configured. A conversation has at most one vector for each message, of
-- one model.

-- name: ListUnembedded :many
-- Messages that lack a row of the model, the newest ids first. It may read all
-- messages of the conversation.
select n.id, n.parent_id, n.xmin::text::bigint as version, n.role, n.depth, n.tokens, n.created_at, n.body
from conversations c
join nodes n on n.conversation_id = @conversation_id and n.kind = 'message'
left join lateral (select true as there from embeddings e where e.conversation_id = @conversation_id and e.message_id = n.id and e.model = @model offset 0) e on true
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*')) and e.there is null
order by n.id desc
limit @row_limit;

-- name: ListNewUnembedded :many
-- The same of those alone that were appended since a place in the feed, which has to
-- reach back to it. It reads no others.
with recursive said as (
    select ch.message_id as id, ch.messages
    from changes ch
    where ch.conversation_id = @conversation_id and ch.sequence > @place::bigint and ch.kind = 'messages.appended'
    union all
    select p.parent_id, said.messages - 1
    from said
    join lateral (select p.parent_id from nodes p where p.conversation_id = @conversation_id and p.id = said.id offset 0) p on true
    where said.messages > 1
)
select n.id, n.parent_id, n.version, n.role, n.depth, n.tokens, n.created_at, n.body
from said
join lateral (select n.id, n.parent_id, n.xmin::text::bigint as version, n.role, n.depth, n.tokens, n.created_at, n.body
    from nodes n where n.conversation_id = @conversation_id and n.id = said.id and n.kind = 'message' offset 0) n on true
left join lateral (select true as there from embeddings e where e.conversation_id = @conversation_id and e.message_id = n.id and e.model = @model offset 0) e on true
where e.there is null
  and exists (select from conversations c where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*')))
order by n.id desc
limit @row_limit;

-- name: SaveEmbeddings :execrows
-- It runs after LockConversation, so that stamps grow in the order of the
-- commits. A message that was pruned, or is another one under the same id, gets
-- none. Empty is no vector.
insert into embeddings (conversation_id, message_id, model, tenant_key, stamp, vector)
select @conversation_id, wanted.id, @model, @tenant_key,
       greatest(@now::bigint, 1 + coalesce((select max(e.stamp) from embeddings e where e.conversation_id = @conversation_id and e.model = @model), 0)),
       nullif((@vectors::bytea[])[wanted.position], '')
from unnest(@ids::uuid[]) with ordinality as wanted (id, position)
join lateral (select n.xmin::text::bigint as version from nodes n where n.conversation_id = @conversation_id and n.id = wanted.id and n.kind = 'message' offset 0) n on true
where n.version = (@versions::bigint[])[wanted.position]
on conflict (conversation_id, message_id) do update set model = excluded.model, stamp = excluded.stamp, vector = excluded.vector;

-- name: ListEmbeddings :many
-- A conversation's vectors after a stamp, the oldest first, each with the version
-- of the message that it is of.
select e.message_id, n.version, e.stamp, e.vector
from conversations c
join embeddings e on e.conversation_id = @conversation_id and e.model = @model and e.stamp > @after_stamp and e.vector is not null
join lateral (select n.xmin::text::bigint as version from nodes n where n.conversation_id = @conversation_id and n.id = e.message_id offset 0) n on true
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
order by e.stamp;

-- name: CopyEmbeddings :exec
-- For a fork: rows of messages @ids become those of their copies.
insert into embeddings (conversation_id, message_id, model, tenant_key, stamp, vector)
select @to_id, (@copies::uuid[])[wanted.position], e.model, e.tenant_key, @stamp, e.vector
from unnest(@ids::uuid[]) with ordinality as wanted (id, position)
join lateral (select e.* from embeddings e where e.conversation_id = @conversation_id and e.message_id = wanted.id offset 0) e on true;

-- name: ListTenantEmbeddings :many
-- A tenant's newest vectors. The key is a hash, so a conversation may be another
-- tenant's: ListTenantsOwn tells.
select e.conversation_id, e.message_id, e.vector
from embeddings e
where e.tenant_key = @tenant_key and e.model = @model and e.vector is not null
order by e.stamp desc
limit @row_limit;

-- name: GetEmbeddingSize :one
-- The dimensions of the next vector after a tenant's newest @beyond; no row where
-- the tenant has no more.
select octet_length(e.vector)::integer as dimensions
from embeddings e
where e.tenant_key = @tenant_key and e.model = @model and e.vector is not null
order by e.stamp desc
offset @beyond::bigint
limit 1;

-- What an operator asks of all tenants, or of one where tenant_id isn't null. Each
-- query is one aggregate over one table, which Citus computes on its shards.

-- name: SumConversations :many
select tenant_id, count(*) as conversations, sum(message_count)::bigint as messages, max(updated_at)::timestamptz as updated_at
from conversations
where tenant_id = coalesce(sqlc.narg(tenant_id), tenant_id)
group by tenant_id;

-- name: SumTenantAttachments :many
select tenant_id, count(*) as attachments, sum(size)::bigint as bytes
from attachments
where tenant_id = coalesce(sqlc.narg(tenant_id), tenant_id)
group by tenant_id;

-- name: CountTenantKeys :many
-- Those that open the tenant's conversations.
select tenant_id, count(*) filter (where revoked_at is null) as keys
from api_keys
where tenant_id = coalesce(sqlc.narg(tenant_id), tenant_id)
group by tenant_id;

-- name: SumBodies :one
-- Of one tenant: it reads all its messages.
select coalesce(sum(octet_length(n.body::text)), 0)::bigint as bytes, coalesce(sum(n.tokens), 0)::bigint as tokens
from conversations c
join nodes n on n.conversation_id = c.id
where c.tenant_id = @tenant_id and n.kind = 'message';

-- name: ListIdleConversations :many
-- Those of one sort in which nothing was said since a time, those of the oldest minute
-- first: a range of conversations_listed, from its end.
select id
from conversations
where tenant_id = @tenant_id and archived = @archived and pinned = @pinned and updated_minute <= @before and updated_at < @before
order by updated_minute
limit @row_limit;

-- name: RevokeTenantKeys :execrows
update api_keys set revoked_at = @revoked_at
where tenant_id = @tenant_id and revoked_at is null;

-- name: DeleteTenantKeys :execrows
delete from api_keys where tenant_id = @tenant_id;

-- name: DeleteTenantAttachments :exec
delete from attachments where tenant_id = @tenant_id;

-- name: DeleteTenantSegments :exec
delete from search_segments where tenant_id = @tenant_id;

-- name: DeleteTenantChanges :exec
delete from changes where tenant_id = @tenant_id;

-- name: InsertKey :one
-- With its audit event.
with made as (
    insert into api_keys (id, tenant_id, name, key_hash, created_at, role, user_id, read_only, conversation_id, expires_at)
    values (@id, @tenant_id, @name, @key_hash, @created_at, @role, @user_id, @read_only, sqlc.narg(conversation_id), sqlc.narg(expires_at))
    returning *
), noted as (
    insert into audit_events (id, tenant_id, at, action, conversation_id, subject_id, detail, key_id, user_id, address, request_id)
    select @event_id, made.tenant_id, made.created_at, 'key.created', made.conversation_id, made.id, made.role || ' ' || made.user_id, sqlc.narg(by_key_id), @by_user_id, @by_address, @by_request_id
    from made
)
select sqlc.embed(api_keys) from made api_keys;

-- name: ListKeyPage :many
-- Of one tenant, or of all for null, newest first. It reads all keys of the installation, as
-- their number is small.
select * from api_keys
where tenant_id = coalesce(sqlc.narg(tenant_id), tenant_id) and id < @before_id
order by id desc
limit @row_limit;

-- name: RevokeKey :one
-- Revoking twice keeps the first time, and is no second event. Null is a key of any
-- tenant.
with revoked as (
    update api_keys k
    set revoked_at = coalesce(k.revoked_at, @revoked_at)
    where k.id = @id and k.tenant_id = coalesce(sqlc.narg(tenant_id), k.tenant_id)
    returning k.*
), noted as (
    insert into audit_events (id, tenant_id, at, action, conversation_id, subject_id, detail, key_id, user_id, address, request_id)
    select @event_id, revoked.tenant_id, @revoked_at, 'key.revoked', revoked.conversation_id, revoked.id, '', sqlc.narg(by_key_id), @by_user_id, @by_address, @by_request_id
    from revoked where revoked.revoked_at = @revoked_at
)
select sqlc.embed(api_keys) from revoked api_keys;

-- name: GetKeyByHash :one
-- By either of the hashes that a secret can be stored by.
select * from api_keys where key_hash = any (@hashes::bytea[]);

-- name: HasKeys :one
-- Revoked ones count: a server whose last key was revoked must not turn open.
select exists (select 1 from api_keys) as has_keys;

-- name: HasOnlyKeys :one
-- Whether all keys are a tenant's, and so may not be deleted.
select coalesce(bool_and(tenant_id = @tenant_id), false)::boolean as only_keys from api_keys;

-- name: DeleteExpiredKeys :execrows
-- As long as another key keeps the server from turning open.
delete from api_keys k
where k.expires_at < @before and exists (select 1 from api_keys other where other.expires_at is null);

-- name: TouchKey :exec
-- Only where the time on record is older than @stale_at, so that a busy key
-- is not a hot row.
update api_keys
set last_used_at = @used_at
where id = @id and (last_used_at is null or last_used_at < @stale_at);

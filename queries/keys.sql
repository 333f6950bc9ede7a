-- name: InsertKey :one
insert into api_keys (id, tenant_id, name, key_hash, created_at)
values (@id, @tenant_id, @name, @key_hash, @created_at)
returning *;

-- name: ListKeys :many
-- Newest first; null lists every tenant's.
select * from api_keys
where tenant_id = coalesce(sqlc.narg(tenant_id), tenant_id)
order by created_at desc, id desc;

-- name: RevokeKey :one
-- Revoking twice keeps the first time.
update api_keys
set revoked_at = coalesce(revoked_at, @revoked_at)
where id = @id
returning *;

-- name: GetKeyByHash :one
select * from api_keys where key_hash = @key_hash;

-- name: HasKeys :one
-- Revoked ones count: a server whose last key was revoked must not turn open.
select exists (select 1 from api_keys) as has_keys;

-- name: TouchKey :exec
-- Only where the time on record is older than @stale_at, so that a busy key
-- is not a hot row.
update api_keys
set last_used_at = @used_at
where id = @id and (last_used_at is null or last_used_at < @stale_at);

-- Who did what. Rows hold ids and no text of messages.

-- name: InsertAuditEvent :exec
insert into audit_events (id, tenant_id, at, action, conversation_id, subject_id, detail, key_id, user_id, address, request_id)
values (@id, @tenant_id, @at, @action, sqlc.narg(conversation_id), sqlc.narg(subject_id), @detail, sqlc.narg(key_id), @user_id, @address, @request_id);

-- name: ListAuditEvents :many
-- Newest first: a range of the primary key.
select * from audit_events
where tenant_id = @tenant_id and id < @before_id
order by id desc
limit @row_limit;

-- name: DeleteAuditEvents :execrows
-- Of all tenants. It reads the whole table, once an hour at most.
delete from audit_events where at < @before;

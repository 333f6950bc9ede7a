-- name: NoteChange :exec
-- In the transaction of the change, after LockConversation: so sequences have no
-- gaps and follow the order of the commits. It comes last, as its time should be
-- near the commit's. AppendMessage and InsertConversation do the same by themselves.
with counted as (
    update conversations c
    set change_count = c.change_count + 1
    where c.id = @conversation_id and c.tenant_id = @tenant_id
    returning c.change_count, c.head_id
)
insert into changes (conversation_id, sequence, tenant_id, kind, message_id, parent_id, head_id, messages, at)
select @conversation_id, counted.change_count, @tenant_id, @kind, sqlc.narg(message_id), sqlc.narg(parent_id), counted.head_id, @messages, @at
from counted;

-- name: InsertChange :exec
-- The note of an append on a distributed database: one table by its key, which Citus
-- sends to a shard without planning.
insert into changes (conversation_id, sequence, tenant_id, kind, message_id, parent_id, head_id, messages, at)
values (@conversation_id, @sequence, @tenant_id, @kind, sqlc.narg(message_id), sqlc.narg(parent_id), sqlc.narg(head_id), @messages, @at);

-- name: ListChanges :many
-- Of one conversation, after a sequence. The time bounds what is told of a
-- conversation of which nothing was told yet.
select * from changes
where conversation_id = @conversation_id and sequence > @after::bigint and at >= @since
order by sequence
limit @row_limit;

-- name: ListTenantChanges :many
-- In the order of their times, which is roughly that of the commits.
select * from changes
where tenant_id = @tenant_id and at >= @since
order by at, conversation_id, sequence
limit @row_limit;

-- name: ListChanged :many
-- How far the conversations are that are watched, alone or with all of their tenant's.
select conversation_id, max(sequence)::bigint as sequence
from changes
where at >= @since and (tenant_id = any (@tenant_ids::text[]) or conversation_id = any (@conversation_ids::uuid[]))
group by conversation_id;

-- name: ListTenantChanged :many
-- The same of one tenant, for its reader: no row of another tenant is read.
select conversation_id, max(sequence)::bigint as sequence
from changes
where tenant_id = @tenant_id and at >= @since
group by conversation_id;

-- name: ForgetChanges :exec
-- Of all tenants. No index is kept for it: the table holds an hour's changes.
delete from changes where at < @before;

-- name: TouchAttachment :one
-- Whether it is there already. Its time begins anew, so that it isn't deleted
-- before a message can name it.
update attachments set uploaded_at = @uploaded_at
where tenant_id = @tenant_id and hash = @hash
returning media_type, name, size, width, height, tokens;

-- name: SumAttachments :one
-- Without the one that is to be stored: another request may have stored the same.
select coalesce(sum(size), 0)::bigint from attachments where tenant_id = @tenant_id and hash <> @hash;

-- name: InsertAttachment :one
-- Whether it was not there, and its name: another request may have stored the same.
insert into attachments (tenant_id, hash, media_type, name, size, width, height, tokens, said, bytes, uploaded_at)
values (@tenant_id, @hash, @media_type, @name, @size, @width, @height, @tokens, @said, @bytes, @uploaded_at)
on conflict (tenant_id, hash) do update set uploaded_at = excluded.uploaded_at
returning name, (xmax = 0)::boolean as created;

-- name: LockUpload :exec
-- As LockTenant, but uploads don't wait for each other.
select pg_advisory_xact_lock_shared(1668246642, hashtext(@tenant_id::text));

-- name: ListNamingConversations :many
-- Those with messages that name an attachment.
select distinct conversation_id from attachment_uses
where tenant_id = @tenant_id and hash = @hash
order by conversation_id;

-- name: ListNamingMessages :many
select message_id from attachment_uses
where conversation_id = @conversation_id and hash = @hash
order by message_id;

-- name: RecountMessages :exec
-- After LockConversation: adds to what messages cost, and to the sums of the
-- messages below them. It walks the whole tree, once for any number of messages.
with recursive counted as (
    select unnest(@ids::uuid[]) as id, unnest(@more::integer[]) as more
), walk as (
    select n.id, coalesce(counted.more, 0) as more, coalesce(counted.more, 0)::bigint as path_more
    from nodes n
    left join counted on counted.id = n.id
    where n.conversation_id = @conversation_id and n.parent_id is null
    union all
    select child.id, coalesce(counted.more, 0), walk.path_more + coalesce(counted.more, 0)
    from walk
    join lateral (select c.id from nodes c where c.conversation_id = @conversation_id and c.parent_id = walk.id offset 0) child on true
    left join counted on counted.id = child.id
)
update nodes n
set tokens = n.tokens + walk.more, path_tokens = n.path_tokens + walk.path_more
from walk
where n.conversation_id = @conversation_id and n.id = walk.id and (walk.more <> 0 or walk.path_more <> 0);

-- name: GetAttachment :one
select * from attachments where tenant_id = @tenant_id and hash = @hash;

-- name: GetAttachmentText :one
select said from attachments where tenant_id = @tenant_id and hash = @hash;

-- name: ListFileTexts :many
-- The beginnings of what files say.
select hash, left(said, @most::integer)::text as said from attachments where tenant_id = @tenant_id and hash = any (@hashes::bytea[]) and said <> '';

-- name: ListAttachments :many
-- Without what was said in them and their bytes.
select hash, media_type, name, size, width, height, tokens from attachments
where tenant_id = @tenant_id and hash = any (@hashes::bytea[]);

-- name: AwaitUnused :exec
-- Before HoldAttachments on a distributed database: its lock of a row is gone when
-- that row's node has committed, and the message is on another node. All servers
-- share the coordinator, whose locks last until all nodes have committed.
select pg_advisory_xact_lock_shared(1668246644, k.key)
from (select distinct hashtext(concat(@tenant_id::text, encode(h, 'hex'))) as key from unnest(@hashes::bytea[]) h order by 1) k;

-- name: AwaitNamed :exec
-- As AwaitUnused, before LockUnusedAttachments.
select pg_advisory_xact_lock(1668246644, k.key)
from (select distinct hashtext(concat(@tenant_id::text, encode(h, 'hex'))) as key from unnest(@hashes::bytea[]) h order by 1) k;

-- name: HoldAttachments :many
-- Which of them are there, and stay until the transaction ends.
select hash from attachments
where tenant_id = @tenant_id and hash = any (@hashes::bytea[])
order by hash
for key share;

-- name: AddAttachmentUses :exec
-- The same message may name one several times. The conversation is there, and read
-- only so that Citus sends the insertion to its shard.
insert into attachment_uses (conversation_id, message_id, hash, tenant_id)
select c.id, named.message_id, named.hash, c.tenant_id
from conversations c
cross join (select unnest(@message_ids::uuid[]) as message_id, unnest(@hashes::bytea[]) as hash) named
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
on conflict do nothing;

-- name: ListAttachmentUses :many
-- Of some messages of a conversation.
select message_id, hash from attachment_uses
where conversation_id = @conversation_id and message_id = any (@message_ids::uuid[])
order by message_id, hash;

-- name: ListConversationAttachments :many
select distinct u.hash
from conversations c
join attachment_uses u on u.conversation_id = @conversation_id
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
order by u.hash;

-- name: ListNamedAttachments :many
-- Of a conversation that is locked: what its messages name, and when the last of
-- them was stored that names it.
select u.hash, max(n.created_at)::timestamptz as named_at
from attachment_uses u
join nodes n on n.conversation_id = @conversation_id and n.id = u.message_id
where u.conversation_id = @conversation_id
group by u.hash
order by u.hash;

-- name: LockUnusedAttachments :many
-- First half of a deletion: it waits for appends that name one of them, and for
-- uploads of them.
select hash, uploaded_at from attachments
where tenant_id = @tenant_id and hash = any (@hashes::bytea[])
order by hash
for update;

-- name: ListUsedAttachments :many
-- Which of them a message names. Uses stand with their conversations, and
-- attachments with their tenants, so that Citus joins neither to the other.
select distinct u.tenant_id, u.hash
from (select unnest(@tenant_ids::text[]) as tenant_id, unnest(@hashes::bytea[]) as hash) wanted
join attachment_uses u on u.tenant_id = wanted.tenant_id and u.hash = wanted.hash;

-- name: DeleteAttachments :execrows
-- Second half.
delete from attachments
where tenant_id = @tenant_id and hash = any (@hashes::bytea[]);

-- name: ListOldAttachments :many
-- Of all tenants, after one: what was uploaded some time ago.
select tenant_id, hash from attachments
where (tenant_id, hash) > (@after_tenant::text, @after_hash::bytea) and uploaded_at < @before
order by tenant_id, hash
limit @row_limit;

-- name: NamesAttachment :one
-- Whether a message that the store's user may read names an attachment.
select exists (
    select 1 from attachment_uses u
    join conversations c on c.id = u.conversation_id
    where u.tenant_id = @tenant_id and u.hash = @hash and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))) as named;

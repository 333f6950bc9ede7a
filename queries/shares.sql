-- name: InsertShare :one
-- The caller has locked the conversation. No row where the head is none of its
-- messages.
insert into shares (conversation_id, id, head_id, secret_hash, summaries, created_at, expires_at)
select n.conversation_id, @id::uuid, n.id, @secret_hash::bytea, @summaries::boolean, @created_at::timestamptz, sqlc.narg(expires_at)::timestamptz
from nodes n
where n.conversation_id = @conversation_id and n.id = @head_id and n.kind = 'message'
on conflict (conversation_id, id) do nothing
returning *;

-- name: CountShares :one
select count(*) from shares where conversation_id = @conversation_id;

-- name: ListShares :many
-- Newest first.
select s.* from conversations c join shares s on s.conversation_id = c.id
where c.id = @conversation_id and s.conversation_id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
order by s.created_at desc, s.id desc;

-- name: DeleteShare :execrows
delete from shares s
using conversations c
where s.conversation_id = @conversation_id and s.id = @id
  and c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'));

-- name: GetShare :one
-- Of any tenant: whoever shows the link may read what it opens.
select sqlc.embed(s), c.tenant_id, c.title
from shares s join conversations c on c.id = s.conversation_id
where s.conversation_id = @conversation_id and s.id = @id and c.id = @conversation_id;

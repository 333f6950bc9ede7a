-- name: ClaimCheckpoint :execrows
-- The first save of a reply, which says which server runs it. Where another server
-- runs it, or where it was told how it ended, nothing is written: the caller has
-- locked the conversation, so that this sees what others told. A new try begins
-- after the end of an earlier one. A save whose answer was lost is made again.
insert into reply_checkpoints (conversation_id, message_id, parent_id, move_head_from, server_id, model, content, refusal, reasoning, marks, started, saved_at)
select c.id, @message_id::uuid, @parent_id::uuid, sqlc.narg(move_head_from)::uuid, @server_id::text, @model::text, @content::text, @refusal::text, @reasoning::text,
       @marks::bytea, sqlc.narg(started)::json, @saved_at::timestamptz
from conversations c
where c.id = @conversation_id
  and not exists (select from nodes n where n.conversation_id = @conversation_id and n.id = @message_id::uuid)
  and (@new_try::boolean or not exists (
      select from reply_states s where s.conversation_id = @conversation_id and s.message_id = @message_id::uuid and s.state = 'ended'))
on conflict (conversation_id, message_id) do update
set content = excluded.content, refusal = excluded.refusal, reasoning = excluded.reasoning, marks = excluded.marks, started = excluded.started, saved_at = excluded.saved_at
where reply_checkpoints.server_id = excluded.server_id;

-- name: SaveCheckpoint :execrows
-- Writes all that came anew: a save that failed is made up for by the next one.
-- No row: another server gave this one up and took the reply, so that a server
-- that stalled and wakes brings nothing back.
update reply_checkpoints
set content = @content, refusal = @refusal, reasoning = @reasoning, marks = @marks, started = @started, saved_at = @saved_at
where conversation_id = @conversation_id and message_id = @message_id and server_id = @server_id;

-- name: EndCheckpoint :execrows
-- As SaveCheckpoint, no row tells that another server took the reply.
with told as (
    delete from reply_states s where s.conversation_id = @conversation_id and s.message_id = @message_id
)
delete from reply_checkpoints r
where r.conversation_id = @conversation_id and r.message_id = @message_id and r.server_id = @server_id;

-- name: ListCheckpoints :many
-- Of all tenants, and so of all conversations: a server looks for those that
-- another one left. The table holds as many rows as replies run.
select c.tenant_id, r.conversation_id, r.message_id, r.server_id, r.saved_at
from reply_checkpoints r join conversations c on c.id = r.conversation_id
order by r.saved_at;

-- name: TakeCheckpoint :one
-- None where it was saved again since it was listed: its reply runs. Of two that
-- take, the second waits for the first, and gets none where that commits.
delete from reply_checkpoints
where conversation_id = @conversation_id and message_id = @message_id and saved_at = @saved_at
returning *;

-- name: GetCheckpoint :one
-- For a reader that is connected to another server than the one that runs the
-- reply.
select r.*
from conversations c join reply_checkpoints r on r.conversation_id = @conversation_id and r.message_id = @message_id
where c.id = @conversation_id and c.tenant_id = @tenant_id;

-- name: ListRepliesTo :many
-- Replies that run and answer a message, with what their requests add to the
-- answers. Reads the conversation's checkpoints, as many as it has replies running.
select r.message_id, s.metadata
from conversations c
join reply_checkpoints r on r.conversation_id = @conversation_id and r.parent_id = @parent_id
join reply_states s on s.conversation_id = @conversation_id and s.message_id = r.message_id
where c.id = @conversation_id and c.tenant_id = @tenant_id;

-- name: HasCheckpoints :one
-- Whether a reply of the conversation is under way that its server has claimed.
select exists (select from reply_checkpoints r where r.conversation_id = @conversation_id);

-- name: PutReplyState :exec
insert into reply_states (conversation_id, message_id, state, metadata, at)
values (@conversation_id, @message_id, @state, @metadata, @at)
on conflict (conversation_id, message_id) do update set state = excluded.state, metadata = excluded.metadata, at = excluded.at;

-- name: GetReplyState :one
select r.*
from conversations c join reply_states r on r.conversation_id = @conversation_id and r.message_id = @message_id
where c.id = @conversation_id and c.tenant_id = @tenant_id;

-- name: StopReply :execrows
-- The server that runs the reply sees it with its next save.
update reply_states set state = 'stopping', at = @at
where conversation_id = @conversation_id and message_id = @message_id and state in ('running', 'stopping');

-- name: DropReplyState :exec
delete from reply_states where conversation_id = @conversation_id and message_id = @message_id;

-- name: ForgetReplyStates :exec
-- Of all tenants, and so of all conversations.
delete from reply_states where state = 'ended' and at < @before;

-- name: SaveCheckpoint :exec
-- Writes all that came anew: a save that failed is made up for by the next one.
-- The foreign key is looked at with the first save only.
insert into reply_checkpoints (conversation_id, message_id, parent_id, move_head_from, server_id, model, content, refusal, reasoning, saved_at)
values (@conversation_id, @message_id, @parent_id, @move_head_from, @server_id, @model, @content, @refusal, @reasoning, @saved_at)
on conflict (conversation_id, message_id) do update
set parent_id = excluded.parent_id, move_head_from = excluded.move_head_from, server_id = excluded.server_id, model = excluded.model,
    content = excluded.content, refusal = excluded.refusal, reasoning = excluded.reasoning, saved_at = excluded.saved_at;

-- name: DropCheckpoint :exec
delete from reply_checkpoints where conversation_id = @conversation_id and message_id = @message_id;

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

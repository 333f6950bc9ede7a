-- name: BeginReply :execrows
-- After LockConversation, and after the question where the request brings one. No
-- row where the message that is answered isn't there, where the answer's id is
-- taken, or where a reply of that id is known. One that ended with nothing to store
-- makes room for another try.
insert into replies (conversation_id, message_id, parent_id, move_head_from, server_id, model, state, metadata, alive_at)
select c.id, @message_id::uuid, @parent_id::uuid, sqlc.narg(move_head_from)::uuid, @server_id::text, @model::text, 'running', @metadata::json, @alive_at::timestamptz
from conversations c
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
  and exists (select from nodes n where n.conversation_id = @conversation_id and n.id = @parent_id::uuid and n.kind = 'message')
  and not exists (select from nodes n where n.conversation_id = @conversation_id and n.id = @message_id::uuid)
on conflict (conversation_id, message_id) do update
set parent_id = excluded.parent_id, move_head_from = excluded.move_head_from, server_id = excluded.server_id, model = excluded.model,
    state = excluded.state, metadata = excluded.metadata, alive_at = excluded.alive_at, end_event = null
where replies.state in ('ended', 'deleted');

-- name: ForgetReplyEvents :exec
-- Those of an earlier try, before BeginReply, and of an answer that is deleted.
delete from reply_events e
where e.conversation_id = @conversation_id and e.message_id = @message_id
  and exists (select from replies r where r.conversation_id = @conversation_id and r.message_id = @message_id and r.state in ('ended', 'deleted'));

-- name: SaveReply :one
-- A sign of life. No row: another server took the reply, or it was deleted, so that
-- a server that stalled and wakes brings nothing back.
update replies set alive_at = @alive_at
where conversation_id = @conversation_id and message_id = @message_id and server_id = @server_id and state in ('running', 'stopping')
returning state;

-- name: AddReplyEvents :exec
-- In the transaction of SaveReply or EndReply. A save whose word was lost is made
-- again, perhaps with more events: readers go by the ids in the payload.
insert into reply_events (conversation_id, message_id, sequence, payload)
values (@conversation_id, @message_id, @sequence, @payload)
on conflict do nothing;

-- name: EndReply :execrows
-- No row as with SaveReply.
update replies set state = @state, metadata = coalesce(sqlc.narg(metadata), metadata), alive_at = @alive_at, end_event = sqlc.narg(end_event)
where conversation_id = @conversation_id and message_id = @message_id and server_id = @server_id and state in ('running', 'stopping');

-- name: TakeReply :one
-- None where its server gave a sign of life since it was listed. Of two that take,
-- the second waits for the first, and gets none.
update replies set server_id = @server_id, alive_at = @alive_at
where conversation_id = @conversation_id and message_id = @message_id and server_id = @old_server_id and alive_at = @old_alive_at
  and state in ('running', 'stopping')
returning *;

-- name: ListReplies :many
-- Those that run, of all tenants: a server looks for those that another one left.
select c.tenant_id, r.conversation_id, r.message_id, r.server_id, r.alive_at
from replies r join conversations c on c.id = r.conversation_id
where r.state in ('running', 'stopping')
order by r.alive_at;

-- name: GetReply :one
select r.*
from conversations c join replies r on r.conversation_id = @conversation_id and r.message_id = @message_id
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'));

-- name: GetReplyLog :many
-- A row for each save, and one without events where there is none. Reply and saves are
-- one snapshot, so no new attempt takes the events away in between. Readers on other
-- servers ask for it several times a second.
select sqlc.embed(r), e.sequence, e.payload
from conversations c
join replies r on r.conversation_id = @conversation_id and r.message_id = @message_id
left join reply_events e on e.conversation_id = @conversation_id and e.message_id = @message_id and e.sequence > @after
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
order by e.sequence;

-- name: ListRunningReplies :many
-- Of a conversation, with what their requests add to the metadata of the answers.
select r.message_id, r.parent_id, r.model, r.metadata
from conversations c join replies r on r.conversation_id = @conversation_id and r.state in ('running', 'stopping')
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
order by r.message_id;

-- name: StopReply :execrows
-- The server that runs the reply sees it with its next save.
update replies set state = 'stopping'
where conversation_id = @conversation_id and message_id = @message_id and state in ('running', 'stopping');

-- name: DropReply :exec
delete from replies where conversation_id = @conversation_id and message_id = @message_id;

-- name: MarkReplyDeleted :exec
insert into replies (conversation_id, message_id, parent_id, server_id, model, state, metadata, alive_at)
values (@conversation_id, @message_id, sqlc.narg(parent_id), '', '', 'deleted', '{}', @alive_at)
on conflict (conversation_id, message_id) do update set state = excluded.state, metadata = excluded.metadata, alive_at = excluded.alive_at, end_event = null;

-- name: ForgetReplies :exec
-- Of all tenants, and so of all conversations.
delete from replies where state = 'stored' and alive_at < @stored_before or state = 'ended' and alive_at < @ended_before;

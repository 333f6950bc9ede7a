-- The places of followers in the feed of changes. These queries are for the program
-- itself and for no request: they read conversations of all tenants.

-- name: ListBehind :many
-- How far each of these conversations is, and how far the follower is in it. On
-- Citus, places are looked up in the shards.
select c.id, c.tenant_id, c.change_count,
       coalesce((select p.sequence from follower_places p where p.conversation_id = c.id and p.follower = @follower), 0)::bigint as place
from conversations c
where c.id = any (@ids::uuid[]);

-- name: ListChangedConversations :many
-- The next @row_limit conversations with rows in the feed, in the order of their
-- ids. Reads an index, whose part has a row for each change of an hour.
select ch.conversation_id
from changes ch
where ch.conversation_id > @after_id
group by ch.conversation_id
order by ch.conversation_id
limit @row_limit;

-- name: MovePlace :execrows
-- Moves a place from @from_sequence, which is 0 where the follower has none. No row:
-- it stood elsewhere, or the conversation is gone.
insert into follower_places as p (conversation_id, follower, sequence)
select @conversation_id, @follower, @sequence
from conversations c
where c.id = @conversation_id
on conflict (conversation_id, follower) do update
set sequence = excluded.sequence
where p.sequence = @from_sequence::bigint;

-- name: LeadFollower :one
-- Makes a server the one that looks, or keeps it so. No row: another one does. A
-- follower that comes back after a long time has a look at all conversations, as
-- the feed holds an hour; a new one does where @scans says so.
insert into followers as f (name, server_id, leads_until, scanned_id)
values (@name, @server_id, now() + make_interval(secs => @lease_seconds), case when @scans::boolean then '00000000-0000-0000-0000-000000000000'::uuid end)
on conflict (name) do update
set server_id = excluded.server_id, leads_until = excluded.leads_until,
    scanned_id = case when f.leads_until < now() - make_interval(secs => @absence_seconds) then '00000000-0000-0000-0000-000000000000' else f.scanned_id end
where f.server_id = excluded.server_id or f.leads_until < now()
returning f.scanned_id;

-- name: NoteScan :exec
-- Null: all conversations were looked at.
update followers set scanned_id = sqlc.narg(scanned_id) where name = @name and server_id = @server_id;

-- name: LeaveFollower :exec
-- Lets another server lead at once.
update followers set leads_until = now() where name = @name and server_id = @server_id and leads_until > now();

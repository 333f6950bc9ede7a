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
select c.id, @follower, @sequence
from conversations c
where c.id = @conversation_id
on conflict (conversation_id, follower) do update
set sequence = excluded.sequence
where p.sequence = @from_sequence::bigint;

-- name: DeletePlaces :exec
-- Of a conversation that is deleted.
delete from follower_places where conversation_id = @conversation_id;

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

-- name: ListGrown :many
-- What changed in a conversation since a place, the newest first, @row_limit rows at
-- most, and of messages that were appended what their branches measure. Where the
-- feed doesn't reach back to the place any more, the active head stands for what
-- it has forgotten, with no messages.
select ch.kind::text as kind, ch.message_id, ch.parent_id, ch.messages, c.settings,
       (n.id is not null)::boolean as stored, coalesce(n.path_tokens, 0)::bigint as path_tokens, coalesce(n.depth, 0)::integer as depth,
       coalesce(p.path_tokens, 0)::bigint as prefix_tokens, coalesce(p.depth + 1, 0)::integer as prefix_messages,
       coalesce(n.answered_by, '')::text as answered_by
from conversations c
cross join (select @place::bigint as place) since
join lateral (
    select f.sequence, f.kind, f.message_id, f.parent_id, f.messages
    from changes f
    where f.conversation_id = @conversation_id and f.sequence > since.place
    union all
    select since.place, 'messages.appended', c.head_id, null, 0
    where c.head_id is not null and not exists (select from changes f where f.conversation_id = @conversation_id and f.sequence = since.place + 1)
) ch on true
left join lateral (select n.id, n.path_tokens, n.depth, n.prefix_id,
                          case n.role when 'assistant' then left(n.metadata #>> '{reply,model}', 200) end as answered_by
    from nodes n where n.conversation_id = @conversation_id and n.id = ch.message_id and ch.kind = 'messages.appended' offset 0) n on true
left join lateral (select p.path_tokens, p.depth from nodes p where p.conversation_id = @conversation_id and p.id = n.prefix_id offset 0) p on true
where c.id = @conversation_id and c.tenant_id = @tenant_id
order by ch.sequence desc
limit @row_limit;

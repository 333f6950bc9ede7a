-- name: InsertConversation :one
-- No row where the id is taken: the caller compares what stands there.
-- With @noted_at the change is noted, as NoteChange does.
with inserted as (
    insert into conversations (id, tenant_id, title, metadata, settings, created_at, updated_at,
                               source_conversation_id, source_message_id, source_request, change_count, archived, pinned, tags, owner_id, reader)
    values (@id, @tenant_id, @title, @metadata, @settings, @created_at, @updated_at,
            sqlc.narg(source_conversation_id), sqlc.narg(source_message_id), sqlc.narg(source_request),
            @first_change, @archived, @pinned, @tags, @owner_id, @private_to)
    on conflict (id) do nothing
    returning *
), noted as (
    insert into changes (conversation_id, sequence, tenant_id, kind, messages, at)
    select @id, inserted.change_count, @tenant_id, 'conversation.created', 0, sqlc.narg(noted_at)
    from inserted
    where sqlc.narg(noted_at)::timestamptz is not null
)
select sqlc.embed(conversations) from inserted conversations;

-- name: GetConversation :one
select * from conversations c where c.id = @id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'));

-- name: LockConversation :one
-- Writers of one conversation take their turns here. A statement that follows
-- in the same transaction sees all that the writer before it committed.
-- "no key", so that a foreign key's check of another row doesn't wait.
select * from conversations c where c.id = @id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*')) for no key update;

-- name: LockTurn :exec
-- Before LockConversation on a distributed database. The row's lock is on the node
-- of its shard. When that shard is moved to another node, the lock stays behind, and
-- the next writer would find the new row free. All servers share the coordinator.
select pg_advisory_xact_lock(1668246643, hashtext(concat(@tenant_id::text, @id::uuid)));

-- name: ListConversations :many
-- The pinned first, and then by updated_at, the latest first. The comparison with
-- updated_minute, which is no later than updated_at, is one range of
-- conversations_listed. It is read until enough fit, and to the end of that minute
-- (incremental sort). Postgres takes a case for half of all rows; of an "or" it would
-- think that it leaves few, and sort them all.
--
-- A page has @row_limit rows at most, and none beyond @byte_limit bytes but the first;
-- more tells whether another row comes after one. Rows are small here, so that those
-- of a whole page are measured at once, in one statement that Citus takes. Messages
-- are measured one by one, as in GetTranscript.
--
-- If they are @chosen, they are those @among.
select page.id, page.tenant_id, page.title, page.metadata, page.settings, page.head_id, page.created_at, page.updated_at,
       page.message_count, page.source_conversation_id, page.source_message_id, page.source_request, page.change_count, page.archived, page.pinned, page.tags, page.owner_id, page.reader, page.more::boolean as more
from (
    select listed.*, row_number() over earlier as position,
           coalesce(sum(octet_length(listed.metadata::text) + octet_length(listed.settings::text)) over (earlier rows between unbounded preceding and 1 preceding), 0) as bytes_before,
           lead(listed.id) over earlier is not null as more
    from (
        select c.* from conversations c
        where c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*')) and c.archived = @archived
          and (c.pinned, c.updated_minute) <= (@before_pinned::boolean, @before_updated_at::timestamptz)
          and (c.pinned, c.updated_at, c.id) < (@before_pinned::boolean, @before_updated_at::timestamptz, @before_id::uuid)
          and case when @tag::text = '' then true else @tag = any (c.tags) end
          and (not @chosen::boolean or c.id = any (@among::uuid[]))
        order by c.pinned desc, c.updated_minute desc, c.updated_at desc, c.id desc
        limit 1 + @row_limit::integer) listed
    window earlier as (order by listed.pinned desc, listed.updated_at desc, listed.id desc)) page
where page.position <= @row_limit::integer and page.bytes_before < @byte_limit::integer
order by page.position;

-- name: ListBranchLengths :many
-- How many messages the active branches of conversations have: each by two keys.
select c.id, n.depth + 1 as messages
from conversations c
join nodes n on n.conversation_id = c.id and n.id = c.head_id
where c.id = any (@ids::uuid[]) and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'));

-- name: ListTags :many
-- Of the conversations that aren't archived, or of those that are. The most used
-- first.
select tag::text as tag, count(*) as conversations
from conversations c, unnest(c.tags) tag
where c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*')) and c.archived = @archived and c.tags <> '{}'
group by tag
order by count(*) desc, tag
limit @row_limit;

-- name: FindConversation :many
-- By the range of ids of one beginning, by the whole title, or by a part of it in
-- upper or lower case; ids come first, and then whole titles. The condition on ids
-- stands beside those on titles, so that no plan reads the ids of other tenants in
-- that range.
select c.* from conversations c
where c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
  and (c.id between sqlc.narg(first_id)::uuid and sqlc.narg(last_id)::uuid or c.title = @title
       or @title <> '' and strpos(lower(c.title), lower(@title)) > 0)
order by case when c.id between sqlc.narg(first_id) and sqlc.narg(last_id) then 1 when c.title = @title then 2 else 3 end, c.updated_at desc, c.id desc
limit @row_limit;

-- name: UpdateConversation :one
-- Null leaves a column as it is. It runs after LockConversation, so that a
-- prune can't delete the message that becomes the head; a head that is no
-- message of the conversation leaves no row. updated_at stays: nothing was said.
update conversations c
set title      = coalesce(sqlc.narg(title), c.title),
    metadata   = coalesce(sqlc.narg(metadata), c.metadata),
    settings   = coalesce(sqlc.narg(settings), c.settings),
    head_id    = coalesce(sqlc.narg(head_id), c.head_id),
    archived   = coalesce(sqlc.narg(archived), c.archived),
    pinned     = coalesce(sqlc.narg(pinned), c.pinned),
    tags       = coalesce(sqlc.narg(tags), c.tags),
    owner_id   = coalesce(sqlc.narg(owner_id), c.owner_id),
    reader     = coalesce(sqlc.narg(private_to), c.reader)
where c.id = @id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
  and (sqlc.narg(head_id)::uuid is null
       or exists (select from nodes n where n.conversation_id = @id and n.id = sqlc.narg(head_id) and n.kind = 'message'))
returning *;

-- name: DeleteConversation :execrows
-- Its nodes go with it, by their foreign key.
delete from conversations c where c.id = @id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'));

-- name: MoveHead :exec
-- After LockConversation. Null where no message is left.
update conversations c
set head_id = sqlc.narg(head_id), updated_at = @updated_at, message_count = c.message_count + @added_messages::integer
where c.id = @id;

-- name: CountConversations :one
-- At most so many, so that it costs what the limit is, in an index.
select count(*) from (select 1 from conversations where tenant_id = @tenant_id limit @at_most) counted;

-- name: GetSecret :one
select secret from installation;

-- name: GetServedSettings :one
select settings from installation;

-- name: SetServedSettings :exec
update installation set settings = @settings where settings <> @settings;

-- name: ListOfAllTenants :many
-- Of all tenants, in the order of their ids: for work in the background that
-- comes to each of them in time.
select id from conversations where id > @after_id order by id limit @row_limit;

-- name: SetStatementTimeout :one
-- For deletes and forks, whose cost grows with the tree, and then back. It gives the
-- bound before it: the transaction may be the caller's, and go on.
with former as materialized (select current_setting('statement_timeout') as bound)
select former.bound::text as bound, set_config('statement_timeout', @bound::text, true)::text as set from former;

-- name: LockTenant :exec
-- Work of one kind waits here for other work of that kind for the tenant. Package tree
-- has the kinds. All but the index of words come before any lock of a conversation.
select pg_advisory_xact_lock(@kind::integer, hashtext(@tenant_id::text));

-- name: ListReadable :many
-- Those of some that the store's user may read.
select c.id from conversations c
where c.id = any (@ids::uuid[]) and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'));

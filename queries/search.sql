-- The index of words. A chunk knows which of its messages have which words, and a
-- segment names the chunks of a tenant that have a word. Package search makes both,
-- after the append: docs/design.md says why, under "Search". Queries of one
-- conversation are sent many in one round trip.

-- name: CommitLater :exec
-- The commit of the transaction doesn't wait for the disk. What a crash of Postgres
-- loses of it is made again.
select set_config('synchronous_commit', 'off', true);

-- name: ListUnchunked :many
-- Messages of a conversation that are in no chunk, in the order of their times.
select n.id
from nodes n
left join (
    select m.id from search_chunks s cross join lateral unnest(s.messages) m (id)
    where s.conversation_id = @conversation_id) known on known.id = n.id
where n.conversation_id = @conversation_id and n.kind = 'message' and known.id is null
order by n.created_at, n.id;

-- name: ListOpenChunks :many
-- Of a conversation: those that aren't full, or have lost a message, and are in no
-- segment.
select s.* from search_chunks s
where s.tenant_id = @tenant_id and s.conversation_id = @conversation_id and s.segment is null
  and (s.data is null or cardinality(s.messages) < @full_size::integer)
order by s.number;

-- name: GetLastChunk :one
select s.number, cardinality(s.messages)::integer as messages from search_chunks s
where s.conversation_id = @conversation_id
order by s.number desc
limit 1;

-- name: PrunedSince :one
-- Whether messages were pruned after a change.
select exists (
    select from changes ch
    where ch.conversation_id = @conversation_id and ch.sequence > @sequence and ch.kind = 'messages.pruned');

-- name: DeleteChunks :execrows
delete from search_chunks s
where s.conversation_id = @conversation_id and s.number = any (@numbers::integer[]) and s.segment is null;

-- name: InsertChunk :exec
insert into search_chunks (conversation_id, number, tenant_id, messages, newest_at, data)
values (@conversation_id, @number, @tenant_id, @messages, @newest_at, @data);

-- name: CountLooseChunks :one
-- At most so many, so that it costs what the limit is.
select count(*) from (select 1 from search_chunks where tenant_id = @tenant_id and segment is null limit @at_most) counted;

-- name: ListLooseKeys :many
-- Chunks that may go into a segment, the oldest first.
select s.conversation_id, s.number from search_chunks s
where s.tenant_id = @tenant_id and s.segment is null and s.data is not null
order by s.newest_at
limit @row_limit;

-- name: PlaceChunk :many
-- Puts a chunk into a segment, if it is in none and is whole.
update search_chunks s set segment = @segment, place = @place
where s.conversation_id = @conversation_id and s.number = @number and s.segment is null and s.data is not null
returning s.*;

-- name: InsertSegment :exec
insert into search_segments (tenant_id, bucket, segment, newest_at, data)
select @tenant_id, (@buckets::smallint[])[i], @segment, @newest_at, (@parts::bytea[])[i]
from generate_subscripts(@buckets::smallint[], 1) i;

-- name: ListSegmentIDs :many
-- Of a kind of segments, the oldest first.
select s.segment, max(s.newest_at)::timestamptz as newest_at from search_segments s
where s.tenant_id = @tenant_id and s.bucket between @first_bucket and @last_bucket
group by s.segment
order by newest_at, s.segment;

-- name: ListBucketsOf :many
-- Of some segments.
select s.* from search_segments s
where s.tenant_id = @tenant_id and s.bucket = any (@buckets::smallint[]) and s.segment = any (@segments::uuid[])
order by s.bucket;

-- name: MoveChunks :exec
-- Moves the chunks of a segment into another one, behind those that are there.
update search_chunks s set segment = @into_segment, place = s.place + @distance
where s.tenant_id = @tenant_id and s.segment = @segment;

-- name: ListChunksOf :many
-- The chunks of a conversation that have one of the messages.
select distinct s.number, s.segment, s.place
from search_chunks s
cross join lateral unnest(s.messages) m (id)
join unnest(@ids::uuid[]) gone (id) on gone.id = m.id
where s.conversation_id = @conversation_id;

-- name: TearChunk :exec
-- Takes messages out of a chunk, with all that it knows of words: it is made again
-- from the others.
update search_chunks s
set messages = array(select m.id from unnest(s.messages) with ordinality m (id, place) where m.id <> all (@ids::uuid[]) order by m.place),
    data = null, segment = null, place = null
where s.conversation_id = @conversation_id and s.number = @number;

-- name: DeleteEmptyChunks :exec
delete from search_chunks s where s.conversation_id = @conversation_id and s.number = any (@numbers::integer[]) and s.messages = '{}';

-- name: ListPlacesOf :many
select s.segment, s.place from search_chunks s where s.conversation_id = @conversation_id and s.segment is not null;

-- name: DeleteSegments :exec
delete from search_segments s
where s.tenant_id = @tenant_id and s.bucket = any (@buckets::smallint[]) and s.segment = any (@segments::uuid[]);

-- name: SetBuckets :exec
-- Of a segment.
update search_segments s set data = made.data
from (select unnest(@buckets::smallint[]) as bucket, unnest(@parts::bytea[]) as data) made
where s.tenant_id = @tenant_id and s.bucket = made.bucket and s.segment = @segment;

-- name: LoosenChunks :exec
-- Those in some parts of a segment, of so many places each.
update search_chunks s set segment = null, place = null
where s.tenant_id = @tenant_id and s.segment = @segment and s.place / @part_places::integer = any (@parts::integer[]);

-- name: ListTenantBehind :many
-- The tenant's conversations that changed since a follower's place in them, the one
-- that changed last first: among some, and those that changed since a time. Places
-- are looked up one by one: a join would read those of others while there are few.
select c.id, c.change_count,
       coalesce((select p.sequence from follower_places p where p.conversation_id = c.id and p.follower = @follower), 0)::bigint as place
from conversations c
where c.tenant_id = @tenant_id
  and c.id = any (array(
      select id from unnest(@ids::uuid[]) id
      union
      select ch.conversation_id from changes ch where ch.tenant_id = @tenant_id and ch.at >= @since::timestamptz))
  and c.change_count > coalesce((select p.sequence from follower_places p where p.conversation_id = c.id and p.follower = @follower), 0)
order by c.updated_at desc
limit @row_limit;

-- name: ListAllBehind :many
-- The same among all of the tenant's.
select c.id, c.change_count,
       coalesce((select p.sequence from follower_places p where p.conversation_id = c.id and p.follower = @follower), 0)::bigint as place
from conversations c
where c.tenant_id = @tenant_id
  and c.change_count > coalesce((select p.sequence from follower_places p where p.conversation_id = c.id and p.follower = @follower), 0)
order by c.updated_at desc
limit @row_limit;

-- name: ListLooseChunks :many
-- Of a tenant, those that no segment names, newest first.
select s.* from search_chunks s
where s.tenant_id = @tenant_id and s.segment is null
order by s.newest_at desc
limit @row_limit;

-- name: ListConversationChunks :many
-- Newest first.
select s.* from search_chunks s
where s.conversation_id = @conversation_id and s.tenant_id = @tenant_id
order by s.newest_at desc, s.number desc
limit @row_limit offset @beyond::integer;

-- name: ListSegments :many
-- Which chunks of a tenant have words whose hashes begin so.
select s.* from search_segments s where s.tenant_id = @tenant_id and s.bucket = any (@buckets::smallint[]);

-- name: ListPlacedChunks :many
-- Of one segment.
select s.* from search_chunks s
where s.segment = @segment::uuid and s.place = any (@places::smallint[]) and s.tenant_id = @tenant_id;

-- name: DeleteTitleWords :exec
-- Those that a title doesn't have.
delete from title_words t where t.conversation_id = @conversation_id and t.word <> all (@words::text[]);

-- name: AddTitleWords :exec
insert into title_words (conversation_id, word, tenant_id)
select c.id, word, c.tenant_id
from conversations c, unnest(@words::text[]) word
where c.id = @conversation_id and c.tenant_id = @tenant_id
on conflict do nothing;

-- name: ListTitled :many
-- Conversations whose titles have one of the words, or a word that begins so, and those
-- among some, the one touched last first. Citus pushes no lateral join to its shards.
with found as (
    select t.conversation_id as id from title_words t where t.tenant_id = @tenant_id and t.word = any (@words::text[])
    union
    select t.conversation_id
    from unnest(@beginnings::text[]) sought (word)
    join title_words t on t.tenant_id = @tenant_id and t.word >= sought.word collate "C" and t.word < (sought.word || chr(1114111)) collate "C"
    union
    select id from unnest(@among::uuid[]) id
)
select c.* from conversations c
where c.id = any (array(select id from found)) and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'))
order by c.updated_at desc, c.id desc;

-- name: ListSizes :many
-- How many bytes messages of one conversation have in a page.
select n.conversation_id, n.id, (octet_length(n.body::text) + coalesce(octet_length(n.metadata::text), 0) + coalesce(octet_length(n.reasoning), 0))::integer as bytes
from conversations c
cross join unnest(@ids::uuid[]) wanted (id)
join lateral (select n.* from nodes n where n.conversation_id = @conversation_id and n.id = wanted.id offset 0) n on true
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'));

-- name: DescribeHits :many
-- Of one conversation. Where all messages are on one line, its end is the branch to open.
select sqlc.embed(nodes), c.title, c.head_id, coalesce(c.message_count = head.depth + 1, false)::boolean as is_line,
       coalesce(case when nodes.parent_id is null
           then (select max(r.sibling_index) from nodes r where r.conversation_id = @conversation_id and r.parent_id is null)
           else (select max(s.sibling_index) from nodes s where s.conversation_id = @conversation_id and s.parent_id = nodes.parent_id)
       end, 0)::integer as sibling_count,
       (select to_json(a) from annotations a where a.conversation_id = @conversation_id and a.message_id = nodes.id) as annotation
from conversations c
left join lateral (select n.depth from nodes n where n.conversation_id = @conversation_id and n.id = c.head_id) head on true
join unnest(@ids::uuid[]) wanted (id) on true
join lateral (select n.* from nodes n where n.conversation_id = @conversation_id and n.id = wanted.id and n.kind = 'message' offset 0) nodes on true
where c.id = @conversation_id and c.tenant_id = @tenant_id and (c.reader = '' or @reader::text in (c.reader, '*'));

-- name: ListNewestLeaves :many
-- The newest leaf at or below each of some messages of a conversation: the branch to open.
-- It walks what lies below them.
with recursive hit as (
    select n.id, n.created_at
    from unnest(@ids::uuid[]) wanted (id)
    join lateral (select n.* from nodes n where n.conversation_id = @conversation_id and n.id = wanted.id and n.kind = 'message' offset 0) n on true
), below as (
    -- What lies below each hit, down to the next hit: no message is walked twice.
    select hit.id as hit_id, hit.id, hit.created_at
    from hit
    union all
    select below.hit_id, child.id, child.created_at
    from below
    join lateral (select child.* from nodes child where child.conversation_id = @conversation_id and child.parent_id = below.id and child.sibling_index is not null offset 0) child on true
    where below.id = below.hit_id or below.id not in (select h.id from hit h)
), link as materialized (
    select below.hit_id, below.id as lower_id
    from below
    join hit on hit.id = below.id
    where below.id <> below.hit_id
), reach as (
    -- A hit, and the hits below it.
    select hit.id as hit_id, hit.id as lower_id
    from hit
    union
    select reach.hit_id, link.lower_id
    from reach
    join link on link.hit_id = reach.lower_id
), ending as materialized (
    select below.hit_id, below.id, below.created_at
    from below
    left join lateral (
        select child.id from nodes child
        where child.conversation_id = @conversation_id and child.parent_id = below.id and child.sibling_index is not null
        limit 1) child on true
    where child.id is null
)
select distinct on (reach.hit_id) reach.hit_id, ending.id as leaf_id
from reach
join ending on ending.hit_id = reach.lower_id
order by reach.hit_id, ending.created_at desc, ending.id desc;

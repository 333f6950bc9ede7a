-- A search runs in a transaction that is rolled back, so that its settings end
-- with it. BeginSearch reads the query. SearchNewest or SearchRecent looks at the
-- newest messages themselves. What those don't answer, SearchConversation or
-- SearchTenant looks up in the index. MeasureHits tells what a ranking needs, ListSizes
-- how many hits a page holds, and DescribeHits what it shows. docs/design.md says why, under "Search".

-- name: BeginSearch :one
-- words is the query as Postgres reads it: @query and @required together. Where
-- @last is one word, @query_to_last is the query with a placeholder in its place,
-- and words that begin with it match too. whole is the query without those.
--
-- positive is the part of it that an index can find, which has no negations; 'T'
-- where a message may match that has none of its words. The index has no
-- beginnings of words. So if the rest of the query can be found without @last,
-- positive is that; else by_whole says that it is of the whole words.
--
-- Each word has the entries under which the tenant's messages may have it, one
-- for every length of hash. Words are quoted as in positive.
--
-- With the settings of the transaction: its statements end in time; whatever the
-- tables hold, a plan doesn't read the rows of others, nor sorts all of a tenant's
-- or a conversation's rows where an index has their order; and what an index finds
-- is remembered by rows, as rows of others are read where pages are. What is ruled out
-- is counted as dear, for which Postgres would compile the plan where a pooler keeps
-- the connection's own setting away.
--
-- distributed tells that Citus is there, which can't send every query to shards.
select q.words::text as words, q.whole::text as whole, querytree(q.whole) <> 'T' as findable, q.by_whole,
       querytree(case when q.by_whole then q.whole else q.rest end)::text as positive, q.prefix::text as prefix,
       coalesce(found.quoted, '{}')::text[] as quoted, coalesce(found.terms, '{}')::text[] as terms, coalesce(found.entries, '{}')::text[] as entries,
       set_config('statement_timeout', least(q.timeout_ms, nullif(extract(epoch from current_setting('statement_timeout')::interval) * 1000, 0))::integer::text, true)::text as statement_timeout,
       set_config('enable_seqscan', 'off', true)::text as enable_seqscan,
       set_config('enable_sort', 'off', true)::text as enable_sort,
       set_config('work_mem', '64MB', true)::text as work_mem,
       set_config('jit', 'off', true)::text as jit,
       (to_regclass('pg_catalog.pg_dist_partition') is not null)::boolean as distributed
from (
    select given.whole, rewritten.words, rewritten.rest, querytree(rewritten.rest) = 'T' as by_whole, case when one.word then given.last::text else '' end as prefix,
           @tenant_key::text as tenant_key, @levels::integer as levels, @timeout_ms::integer as timeout_ms
    from (
        select websearch_to_tsquery('simple', @query::text) && websearch_to_tsquery('simple', @required::text) as whole,
               websearch_to_tsquery('simple', @query_to_last::text) && websearch_to_tsquery('simple', @required::text) as to_last,
               websearch_to_tsquery('simple', @last::text) as last, websearch_to_tsquery('simple', @placeholder::text) as placeholder) given
    cross join lateral (select numnode(given.last) = 1 as word) one
    cross join lateral (
        select case when one.word then ts_rewrite(given.to_last, given.placeholder, (given.last::text || ':*')::tsquery) else given.whole end as words,
               case when one.word then ts_rewrite(given.to_last, given.placeholder, !! given.last) else given.whole end as rest) rewritten) q
cross join lateral (
    select array_agg(term.quoted) as quoted, array_agg(term.word) as terms,
           array_agg((select string_agg(quote_literal(search_entry(q.tenant_key || chr(97 + length), term.word)), ' | ') from generate_series(0, q.levels - 1) length)) as entries
    from (
        select distinct m[1] as quoted, replace(replace(m[1], '''''', ''''), repeat(chr(92), 2), chr(92)) as word
        from regexp_matches(querytree(q.whole), '''((?:[^'']|'''')*)''', 'g') m) term) found;

-- name: SearchNewest :many
-- Which of a tenant's newest @looks messages match, newest first. The row whose
-- place is 1 is given too, and the one whose place is @looks, if there is one:
-- there may be older messages then. The tenant is compared as well as its key: a
-- key is a hash. On Citus each shard looks at its newest messages, and gives no
-- text of them.
select newest.conversation_id, newest.id, newest.created_at, newest.place::integer as place, newest.matches
from (
    select looked.*, row_number() over (order by looked.created_at desc, looked.id desc) as place
    from (
        select n.conversation_id, n.id, n.created_at,
               (search_matches(coalesce(n.search_text, n.body ->> 'content'), @patterns::text[], (@words::text)::tsquery)
                and exists (select from conversations c where c.id = n.conversation_id and c.tenant_id = @tenant_id))::boolean as matches
        from nodes n
        where hashtextextended(left(n.search_key, 8), 0) = hashtextextended(@tenant_key::text, 0) and n.kind = 'message'
          and (n.created_at, n.id) < (@before_created_at::timestamptz, @before_id::uuid)
        order by n.created_at desc, n.id desc
        limit @looks::integer) looked
    offset 0) newest
where newest.matches or newest.place in (1, @looks)
limit @row_limit;

-- name: SearchRecent :many
-- The same of a conversation, by ids, which the program makes in the order of
-- time. No index has the messages of one conversation by their time.
select newest.conversation_id, newest.id, newest.created_at, newest.place::integer as place, newest.matches::boolean as matches
from (
    select looked.*, search_matches(looked.said, @patterns::text[], (@words::text)::tsquery) as matches
    from (
        select n.conversation_id, n.id, n.created_at, coalesce(n.search_text, n.body ->> 'content') as said,
               row_number() over (order by n.id desc) as place
        from nodes n
        where n.conversation_id = @conversation_id and n.kind = 'message'
          and (n.created_at, n.id) < (@before_created_at::timestamptz, @before_id::uuid)
        order by n.id desc
        limit @looks::integer) looked
    offset 0) newest
where newest.matches or newest.place in (1, @looks)
limit @row_limit;

-- name: SearchConversation :many
-- Newest first. The index finds messages that may match. Whether they do is
-- looked up from the newest on, only until the page is full. No index can find
-- what is "not from a time on": one of all tenants' messages by their time would
-- be read from end to end beside the index of words.
with candidate as materialized (
    select n.conversation_id, n.id, n.created_at
    from nodes n
    where n.conversation_id = @conversation_id and n.kind = 'message'
      and search_entries(n.search_key, coalesce(n.search_text, n.body ->> 'content')) @@ (@entries::text)::tsquery
      and not (n.created_at, n.id) >= (@before_created_at::timestamptz, @before_id::uuid)
)
select candidate.conversation_id, candidate.id, candidate.created_at
from (select * from candidate order by candidate.created_at desc, candidate.id desc) candidate
join lateral (
    select coalesce(n.search_text, n.body ->> 'content') as text from nodes n
    where n.conversation_id = @conversation_id and n.id = candidate.id offset 0) said
  on search_matches(said.text, @patterns::text[], (@words::text)::tsquery)
limit @row_limit;

-- name: SearchTenant :many
-- The same across conversations, where they are in one database.
with candidate as materialized (
    select n.conversation_id, n.id, n.created_at
    from nodes n
    where n.kind = 'message'
      and search_entries(n.search_key, coalesce(n.search_text, n.body ->> 'content')) @@ (@entries::text)::tsquery
      and not (n.created_at, n.id) >= (@before_created_at::timestamptz, @before_id::uuid)
)
select candidate.conversation_id, candidate.id, candidate.created_at
from (select * from candidate order by candidate.created_at desc, candidate.id desc) candidate
join lateral (
    select coalesce(n.search_text, n.body ->> 'content') as text from conversations c
    join nodes n on n.conversation_id = c.id and n.id = candidate.id
    where c.id = candidate.conversation_id and c.tenant_id = @tenant_id offset 0) said
  on search_matches(said.text, @patterns::text[], (@words::text)::tsquery)
limit @row_limit;

-- name: SearchTenantInShards :many
-- SearchTenant on Citus, which sends it to every shard at once. Each looks at all
-- that its index finds, because a join that stops early can't be sent. No text
-- leaves a shard, and no more than a page of rows.
select n.conversation_id, n.id, n.created_at
from nodes n
join conversations c on c.id = n.conversation_id and c.tenant_id = @tenant_id
where n.kind = 'message'
  and search_entries(n.search_key, coalesce(n.search_text, n.body ->> 'content')) @@ (@entries::text)::tsquery
  and not (n.created_at, n.id) >= (@before_created_at::timestamptz, @before_id::uuid)
  and search_matches(coalesce(n.search_text, n.body ->> 'content'), @patterns::text[], (@words::text)::tsquery)
order by n.created_at desc, n.id desc
limit @row_limit;

-- name: FindConversations :many
-- ListConversations, of those whose title contains the words, case aside, or a
-- message of which matches them. @known are some that are known to. Whether
-- others do is looked up from the one touched last on, until the page is full:
-- @by_index in what the index finds, @by_reading in all their messages, which is
-- for words that most conversations have.
with candidate as materialized (
    select n.conversation_id, array_agg(n.id) as ids
    from nodes n
    where @by_index::boolean and n.kind = 'message'
      and search_entries(n.search_key, coalesce(n.search_text, n.body ->> 'content')) @@ (@entries::text)::tsquery
    group by n.conversation_id
), place as materialized (
    select c.id, candidate.ids, known.id is not null or strpos(lower(c.title), lower(@query::text)) > 0 as found
    from conversations c
    left join candidate on candidate.conversation_id = c.id
    left join (select distinct unnest(@known::uuid[]) as id) known on known.id = c.id
    where c.tenant_id = @tenant_id
      and c.archived = @archived and (@tag::text = '' or @tag = any (c.tags))
      and (c.pinned, c.updated_at, c.id) < (@before_pinned::boolean, @before_updated_at::timestamptz, @before_id::uuid)
      and (@by_reading::boolean or candidate.ids is not null or known.id is not null or strpos(lower(c.title), lower(@query::text)) > 0)
    order by c.pinned desc, c.updated_at desc, c.id desc
)
select page.id, page.tenant_id, page.title, page.metadata, page.settings, page.head_id, page.created_at, page.updated_at,
       page.message_count, page.source_conversation_id, page.source_message_id, page.source_request, page.change_count, page.archived, page.pinned, page.tags, page.more::boolean as more
from (
    select listed.*, row_number() over earlier as position,
           coalesce(sum(octet_length(listed.metadata::text) + octet_length(listed.settings::text)) over (earlier rows between unbounded preceding and 1 preceding), 0) as bytes_before,
           lead(listed.id) over earlier is not null as more
    from (
        select c.* from place
        join lateral (
            select c.* from conversations c
            where c.id = place.id
              and (place.found
                  or exists (
                      select from unnest(place.ids) candidate_id
                      join lateral (
                          select coalesce(n.search_text, n.body ->> 'content') as text from nodes n
                          where n.conversation_id = place.id and n.id = candidate_id offset 0) said
                        on search_matches(said.text, @patterns::text[], (@words::text)::tsquery))
                  or @by_reading::boolean and exists (
                      select from nodes n
                      where n.conversation_id = place.id and n.kind = 'message'
                        and search_matches(coalesce(n.search_text, n.body ->> 'content'), @patterns::text[], (@words::text)::tsquery)))
            offset 0) c on true
        limit 1 + @row_limit::integer) listed
    window earlier as (order by listed.pinned desc, listed.updated_at desc, listed.id desc)) page
where page.position <= @row_limit::integer and page.bytes_before < @byte_limit::integer
order by page.position;

-- name: FindConversationsInShards :many
-- FindConversations on Citus, for the same reason. What the index finds is looked at
-- in each shard, and only a page of conversations leaves it.
select page.id, page.tenant_id, page.title, page.metadata, page.settings, page.head_id, page.created_at, page.updated_at,
       page.message_count, page.source_conversation_id, page.source_message_id, page.source_request, page.change_count, page.archived, page.pinned, page.tags, page.more::boolean as more
from (
    select listed.*, row_number() over earlier as position,
           coalesce(sum(octet_length(listed.metadata::text) + octet_length(listed.settings::text)) over (earlier rows between unbounded preceding and 1 preceding), 0) as bytes_before,
           lead(listed.id) over earlier is not null as more
    from (
        select c.* from conversations c
        where c.tenant_id = @tenant_id
          and c.archived = @archived and (@tag::text = '' or @tag = any (c.tags))
          and (c.pinned, c.updated_at, c.id) < (@before_pinned::boolean, @before_updated_at::timestamptz, @before_id::uuid)
          and (c.id = any (@known::uuid[]) or strpos(lower(c.title), lower(@query::text)) > 0
               or @by_index::boolean and exists (
                   select from nodes n
                   where n.conversation_id = c.id and n.kind = 'message'
                     and search_entries(n.search_key, coalesce(n.search_text, n.body ->> 'content')) @@ (@entries::text)::tsquery
                     and search_matches(coalesce(n.search_text, n.body ->> 'content'), @patterns::text[], (@words::text)::tsquery))
               or @by_reading::boolean and exists (
                   select from nodes n
                   where n.conversation_id = c.id and n.kind = 'message'
                     and search_matches(coalesce(n.search_text, n.body ->> 'content'), @patterns::text[], (@words::text)::tsquery)))
        order by c.pinned desc, c.updated_at desc, c.id desc
        limit 1 + @row_limit::integer) listed
    window earlier as (order by listed.pinned desc, listed.updated_at desc, listed.id desc)) page
where page.position <= @row_limit::integer and page.bytes_before < @byte_limit::integer
order by page.position;

-- name: FindTitles :many
-- Conversations whose titles match, the one touched last first.
select * from conversations
where tenant_id = @tenant_id and search_matches(title, @patterns::text[], (@words::text)::tsquery)
order by updated_at desc, id desc
limit @row_limit;

-- name: MeasureHits :many
-- How many different words each message has, and which of the queries in @terms
-- it matches, in the order of @ids. Messages that are gone are left out.
select wanted.place::integer as place, measured.words, measured.found
from (select i as place, (@conversation_ids::uuid[])[i] as conversation_id, (@ids::uuid[])[i] as id from generate_subscripts(@ids::uuid[], 1) i) wanted
join lateral (
    select length(said.vector)::integer as words, array(select said.vector @@ (term.word)::tsquery from unnest(@terms::text[]) with ordinality term (word, place) order by term.place)::boolean[] as found
    from (
        select to_tsvector('simple', coalesce(n.search_text, n.body ->> 'content')) as vector from nodes n
        where n.conversation_id = wanted.conversation_id and n.id = wanted.id and n.kind = 'message' offset 0) said
    offset 0) measured on true
order by wanted.place;

-- name: MeasureHitsInShards :many
-- MeasureHits on Citus, which sends no subquery with an offset. A call of unnest
-- keeps a text's words in its place, so that they are taken apart once.
select wanted.place::integer as place, length(said.vector)::integer as words,
       array(select said.vector @@ (term.word)::tsquery from unnest(@terms::text[]) with ordinality term (word, place) order by term.place)::boolean[] as found
from (select i as place, (@conversation_ids::uuid[])[i] as conversation_id, (@ids::uuid[])[i] as id from generate_subscripts(@ids::uuid[], 1) i) wanted
join nodes n on n.conversation_id = wanted.conversation_id and n.id = wanted.id and n.kind = 'message'
cross join lateral unnest(array[to_tsvector('simple', coalesce(n.search_text, n.body ->> 'content'))]) said (vector)
order by wanted.place;

-- name: ListSizes :many
-- How many bytes messages of one conversation have in a page.
select n.conversation_id, n.id, (octet_length(n.body::text) + coalesce(octet_length(n.metadata::text), 0) + coalesce(octet_length(n.reasoning), 0))::integer as bytes
from conversations c
cross join unnest(@ids::uuid[]) wanted (id)
join lateral (select n.* from nodes n where n.conversation_id = @conversation_id and n.id = wanted.id offset 0) n on true
where c.id = @conversation_id and c.tenant_id = @tenant_id;

-- name: DescribeHits :many
-- Of one conversation. leaf_id is the newest leaf below a hit: the branch to open.
-- Finding it costs what lies below the hits.
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
), leaf as (
    select distinct on (reach.hit_id) reach.hit_id, ending.id
    from reach
    join ending on ending.hit_id = reach.lower_id
    order by reach.hit_id, ending.created_at desc, ending.id desc
)
select sqlc.embed(nodes), leaf.id as leaf_id, c.title,
       coalesce(case when nodes.parent_id is null
           then (select max(r.sibling_index) from nodes r where r.conversation_id = @conversation_id and r.parent_id is null)
           else (select max(s.sibling_index) from nodes s where s.conversation_id = @conversation_id and s.parent_id = nodes.parent_id)
       end, 0)::integer as sibling_count
from leaf
join conversations c on c.id = @conversation_id and c.tenant_id = @tenant_id
join lateral (select n.* from nodes n where n.conversation_id = @conversation_id and n.id = leaf.hit_id offset 0) nodes on true;

-- name: CountMessages :one
-- Of a tenant, in as many rows as it has conversations.
select coalesce(sum(message_count), 0)::bigint from conversations where tenant_id = @tenant_id;

-- A search has three steps, in a transaction that is rolled back, so that its
-- settings end with it: BeginSearch reads the query, SearchConversation or
-- SearchTenant finds a page of hits, and DescribeHits says what they are.

-- name: BeginSearch :one
-- The query as Postgres reads it, the part of it that an index can find, which
-- has no negations ('T' where a message that has none of its words may match),
-- and each word of that part with the entries under which the tenant's messages
-- may have it, one for every length of hash. Words are quoted as in the query.
--
-- With the settings of the transaction: its statements end in time; whatever the
-- tables hold, a plan doesn't read the rows of others; and what an index finds is
-- remembered by rows, as rows of others are read where pages are.
select q.words::text as words, querytree(q.words)::text as positive,
       coalesce(found.quoted, '{}')::text[] as quoted, coalesce(found.terms, '{}')::text[] as terms, coalesce(found.entries, '{}')::text[] as entries,
       set_config('statement_timeout', least(q.timeout_ms, nullif(extract(epoch from current_setting('statement_timeout')::interval) * 1000, 0))::integer::text, true)::text as statement_timeout,
       set_config('enable_seqscan', 'off', true)::text as enable_seqscan,
       set_config('work_mem', '64MB', true)::text as work_mem
from (select websearch_to_tsquery('simple', @query::text) as words, @tenant_key::text as tenant_key, @levels::integer as levels, @timeout_ms::integer as timeout_ms) q
cross join lateral (
    select array_agg(term.quoted) as quoted, array_agg(term.word) as terms,
           array_agg((select string_agg(quote_literal(search_entry(q.tenant_key || chr(97 + length), term.word)), ' | ') from generate_series(0, q.levels - 1) length)) as entries
    from (
        select distinct m[1] as quoted, replace(replace(m[1], '''''', ''''), repeat(chr(92), 2), chr(92)) as word
        from regexp_matches(querytree(q.words), '''((?:[^'']|'''')*)''', 'g') m) term) found;

-- name: SearchConversation :many
-- Newest first. The index finds messages that may match. Whether they do is
-- looked up from the newest on, only until the page is full, and their words are
-- only taken apart where one is found in their text.
with candidate as materialized (
    select n.conversation_id, n.id, n.created_at
    from nodes n
    where n.conversation_id = @conversation_id and n.kind = 'message'
      and search_entries(n.search_key, coalesce(n.search_text, n.body ->> 'content')) @@ (@entries::text)::tsquery
      and (n.created_at, n.id) < (@before_created_at::timestamptz, @before_id::uuid)
)
select candidate.conversation_id, candidate.id
from (select * from candidate order by candidate.created_at desc, candidate.id desc) candidate
join lateral (
    select from (
        select coalesce(n.search_text, n.body ->> 'content') as text from nodes n
        where n.conversation_id = @conversation_id and n.id = candidate.id offset 0) said
    cross join lateral (select (ts_lexize('simple', said.text))[1] as text offset 0) lower
    where case when exists (select from unnest(@terms::text[]) term where strpos(lower.text, term) > 0)
        then to_tsvector('simple', said.text) @@ (@words::text)::tsquery end
    offset 0) match on true
limit @row_limit;

-- name: SearchTenant :many
-- The same across conversations, so this is the one query of nodes that Citus
-- sends to every shard. The tenant is compared as well as its key: a key is a
-- hash.
with candidate as materialized (
    select n.conversation_id, n.id, n.created_at
    from nodes n
    where n.kind = 'message'
      and search_entries(n.search_key, coalesce(n.search_text, n.body ->> 'content')) @@ (@entries::text)::tsquery
      and (n.created_at, n.id) < (@before_created_at::timestamptz, @before_id::uuid)
)
select candidate.conversation_id, candidate.id
from (select * from candidate order by candidate.created_at desc, candidate.id desc) candidate
join lateral (
    select from (
        select coalesce(n.search_text, n.body ->> 'content') as text from conversations c
        join nodes n on n.conversation_id = c.id and n.id = candidate.id
        where c.id = candidate.conversation_id and c.tenant_id = @tenant_id offset 0) said
    cross join lateral (select (ts_lexize('simple', said.text))[1] as text offset 0) lower
    where case when exists (select from unnest(@terms::text[]) term where strpos(lower.text, term) > 0)
        then to_tsvector('simple', said.text) @@ (@words::text)::tsquery end
    offset 0) match on true
limit @row_limit;

-- name: FindConversations :many
-- ListConversations, of those whose title contains the words, case aside, or a
-- message of which matches them. Both are looked at from the one touched last
-- on, until the page is full; what the index finds of each, one after the other.
with candidate as materialized (
    select n.conversation_id, array_agg(n.id) as ids
    from nodes n
    where n.kind = 'message'
      and search_entries(n.search_key, coalesce(n.search_text, n.body ->> 'content')) @@ (@entries::text)::tsquery
    group by n.conversation_id
), place as materialized (
    select c.id, candidate.ids, strpos(lower(c.title), lower(@query::text)) > 0 as titled
    from conversations c
    left join candidate on candidate.conversation_id = c.id
    where c.tenant_id = @tenant_id
      and (c.updated_at, c.id) < (@before_updated_at::timestamptz, @before_id::uuid)
      and (candidate.ids is not null or strpos(lower(c.title), lower(@query::text)) > 0)
    order by c.updated_at desc, c.id desc
)
select c.* from place
join lateral (
    select c.* from conversations c
    where c.id = place.id
      and (place.titled or exists (
          select from unnest(place.ids) candidate_id
          join lateral (
              select from (
                  select coalesce(n.search_text, n.body ->> 'content') as text from nodes n
                  where n.conversation_id = place.id and n.id = candidate_id offset 0) said
              cross join lateral (select (ts_lexize('simple', said.text))[1] as text offset 0) lower
              where case when exists (select from unnest(@terms::text[]) term where strpos(lower.text, term) > 0)
                  then to_tsvector('simple', said.text) @@ (@words::text)::tsquery end
              offset 0) match on true))
    offset 0) c on true
limit @row_limit;

-- name: DescribeHits :many
-- leaf_id is the newest leaf below a hit: the branch to open. Finding it costs
-- what lies below the hits.
with recursive hit as (
    select n.conversation_id, n.id, n.created_at
    from (select (@conversation_ids::uuid[])[i] as conversation_id, (@ids::uuid[])[i] as id from generate_subscripts(@ids::uuid[], 1) i) wanted
    join lateral (select n.* from nodes n where n.conversation_id = wanted.conversation_id and n.id = wanted.id and n.kind = 'message' offset 0) n on true
), below as (
    -- What lies below each hit, down to the next hit: no message is walked twice.
    select hit.conversation_id, hit.id as hit_id, hit.id, hit.created_at
    from hit
    union all
    select below.conversation_id, below.hit_id, child.id, child.created_at
    from below
    join lateral (select child.* from nodes child where child.conversation_id = below.conversation_id and child.parent_id = below.id and child.sibling_index is not null offset 0) child on true
    where below.id = below.hit_id or (below.conversation_id, below.id) not in (select h.conversation_id, h.id from hit h)
), link as materialized (
    select below.conversation_id, below.hit_id, below.id as lower_id
    from below
    join hit on hit.conversation_id = below.conversation_id and hit.id = below.id
    where below.id <> below.hit_id
), reach as (
    -- A hit, and the hits below it.
    select hit.conversation_id, hit.id as hit_id, hit.id as lower_id
    from hit
    union
    select reach.conversation_id, reach.hit_id, link.lower_id
    from reach
    join link on link.conversation_id = reach.conversation_id and link.hit_id = reach.lower_id
), ending as materialized (
    select below.conversation_id, below.hit_id, below.id, below.created_at
    from below
    left join lateral (
        select child.id from nodes child
        where child.conversation_id = below.conversation_id and child.parent_id = below.id and child.sibling_index is not null
        limit 1) child on true
    where child.id is null
), leaf as (
    select distinct on (reach.conversation_id, reach.hit_id) reach.conversation_id, reach.hit_id, ending.id
    from reach
    join ending on ending.conversation_id = reach.conversation_id and ending.hit_id = reach.lower_id
    order by reach.conversation_id, reach.hit_id, ending.created_at desc, ending.id desc
)
select sqlc.embed(nodes), leaf.id as leaf_id, c.title,
       coalesce(case when nodes.parent_id is null
           then (select max(r.sibling_index) from nodes r where r.conversation_id = nodes.conversation_id and r.parent_id is null)
           else (select max(s.sibling_index) from nodes s where s.conversation_id = nodes.conversation_id and s.parent_id = nodes.parent_id)
       end, 0)::integer as sibling_count
from leaf
join conversations c on c.id = leaf.conversation_id and c.tenant_id = @tenant_id
join lateral (select n.* from nodes n where n.conversation_id = leaf.conversation_id and n.id = leaf.hit_id offset 0) nodes on true
order by nodes.created_at desc, nodes.id desc;

-- name: CountMessages :one
-- Of a tenant, in as many rows as it has conversations.
select coalesce(sum(message_count), 0)::bigint from conversations where tenant_id = @tenant_id;

-- The two searches differ in one line. They are two because a plan for one
-- conversation and a plan for a tenant's all have little in common.

-- name: SearchConversation :many
-- Newest first. leaf_id is the newest leaf below a hit: the branch to open.
-- Finding it costs what lies below the hits.
with recursive hit as (
    select n.conversation_id, n.id, n.created_at
    from conversations c
    join nodes n on n.conversation_id = @conversation_id and n.kind = 'message'
    where c.id = @conversation_id and c.tenant_id = @tenant_id
      and to_tsvector('simple', coalesce(n.search_text, n.body ->> 'content')) @@ websearch_to_tsquery('simple', @query::text)
      and (n.created_at, n.id) < (@before_created_at::timestamptz, @before_id::uuid)
    order by n.created_at desc, n.id desc
    limit @row_limit
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
       end, 0)::integer as sibling_count,
       ts_headline('simple', coalesce(nodes.search_text, nodes.body ->> 'content'), websearch_to_tsquery('simple', @query::text),
                   'StartSel="", StopSel="", MinWords=12, MaxWords=32')::text as snippet
from leaf
join conversations c on c.id = leaf.conversation_id
join lateral (select n.* from nodes n where n.conversation_id = leaf.conversation_id and n.id = leaf.hit_id offset 0) nodes on true
order by nodes.created_at desc, nodes.id desc;

-- name: SearchTenant :many
-- Across conversations, so this is the one query of nodes that Citus sends to
-- every shard.
with recursive hit as (
    select n.conversation_id, n.id, n.created_at
    from conversations c
    join nodes n on n.conversation_id = c.id and n.kind = 'message'
    where c.tenant_id = @tenant_id
      and to_tsvector('simple', coalesce(n.search_text, n.body ->> 'content')) @@ websearch_to_tsquery('simple', @query::text)
      and (n.created_at, n.id) < (@before_created_at::timestamptz, @before_id::uuid)
    order by n.created_at desc, n.id desc
    limit @row_limit
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
       end, 0)::integer as sibling_count,
       ts_headline('simple', coalesce(nodes.search_text, nodes.body ->> 'content'), websearch_to_tsquery('simple', @query::text),
                   'StartSel="", StopSel="", MinWords=12, MaxWords=32')::text as snippet
from leaf
join conversations c on c.id = leaf.conversation_id
join lateral (select n.* from nodes n where n.conversation_id = leaf.conversation_id and n.id = leaf.hit_id offset 0) nodes on true
order by nodes.created_at desc, nodes.id desc;

-- +goose Up

-- Every entry of the search index begins with its tenant's key, so that a
-- search reads no entry of another tenant. The table is written anew once, with
-- the keys in place, rather than row by row, which would leave it twice as large.
-- It is locked meanwhile. Whoever holds it is not waited for without end, as
-- everybody else would wait behind.
set local lock_timeout = '30s';
set local maintenance_work_mem = '256MB';

-- An entry of the index: the key of nodes.search_key, and of a word's hash as
-- many bits as the key's last letter says, two for each letter after a.
create function search_entry(key text, word text) returns text
    language sql immutable strict parallel safe
    return key || to_hex((hashtext(word) & 16777215) >> (24 - 2 * (ascii(right(key, 1)) - 97)));

-- The entries of a text's words, of the first 65536 if it has more: Postgres
-- doesn't check here that they stay below 1 MiB.
create function search_entries(key text, said text) returns tsvector
    language sql immutable strict parallel safe cost 10000
    return array_to_tsvector(array(
        select search_entry(key, word) from unnest(tsvector_to_array(to_tsvector('simple', said))) word limit 65536));

drop index nodes_search;
alter table nodes add column search_key text;

-- The hash is as long as what the tenant has said is worth.
create temporary table search_keys on commit drop as
    select c.id, left(encode(sha256(convert_to(c.tenant_id, 'UTF8')), 'base64'), 8)
           || chr(97 + least(12, floor(log(4, greatest(1, floor(sum(said.bytes) over (partition by c.tenant_id) / 700))))::integer)) as key
    from conversations c
    left join (
        select n.conversation_id, sum(octet_length(coalesce(n.search_text, n.body ->> 'content', ''))) as bytes
        from nodes n where n.kind = 'message' group by n.conversation_id) said on said.conversation_id = c.id;
alter table search_keys add primary key (id);
analyze search_keys;

create function pg_temp.search_key(conversation uuid) returns text
    language sql stable
    as $$ select k.key from pg_temp.search_keys k where k.id = conversation $$;

alter table nodes alter column search_key type text
    using case when kind = 'message' then pg_temp.search_key(conversation_id) end;
drop function pg_temp.search_key;

alter table nodes drop constraint nodes_message;
alter table nodes add constraint nodes_message check (kind <> 'message' or
    (sibling_index is not null and search_key is not null and last_summarized_id is null and prior_summary_id is null and kept_ids is null and model is null));

create index nodes_search on nodes using gin (search_entries(search_key, coalesce(search_text, body ->> 'content')))
    with (fastupdate = off) where kind = 'message';

-- +goose Down

alter table nodes drop constraint nodes_message;
drop index nodes_search;
alter table nodes drop column search_key;
alter table nodes add constraint nodes_message check (kind <> 'message' or
    (sibling_index is not null and last_summarized_id is null and prior_summary_id is null and kept_ids is null and model is null));
drop function search_entries;
drop function search_entry;
create index nodes_search on nodes using gin (to_tsvector('simple', coalesce(search_text, body ->> 'content')))
    with (gin_pending_list_limit = 512) where kind = 'message';

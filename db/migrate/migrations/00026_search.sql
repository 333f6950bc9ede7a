-- +goose Up
set local lock_timeout = '2s';

-- The index of words is made after the append, in two tables of its own. schema.sql
-- says what each column is for. The server indexes what is stored already in the
-- background, and searches tell what isn't indexed yet.
--
-- Programs of earlier versions write the columns that go, so they must be stopped.

update installation set oldest_program = 26;

drop index nodes_search, nodes_recent;

alter table nodes
    drop constraint nodes_message,
    drop column search_text,
    drop column search_key,
    add constraint nodes_message check (kind <> 'message' or
        (sibling_index is not null and last_summarized_id is null and prior_summary_id is null and kept_ids is null and model is null));

drop function search_matches(text, text[], tsquery);
drop function search_entries(text, text);
drop function search_entry(text, text);

create table search_chunks (
    conversation_id uuid        not null references conversations (id) on delete cascade,
    number          integer     not null,
    tenant_id       text        not null,
    messages        uuid[]      not null,
    newest_at       timestamptz not null,
    data            bytea,
    segment         uuid,
    place           smallint,

    primary key (conversation_id, number),
    constraint search_chunks_place check ((segment is null) = (place is null) and (segment is null or data is not null))
);

alter table search_chunks alter column data set storage external;

create index search_chunks_loose on search_chunks (tenant_id, conversation_id) where segment is null;

create index search_chunks_placed on search_chunks (segment, place) where segment is not null;

create table search_segments (
    tenant_id text        not null,
    bucket    smallint    not null,
    segment   uuid        not null,
    newest_at timestamptz not null,
    data      bytea       not null,

    primary key (tenant_id, bucket, segment)
);

alter table search_segments alter column data set storage external;

-- Conversations of the time before there was a feed have no change by which a
-- follower is behind in them.
update conversations set change_count = 1 where change_count = 0;

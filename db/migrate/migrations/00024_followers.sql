-- +goose Up
set local lock_timeout = '2s';

-- Places of followers in the feed of changes. schema.sql says what each column is
-- for. Servers of version 23 write changes too, so what they append is followed.

create table follower_places (
    conversation_id uuid   not null,
    follower        text   not null,
    sequence        bigint not null,

    primary key (conversation_id, follower)
);

create table followers (
    name         text        primary key,
    server_id    text        not null,
    leads_until  timestamptz not null,
    scanned_id   uuid
);

-- A compaction makes a summary of the digest again by itself now, and followers look
-- for what was missed. The table is River's, which is made later than the first of
-- these. Without unique_key a job may stand beside another one of its conversation.
-- +goose StatementBegin
do $$
begin
    if to_regclass('river_job') is not null then
        update river_job set kind = 'compaction', queue = 'default', unique_key = null
        where kind = 'resummarizing' and state in ('available', 'pending', 'scheduled', 'retryable');
        delete from river_job where kind in ('embedding_sweep', 'due_sweep') and state <> 'running';
    end if;
end $$;
-- +goose StatementEnd

-- +goose Up
set local lock_timeout = '2s';

-- Places of followers in the feed of changes. schema.sql says what each column is
-- for. Servers of version 23 write changes too, so what they append is followed.

create table follower_places (
    conversation_id uuid   not null references conversations (id) on delete cascade,
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

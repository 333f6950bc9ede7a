-- +goose Up
set local lock_timeout = '2s';

-- Who did what.

create table audit_events (
    tenant_id       text        not null,
    id              uuid        not null,
    at              timestamptz not null,
    action          text        not null,
    conversation_id uuid,
    subject_id      uuid,
    detail          text        not null,
    key_id          uuid,
    user_id         text        not null,
    address         text        not null,
    request_id      text        not null,

    primary key (tenant_id, id)
);

-- +goose Up
set local lock_timeout = '2s';

-- Who did what, what tenants may use in a day, and what they used.

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

create table tenant_limits (
    tenant_id         text    primary key,
    requests_per_day  bigint,
    messages_per_day  bigint,
    bytes_per_day     bigint,
    cost_per_day      double precision
);

create table tenant_days (
    tenant_id text             not null,
    day       date             not null,
    requests  bigint           not null,
    messages  bigint           not null,
    bytes     bigint           not null,
    cost      double precision not null,

    primary key (tenant_id, day)
);

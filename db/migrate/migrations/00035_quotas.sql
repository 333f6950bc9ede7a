-- +goose Up
set local lock_timeout = '2s';

-- What tenants use in a day, and how much they may.

create table tenant_days (
    tenant_id text             not null,
    day       date             not null,
    requests  bigint           not null,
    messages  bigint           not null,
    bytes     bigint           not null,
    cost      double precision not null,

    primary key (tenant_id, day)
);

create table tenant_limits (
    tenant_id text             primary key,
    requests  bigint           not null,
    messages  bigint           not null,
    bytes     bigint           not null,
    cost      double precision not null
);

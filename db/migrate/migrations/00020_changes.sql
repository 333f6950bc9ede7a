-- +goose Up

-- What changed, for streams of events. The default serves servers of the version
-- before, which don't count what they change: their changes are not told.
alter table conversations add column change_count bigint not null default 0;

create table changes (
    conversation_id uuid        not null,
    sequence        bigint      not null,
    tenant_id       text        not null,
    kind            text        not null,
    message_id      uuid,
    parent_id       uuid,
    head_id         uuid,
    messages        integer     not null,
    at              timestamptz not null,

    primary key (conversation_id, sequence)
);
create index changes_recent on changes (tenant_id, at);

-- +goose Down

drop table changes;
alter table conversations drop column change_count;

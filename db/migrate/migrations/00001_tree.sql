-- +goose Up

create table conversations (
    id         uuid        primary key,
    tenant_id  text        not null,
    title      text        not null,
    metadata   json        not null,
    settings   json        not null,
    head_id    uuid,
    created_at timestamptz not null,
    updated_at timestamptz not null
);

create index conversations_recent on conversations (tenant_id, updated_at desc, id desc);

create table nodes (
    conversation_id uuid        not null references conversations (id) on delete cascade,
    id              uuid        not null,
    parent_id       uuid,
    kind            text        not null,
    role            text        not null,
    sibling_index   integer,
    depth           integer     not null,
    tokens          integer     not null,
    path_tokens     bigint      not null,
    prefix_id       uuid,
    pinned          boolean     not null,
    created_at      timestamptz not null,
    body            json        not null,
    search_text     text,
    metadata        json,
    last_summarized_id uuid,
    prior_summary_id   uuid,
    kept_ids           uuid[],
    model              text,

    primary key (conversation_id, id),
    constraint nodes_parent foreign key (conversation_id, parent_id) references nodes (conversation_id, id),
    constraint nodes_cutoff foreign key (conversation_id, last_summarized_id) references nodes (conversation_id, id),
    constraint nodes_siblings unique (conversation_id, parent_id, sibling_index),
    constraint nodes_kind check (kind in ('message', 'summary')),
    constraint nodes_role check (role in ('system', 'developer', 'user', 'assistant', 'tool')),
    constraint nodes_message check (kind <> 'message' or
        (sibling_index is not null and last_summarized_id is null and prior_summary_id is null and kept_ids is null and model is null)),
    constraint nodes_summary check (kind <> 'summary' or
        (sibling_index is null and parent_id is not null and last_summarized_id is not null and kept_ids is not null and model is not null
         and not pinned and role = 'user'))
);

create unique index nodes_roots on nodes (conversation_id, sibling_index) where parent_id is null;

create index nodes_cutoffs on nodes (conversation_id, last_summarized_id) where last_summarized_id is not null;

create index nodes_search on nodes using gin (to_tsvector('simple', coalesce(search_text, body ->> 'content')))
    where kind = 'message';

create table api_keys (
    id           uuid        primary key,
    tenant_id    text        not null,
    name         text        not null,
    key_hash     bytea       not null unique,
    created_at   timestamptz not null,
    last_used_at timestamptz,
    revoked_at   timestamptz
);

-- +goose Down
drop table api_keys;
drop table nodes;
drop table conversations;

-- +goose Up
set local lock_timeout = '2s';

-- The whole schema. schema.sql says what each table, column and index is for.
-- The number is that of the last of the 22 steps that made the same schema before.

create table conversations (
    id         uuid        primary key,
    tenant_id  text        not null,
    title      text        not null,
    metadata   json        not null,
    settings   json        not null,
    head_id    uuid,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    message_count integer  not null default 0,
    source_conversation_id uuid,
    source_message_id      uuid,
    source_request         bytea,
    change_count bigint    not null default 0,
    archived boolean not null default false,
    pinned   boolean not null default false,
    tags     text[]  not null default '{}',

    constraint conversations_source check (num_nulls(source_conversation_id, source_message_id, source_request) in (0, 3))
);

create index conversations_listed on conversations (tenant_id, archived, pinned desc, updated_at desc, id desc);

create index conversations_tagged on conversations (tenant_id) where tags <> '{}';

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
    origin             json,
    search_key         text,
    path_hash          bytea,
    reasoning          text,

    primary key (conversation_id, id),
    constraint nodes_parent foreign key (conversation_id, parent_id) references nodes (conversation_id, id),
    constraint nodes_cutoff foreign key (conversation_id, last_summarized_id) references nodes (conversation_id, id),
    constraint nodes_kind check (kind in ('message', 'summary')),
    constraint nodes_role check (role in ('system', 'developer', 'user', 'assistant', 'tool')),
    constraint nodes_message check (kind <> 'message' or
        (sibling_index is not null and search_key is not null and last_summarized_id is null and prior_summary_id is null and kept_ids is null and model is null)),
    constraint nodes_summary check (kind <> 'summary' or
        (sibling_index is null and parent_id is not null and last_summarized_id is not null and kept_ids is not null and model is not null
         and not pinned and role = 'user')),
    constraint nodes_origin check (origin is null or kind = 'summary'),
    constraint nodes_path_hash check (path_hash is null or kind = 'message'),
    constraint nodes_reasoning check (reasoning is null or kind = 'message' and role = 'assistant')
);

create unique index nodes_siblings on nodes (conversation_id, parent_id, sibling_index) where parent_id is not null;

create unique index nodes_roots on nodes (conversation_id, sibling_index) where parent_id is null;

create index nodes_paths on nodes (conversation_id, substring(path_hash for 7)) where path_hash is not null;

create index nodes_cutoffs on nodes (conversation_id, last_summarized_id) where last_summarized_id is not null;

create function search_entry(key text, word text) returns text
    language sql immutable strict parallel safe
    return key || to_hex((hashtext(word) & 16777215) >> (24 - 2 * (ascii(right(key, 1)) - 97)));

create function search_entries(key text, said text) returns tsvector
    language sql immutable strict parallel safe cost 10000
    return array_to_tsvector(array(
        select search_entry(key, word) from unnest(tsvector_to_array(to_tsvector('simple', said))) word limit 65536));

create index nodes_search on nodes using gin (search_entries(search_key, coalesce(search_text, body ->> 'content')))
    with (fastupdate = off) where kind = 'message';

create index nodes_recent on nodes (hashtextextended(left(search_key, 8), 0), created_at);

create function search_matches(said text, patterns text[], words tsquery) returns boolean
    language sql immutable parallel safe
    return case when (ts_lexize('simple', said))[1] like any (patterns) then to_tsvector('simple', said) @@ words else false end;

create table compactions (
    conversation_id   uuid        not null references conversations (id) on delete cascade,
    id                uuid        not null,
    head_id           uuid        not null,
    anchor_id         uuid,
    cutoff_id         uuid,
    summary_id        uuid,
    prior_summary_id  uuid,
    trigger           text        not null,
    outcome           text        not null,
    reason            text        not null,
    model             text        not null,
    instructions      text        not null,
    settings          json        not null,
    attempts          json        not null,
    messages_before   integer     not null,
    messages_after    integer     not null,
    tokens_before     bigint      not null,
    tokens_after      bigint      not null,
    folded_messages   integer     not null,
    folded_tokens     bigint      not null,
    prompt_tokens     bigint      not null,
    completion_tokens bigint      not null,
    duration_ms       bigint      not null,
    created_at        timestamptz not null,
    remade_id         uuid,

    primary key (conversation_id, id),
    constraint compactions_trigger check (trigger in ('append', 'reply', 'request', 'healing')),
    constraint compactions_outcome check (outcome in ('saved', 'nothing_to_do', 'no_gain', 'superseded', 'stale', 'failed'))
);

create index compactions_recent on compactions (conversation_id, created_at desc, id desc);

create table reply_checkpoints (
    conversation_id uuid        not null references conversations (id) on delete cascade,
    message_id      uuid        not null,
    parent_id       uuid        not null,
    move_head_from  uuid,
    server_id       text        not null,
    model           text        not null,
    content         text        not null,
    refusal         text        not null,
    saved_at        timestamptz not null,
    reasoning       text        not null default '',
    marks           bytea       not null default '',
    started         json,

    primary key (conversation_id, message_id)
);

create table reply_states (
    conversation_id uuid        not null references conversations (id) on delete cascade,
    message_id      uuid        not null,
    state           text        not null,
    metadata        json        not null,
    at              timestamptz not null,

    primary key (conversation_id, message_id),
    constraint reply_states_state check (state in ('running', 'stopping', 'ended', 'deleted'))
);

create index reply_states_ended on reply_states (at) where state = 'ended';

create table embeddings (
    conversation_id uuid   not null,
    message_id      uuid   not null,
    model           text   not null,
    tenant_key      text   not null,
    stamp           bigint not null,
    vector          bytea,

    primary key (conversation_id, message_id),
    constraint embeddings_message foreign key (conversation_id, message_id) references nodes (conversation_id, id) on delete cascade
);

create index embeddings_new on embeddings (conversation_id, model, stamp);

create index embeddings_recent on embeddings (tenant_key, model, stamp) where vector is not null;

create function embedding_values(vector bytea) returns real[]
    language sql immutable strict parallel safe
    return array(select (get_byte(vector, i) - 128)::real from generate_series(0, octet_length(vector) - 1) i);

create table shares (
    conversation_id uuid        not null references conversations (id) on delete cascade,
    id              uuid        not null,
    head_id         uuid        not null,
    secret_hash     bytea       not null,
    summaries       boolean     not null,
    created_at      timestamptz not null,
    expires_at      timestamptz,

    primary key (conversation_id, id),
    constraint shares_head foreign key (conversation_id, head_id) references nodes (conversation_id, id) on delete cascade
);

create index shares_by_head on shares (conversation_id, head_id);

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

create table attachments (
    tenant_id   text        not null,
    hash        bytea       not null,
    media_type  text        not null,
    name        text        not null,
    size        integer     not null,
    width       integer     not null,
    height      integer     not null,
    tokens      integer     not null,
    said        text        not null,
    bytes       bytea       not null,
    uploaded_at timestamptz not null,

    primary key (tenant_id, hash)
);

alter table attachments alter column bytes set storage external;

create table attachment_uses (
    conversation_id uuid  not null,
    message_id      uuid  not null,
    hash            bytea not null,
    tenant_id       text  not null,

    primary key (conversation_id, message_id, hash),
    constraint attachment_uses_message foreign key (conversation_id, message_id) references nodes (conversation_id, id) on delete cascade
);

create index attachment_uses_hash on attachment_uses (tenant_id, hash);

create table api_keys (
    id           uuid        primary key,
    tenant_id    text        not null,
    name         text        not null,
    key_hash     bytea       not null unique,
    created_at   timestamptz not null,
    last_used_at timestamptz,
    revoked_at   timestamptz
);

create table installation (
    only_row boolean not null default true primary key check (only_row),
    secret   bytea   not null,
    oldest_program integer not null default 14,
    settings jsonb   not null default '{}'
);

-- gen_random_uuid draws on Postgres' strong random source, and gives 122 bits of
-- it. Three of them, hashed, are a secret of 256 bits without an extension.
insert into installation (secret)
select sha256(convert_to(concat(gen_random_uuid(), gen_random_uuid(), gen_random_uuid()), 'UTF8'));

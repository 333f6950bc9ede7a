-- +goose Up

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

    primary key (conversation_id, id),
    constraint compactions_trigger check (trigger in ('append', 'reply', 'request')),
    constraint compactions_outcome check (outcome in ('saved', 'nothing_to_do', 'no_gain', 'superseded', 'stale', 'failed'))
);

create index compactions_recent on compactions (conversation_id, created_at desc, id desc);

-- +goose Down

drop table compactions;

-- +goose Up

-- What came of answers that are still streaming, so that a killed server's are
-- not lost. The table is logged: a crash of Postgres would empty an unlogged one.
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

    primary key (conversation_id, message_id)
);

-- +goose Down

drop table reply_checkpoints;

-- +goose Up

-- gen_random_uuid draws on Postgres' strong random source, and gives 122 bits of
-- it. Three of them, hashed, are a secret of 256 bits without an extension.
create table installation (
    only_row boolean not null default true primary key check (only_row),
    secret   bytea   not null
);
insert into installation (secret)
select sha256(convert_to(concat(gen_random_uuid(), gen_random_uuid(), gen_random_uuid()), 'UTF8'));

alter table conversations
    add column source_conversation_id uuid,
    add column source_message_id uuid,
    add column source_request bytea,
    add constraint conversations_source check (num_nulls(source_conversation_id, source_message_id, source_request) in (0, 3));

-- +goose Down

alter table conversations
    drop constraint conversations_source,
    drop column source_conversation_id,
    drop column source_message_id,
    drop column source_request;
drop table installation;

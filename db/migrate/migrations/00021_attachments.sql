-- +goose Up

-- Pictures and files that messages name, each once in a tenant, by its content.
-- On Citus it is distributed by tenant_id.
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

-- Compression would cost time and save nothing: pictures and PDFs are compressed.
alter table attachments alter column bytes set storage external;

-- Which messages name which attachments. It may name one that isn't there,
-- because a file of an import can lack it.
create table attachment_uses (
    conversation_id uuid  not null,
    message_id      uuid  not null,
    hash            bytea not null,
    tenant_id       text  not null,

    primary key (conversation_id, message_id, hash),
    constraint attachment_uses_message foreign key (conversation_id, message_id) references nodes (conversation_id, id) on delete cascade
);

-- Whether a message names an attachment still.
create index attachment_uses_hash on attachment_uses (tenant_id, hash);

-- +goose Down

drop table attachment_uses;
drop table attachments;

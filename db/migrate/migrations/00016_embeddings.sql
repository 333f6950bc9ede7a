-- +goose Up

-- What of a message's meaning a model of the operator's has put into numbers,
-- for recall. Empty where no such model is configured. An append adds nothing
-- here: a background job does.
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

-- A conversation's vectors from a stamp on; also to count them.
create index embeddings_new on embeddings (conversation_id, model, stamp);

-- A tenant's newest vectors, of all its conversations.
create index embeddings_recent on embeddings (tenant_key, model, stamp) where vector is not null;

-- The numbers of a vector, which pgvector's types can be made of. Where that
-- extension is there and a tenant has many vectors, the program makes an index
-- of them, for that tenant alone.
create function embedding_values(vector bytea) returns real[]
    language sql immutable strict parallel safe
    return array(select (get_byte(vector, i) - 128)::real from generate_series(0, octet_length(vector) - 1) i);

-- +goose Down

drop function embedding_values(bytea);
drop table embeddings;

-- +goose Up
set local lock_timeout = '2s';

-- What readers say of messages. It is apart from nodes, so that an append stays what it
-- is, and a message that is rated keeps its row's version, and with it its vector.

create table annotations (
    conversation_id uuid     not null,
    message_id      uuid     not null,
    rating          smallint not null,
    label           text     not null,
    note            text     not null,

    primary key (conversation_id, message_id),
    constraint annotations_message foreign key (conversation_id, message_id) references nodes (conversation_id, id) on delete cascade,
    constraint annotations_rating check (rating in (-1, 0, 1))
);

-- On a distributed database: a row's foreign key is checked where the row is.
-- +goose StatementBegin
do $$
begin
    if to_regclass('pg_dist_partition') is not null then
        if exists (select from pg_dist_partition where logicalrelid = 'conversations'::regclass) then
            perform create_distributed_table('annotations', 'conversation_id', colocate_with => 'conversations');
        end if;
    end if;
end $$;
-- +goose StatementEnd

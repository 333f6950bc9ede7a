-- +goose Up
set local lock_timeout = '2s';

-- A reply is a row of replies and a log of events. What older programs saved of
-- answers that were streaming becomes such a row, with all of its text as one event:
-- a server takes it, as it takes one of a server that was killed.

create table replies (
    conversation_id uuid        not null references conversations (id) on delete cascade,
    message_id      uuid        not null,
    parent_id       uuid,
    move_head_from  uuid,
    server_id       text        not null,
    model           text        not null,
    state           text        not null,
    metadata        json        not null,
    alive_at        timestamptz not null,
    end_event       integer,

    primary key (conversation_id, message_id),
    constraint replies_state check (state in ('running', 'stopping', 'stored', 'ended', 'deleted'))
);

create index replies_by_state on replies (state);

create table reply_events (
    conversation_id uuid    not null,
    message_id      uuid    not null,
    sequence        integer not null,
    payload         json    not null,

    primary key (conversation_id, message_id, sequence),
    constraint reply_events_reply foreign key (conversation_id, message_id) references replies (conversation_id, message_id) on delete cascade
);

-- On a distributed database: a row's foreign key is checked where the row is.
-- +goose StatementBegin
do $$
begin
    if to_regclass('pg_dist_partition') is not null then
        if exists (select from pg_dist_partition where logicalrelid = 'conversations'::regclass) then
            perform create_distributed_table('replies', 'conversation_id', colocate_with => 'conversations');
            perform create_distributed_table('reply_events', 'conversation_id', colocate_with => 'conversations');
        end if;
    end if;
end $$;
-- +goose StatementEnd

insert into replies (conversation_id, message_id, parent_id, move_head_from, server_id, model, state, metadata, alive_at)
select c.conversation_id, c.message_id, c.parent_id, c.move_head_from, c.server_id, c.model, 'running', coalesce(s.metadata, '{}'), c.saved_at
from reply_checkpoints c
left join reply_states s on s.conversation_id = c.conversation_id and s.message_id = c.message_id
where coalesce(s.state, 'running') in ('running', 'stopping');

insert into reply_events (conversation_id, message_id, sequence, payload)
select c.conversation_id, c.message_id, 2,
       json_build_array(json_build_object('id', 2, 'reasoning', c.reasoning, 'content', c.content, 'refusal', c.refusal,
                                          'message_id', c.started ->> 'step_id', 'steps', c.started -> 'steps'))
from reply_checkpoints c
join replies r on r.conversation_id = c.conversation_id and r.message_id = c.message_id;

insert into replies (conversation_id, message_id, parent_id, server_id, model, state, metadata, alive_at)
select s.conversation_id, s.message_id, n.parent_id, '', '', s.state, s.metadata, s.at
from reply_states s
left join nodes n on n.conversation_id = s.conversation_id and n.id = s.message_id
where s.state = 'ended' or s.state = 'deleted' and n.id is not null
on conflict do nothing;

drop table reply_checkpoints;
drop table reply_states;

update installation set oldest_program = 25;

-- +goose Up

-- What is to be told of a reply beside its answer: that it runs in the
-- background, that it ended with nothing to store, or that its response was
-- deleted while other branches go on from its answer.
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

-- +goose Down

drop table reply_states;

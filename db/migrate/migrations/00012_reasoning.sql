-- +goose Up

-- What a model thought before it answered stands beside the answer's body: the
-- body goes to models as it is, and reasoning doesn't.
alter table nodes add column reasoning text;

-- Checked in a step of its own, which reads the table while others write.
alter table nodes add constraint nodes_reasoning check (reasoning is null or kind = 'message' and role = 'assistant') not valid;
alter table nodes validate constraint nodes_reasoning;

-- Of an answer that is still streaming. The default serves servers of the version
-- before, which save checkpoints without it.
alter table reply_checkpoints add column reasoning text not null default '';

-- +goose Down

alter table reply_checkpoints drop column reasoning;
alter table nodes drop column reasoning;

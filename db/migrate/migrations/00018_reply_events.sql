-- +goose Up

-- Any server gives the events of a reply with the ids that the server has which
-- runs it. The defaults serve servers of the version before, which save without
-- these columns: of their replies, others give the end alone.
alter table reply_checkpoints add column marks bytea not null default '';
alter table reply_checkpoints add column started json;

-- While versions change, an older program goes on beside a newer one. Each step of
-- the schema that an older program can't work with sets this to its own number.
alter table installation add column oldest_program integer not null default 14;

-- +goose Down

alter table installation drop column oldest_program;
alter table reply_checkpoints drop column started;
alter table reply_checkpoints drop column marks;

-- +goose Up

-- Where text of a summary came in from outside: what a model wrote elsewhere is
-- believed as it stands, so it is marked wherever it is shown. Of the summaries
-- that are there, nobody knows.
alter table nodes add column origin json;

-- Checked in a step of its own, which reads the table while others write.
alter table nodes add constraint nodes_origin check (origin is null or kind = 'summary') not valid;
alter table nodes validate constraint nodes_origin;

-- +goose Down

alter table nodes drop column origin;

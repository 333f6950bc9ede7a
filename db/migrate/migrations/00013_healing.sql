-- +goose Up

-- A summary that is to be made again lands beside the one that it takes the place
-- of, and its record names that one.
alter table compactions add column remade_id uuid;

-- What the server does by itself for a summary that the offline digest made.
alter table compactions drop constraint compactions_trigger;
alter table compactions add constraint compactions_trigger check (trigger in ('append', 'reply', 'request', 'healing'));

-- +goose Down

delete from compactions where trigger = 'healing';
alter table compactions drop constraint compactions_trigger;
alter table compactions add constraint compactions_trigger check (trigger in ('append', 'reply', 'request'));
alter table compactions drop column remade_id;

-- +goose Up

-- An index of children alone. With roots in it, it could serve the check that
-- a parent exists as well as the primary key by Postgres' reckoning, as long
-- as the tables are small: a check then read the whole conversation.
alter table nodes drop constraint nodes_siblings;
create unique index nodes_siblings on nodes (conversation_id, parent_id, sibling_index) where parent_id is not null;

-- +goose Down

drop index nodes_siblings;
alter table nodes add constraint nodes_siblings unique (conversation_id, parent_id, sibling_index);

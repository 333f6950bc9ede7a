-- +goose Up

-- Messages by what they and all above them mean, so that a client that sends its
-- whole history and no ids is recognized. Those that are there get none.
alter table nodes add column path_hash bytea;
alter table nodes add constraint nodes_path_hash check (path_hash is null or kind = 'message');

create index nodes_paths on nodes (conversation_id, path_hash) where path_hash is not null;

-- +goose Down

drop index nodes_paths;
alter table nodes drop column path_hash;

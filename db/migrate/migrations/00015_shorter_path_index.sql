-- +goose Up

-- The first seven bytes of a path hash tell a conversation's messages apart, and
-- an entry takes half the room. The query compares the whole hash as well.
drop index nodes_paths;
create index nodes_paths on nodes (conversation_id, substring(path_hash for 7)) where path_hash is not null;

-- +goose Down

drop index nodes_paths;
create index nodes_paths on nodes (conversation_id, path_hash) where path_hash is not null;

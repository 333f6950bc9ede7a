-- +goose Up

-- The words of new messages wait in a list, which one append in many moves into
-- the index. With Postgres' 4 MB that append takes a tenth of a second, every
-- search reads the whole list, and in a database of 100,000 messages it is an
-- eighth of the index.
alter index nodes_search set (gin_pending_list_limit = 512);

-- +goose Down

alter index nodes_search reset (gin_pending_list_limit);

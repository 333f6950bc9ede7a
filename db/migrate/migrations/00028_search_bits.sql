-- +goose Up
set local lock_timeout = '2s';

-- The index of words is stored in fewer bits. The server makes it anew in the
-- background, and searches tell what isn't indexed yet. A program of an earlier version
-- reads the messages where it meets a chunk that it can't read. It can't store its own
-- kind any more: this program would miss what such a segment names.

truncate search_chunks, search_segments;

alter table search_chunks add constraint search_chunks_version check (substring(data for 1) <> '\x01');

delete from follower_places where follower = 'search';

update followers set scanned_id = '00000000-0000-0000-0000-000000000000' where name = 'search';

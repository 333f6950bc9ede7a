-- +goose Up
set local lock_timeout = '2s';

-- The index of words is stored in fewer bits. The server makes it anew in the
-- background, and searches tell what isn't indexed yet. A program of an earlier version
-- reads the messages where it meets a chunk that it can't read.

truncate search_chunks, search_segments;

delete from follower_places where follower = 'search';

update followers set scanned_id = '00000000-0000-0000-0000-000000000000' where name = 'search';

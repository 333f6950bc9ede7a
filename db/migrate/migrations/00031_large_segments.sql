-- +goose Up
set local lock_timeout = '2s';

-- A tenant's many segments are merged into large ones, of more and smaller buckets. The
-- server makes them anew in the background. Until then searches look at up to 4,096
-- chunks themselves, and tell if there are more. A server of an earlier version finds in
-- no segment what this one names, and can't store its own kind any more.

truncate search_segments;

update search_chunks set segment = null, place = null where segment is not null;

alter table search_segments add constraint search_segments_bucket check (bucket >= 256);

-- +goose Up

-- A tenant's messages by their time, so that a search for a word that most of
-- them have reads the newest until its page is full. The key is the tenant's part
-- of search_key as a number, which takes less room. It has summaries, too: else
-- Postgres would look messages up by reading all of it while the table is small.
create index nodes_recent on nodes (hashtextextended(left(search_key, 8), 0), created_at);

-- Whether a text matches a search. Words are only taken apart where one of them
-- is in the text in lower case. It is plain enough for Postgres to put it in
-- place of its call.
create function search_matches(said text, patterns text[], words tsquery) returns boolean
    language sql immutable parallel safe
    return case when (ts_lexize('simple', said))[1] like any (patterns) then to_tsvector('simple', said) @@ words else false end;

-- +goose Down

drop function search_matches;
drop index nodes_recent;

-- +goose Up
set local lock_timeout = '2s';

-- The list's index holds the minute instead of the time, so that most appends change no
-- indexed column, and leave the indexes alone. The column is generated, so that programs
-- of earlier versions keep it; until they stop, they sort all of a tenant's
-- conversations for each page. The table is written anew, locked: seconds for a million rows.

drop index conversations_listed;

alter table conversations add column updated_minute timestamptz not null
    generated always as (date_bin('1 minute', updated_at, timestamptz '2000-01-01 00:00:00+00')) stored;

create index conversations_listed on conversations (tenant_id, archived, pinned desc, updated_minute desc, id);

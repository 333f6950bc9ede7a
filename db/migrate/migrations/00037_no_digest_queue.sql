-- +goose Up
set local lock_timeout = '2s';

-- Digests have no queue of their own any more. A server of an earlier version that was
-- killed may have left jobs in it.

-- +goose StatementBegin
do $$
begin
    if to_regclass('river_job') is not null then
        update river_job set queue = 'default' where queue = 'digests';
    end if;
end $$;
-- +goose StatementEnd

-- +goose Up

-- Commands on the same machine tell the same of a branch as the server does.
alter table installation add column settings jsonb not null default '{}';

-- +goose Down

alter table installation drop column settings;

-- +goose Up

-- How a tenant orders its conversations. The defaults serve servers of the version
-- before, which don't know the columns and list archived conversations, too.
alter table conversations add column archived boolean not null default false;
alter table conversations add column pinned boolean not null default false;
alter table conversations add column tags text[] not null default '{}';

-- It stands for conversations_recent. Servers of the version before sort what they
-- list while both run.
create index conversations_listed on conversations (tenant_id, archived, pinned desc, updated_at desc, id desc);
drop index conversations_recent;

-- For the list of a tenant's tags.
create index conversations_tagged on conversations (tenant_id) where tags <> '{}';

-- +goose Down

create index conversations_recent on conversations (tenant_id, updated_at desc, id desc);
drop index conversations_tagged;
drop index conversations_listed;
alter table conversations drop column tags;
alter table conversations drop column pinned;
alter table conversations drop column archived;

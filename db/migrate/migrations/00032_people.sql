-- +goose Up
set local lock_timeout = '2s';

-- Keys have a role, a scope and an end, and conversations an owner. Keys that are
-- there may do what they could.

alter table api_keys add column role text not null default 'admin';
alter table api_keys add column user_id text not null default '';
alter table api_keys add column read_only boolean not null default false;
alter table api_keys add column conversation_id uuid;
alter table api_keys add column expires_at timestamptz;

alter table conversations add column owner_id text not null default '';
alter table conversations add column reader text not null default '';
alter table conversations add constraint conversations_reader check (reader in ('', owner_id));

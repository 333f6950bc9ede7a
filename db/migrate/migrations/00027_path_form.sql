-- +goose Up
set local lock_timeout = '2s';

-- The canonical form of messages changed. The path hashes of a conversation are made
-- anew when a client's history is first looked for in it, because only the program
-- can make them. Conversations that are there have null. Those that a program of an
-- earlier version makes meanwhile may miss a history, and never take it for another.

alter table conversations add column path_form smallint;
alter table conversations alter column path_form set default 2;

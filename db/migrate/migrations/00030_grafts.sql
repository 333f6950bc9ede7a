-- +goose Up
set local lock_timeout = '2s';

-- A message may say from which branch its text was brought: in the column in which a
-- summary says from where it was imported. Programs of earlier versions write no such
-- message, and read it as any other.

alter table nodes drop constraint nodes_origin;

-- Texts that models wrote for such messages are recorded with the compactions.
alter table compactions drop constraint compactions_trigger;
alter table compactions add constraint compactions_trigger check (trigger in ('append', 'reply', 'request', 'graft', 'healing'));

-- +goose Up

alter table conversations add column message_count integer not null default 0;

update conversations c
set message_count = counted.messages
from (select n.conversation_id, count(*) as messages from nodes n where n.kind = 'message' group by n.conversation_id) counted
where c.id = counted.conversation_id;

-- +goose Down

alter table conversations drop column message_count;

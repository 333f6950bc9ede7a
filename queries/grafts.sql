-- name: ListThere :many
-- Those of some messages that are there.
select n.id
from unnest(@ids::uuid[]) as wanted (id)
join lateral (select n.id, n.kind from nodes n where n.conversation_id = @conversation_id and n.id = wanted.id offset 0) n on true
where n.kind = 'message';

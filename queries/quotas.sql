-- name: AddTenantDays :many
-- In the order of the tenants, so that two servers don't wait for each other.
insert into tenant_days as d (tenant_id, day, requests, messages, bytes, cost)
select counted.tenant_id, @day, counted.requests, counted.messages, counted.bytes, counted.cost
from (
    select unnest(@tenant_ids::text[]) as tenant_id, unnest(@requests::bigint[]) as requests, unnest(@messages::bigint[]) as messages,
           unnest(@bytes::bigint[]) as bytes, unnest(@costs::double precision[]) as cost
) counted
order by counted.tenant_id
on conflict (tenant_id, day) do update
set requests = d.requests + excluded.requests, messages = d.messages + excluded.messages, bytes = d.bytes + excluded.bytes, cost = d.cost + excluded.cost
returning *;

-- name: GetTenantDay :one
select * from tenant_days where tenant_id = @tenant_id and day = @day;

-- name: ListTenantLimits :many
select * from tenant_limits where tenant_id = any (@tenant_ids::text[]);

-- name: SetTenantLimits :exec
-- Those that are not null.
insert into tenant_limits as l (tenant_id, requests, messages, bytes, cost)
values (@tenant_id, coalesce(sqlc.narg(requests)::bigint, 0), coalesce(sqlc.narg(messages)::bigint, 0), coalesce(sqlc.narg(bytes)::bigint, 0), coalesce(sqlc.narg(cost)::double precision, 0))
on conflict (tenant_id) do update
set requests = coalesce(sqlc.narg(requests), l.requests), messages = coalesce(sqlc.narg(messages), l.messages),
    bytes = coalesce(sqlc.narg(bytes), l.bytes), cost = coalesce(sqlc.narg(cost), l.cost);

-- name: DeleteTenantDays :exec
-- Of one tenant, or old ones of all.
delete from tenant_days where tenant_id = coalesce(sqlc.narg(tenant_id), tenant_id) and day < @before;

-- name: DeleteTenantLimits :exec
delete from tenant_limits where tenant_id = @tenant_id;

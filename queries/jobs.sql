-- name: CountJobs :one
-- Of River's table, which ../db/river.sql describes: River itself inserts, runs
-- and ends jobs. The states are named one by one, for River's index on them. A job whose next
-- attempt is due counts as waiting since then, also while no server is there to
-- queue it again. Jobs that embed count by themselves. Ages are in seconds.
select count(*) filter (where kind <> 'embedding' and state in ('available', 'pending', 'scheduled')) as queued,
       count(*) filter (where kind <> 'embedding' and state = 'retryable') as retrying,
       count(*) filter (where kind <> 'embedding' and state = 'running') as running,
       count(*) filter (where kind = 'embedding') as embedding,
       coalesce(extract(epoch from now() - min(scheduled_at) filter (where kind <> 'embedding' and state <> 'running' and scheduled_at <= now())), 0)::float8 as oldest_queued,
       coalesce(extract(epoch from now() - min(attempted_at) filter (where kind <> 'embedding' and state = 'running')), 0)::float8 as oldest_running
from river_job
where kind in ('compaction', 'title', 'embedding') and state in ('available', 'pending', 'scheduled', 'retryable', 'running');

-- name: TakeUpJobs :exec
-- Makes a server's own jobs of an earlier life available again; what was
-- interrupted was no attempt. Only a running job's last attempt is by the server
-- that runs it.
update river_job
set state = 'available', scheduled_at = now(), attempt = greatest(attempt - 1, 0)
where kind in ('compaction', 'title', 'embedding', 'embedding_index') and state = 'running' and attempted_by[array_upper(attempted_by, 1)] = @server_id::text;

-- name: TakeTurns :exec
-- Has the tenants take turns in a queue. River takes the job of the first priority,
-- and of those the oldest. A job's priority becomes its place in its tenant's line,
-- behind the tenant's running jobs and the one that has just ended; of the fourth
-- place on it is 4, the last that River has. It looks at the first thousand jobs, and at no priority where they are
-- one tenant's. Rows that River or another server has locked are skipped.
with waiting as materialized (
    select j.id, j.priority, j.scheduled_at, j.args ->> 'tenant_id' as tenant
    from river_job j
    where j.state = 'available' and j.queue = @queue
    order by j.priority, j.scheduled_at, j.id
    limit 1000
), running as (
    select j.args ->> 'tenant_id' as tenant, count(*) as jobs
    from river_job j
    where j.state = 'running' and j.queue = @queue or j.id = @ended_id
    group by 1
), places as (
    select w.id, least(4, coalesce(r.jobs, 0) + row_number() over (partition by w.tenant order by w.scheduled_at, w.id))::smallint as place
    from waiting w left join running r on r.tenant = w.tenant
), moved as (
    select j.id, p.place
    from places p join river_job j on j.id = p.id
    where j.state = 'available' and j.priority <> p.place and (select min(tenant) <> max(tenant) from waiting)
    for update of j skip locked
)
update river_job set priority = moved.place from moved where river_job.id = moved.id;

-- name: ReplayCount :one
SELECT count(*)
FROM operations
WHERE tenant_id = @tenant_id AND flagged_at IS NOT NULL AND status IN ('pending', 'unknown')
  AND (@status::text = '' OR status = @status::text)
  AND (@reason::text = '' OR reason = @reason::text)
  AND (@source::text = '' OR source = @source::text)
  AND created_at <= now() - make_interval(secs => @min_age_seconds::float8);

-- name: ReplaySample :many
SELECT id, key, kind, status, source, order_id, role, sequence, order_version, invoice_id, invoice_number, attempt, waits,
       reason, detail, changed_after_delivery_version, superseded_at, flagged_at, next_attempt_at, first_sent_at,
       finished_at, created_at
FROM operations
WHERE tenant_id = @tenant_id AND flagged_at IS NOT NULL AND status IN ('pending', 'unknown')
  AND (@status::text = '' OR status = @status::text)
  AND (@reason::text = '' OR reason = @reason::text)
  AND (@source::text = '' OR source = @source::text)
  AND created_at <= now() - make_interval(secs => @min_age_seconds::float8)
ORDER BY id
LIMIT @max_items;

-- name: ReplayFreeze :one
-- The run and its list of operations, in one statement and so of one moment. In the order of their ids, which is that in
-- which they were made and the one in which others lock operations. No row: another run of the tenant is not finished.
WITH matching AS MATERIALIZED (
    SELECT o.id, row_number() OVER (ORDER BY o.id) AS position
    FROM operations AS o
    WHERE o.tenant_id = @tenant_id AND o.flagged_at IS NOT NULL AND o.status IN ('pending', 'unknown')
      AND (@status::text = '' OR o.status = @status::text)
      AND (@reason::text = '' OR o.reason = @reason::text)
      AND (@source::text = '' OR o.source = @source::text)
      AND o.created_at <= now() - make_interval(secs => @min_age_seconds::float8)
), run AS (
    INSERT INTO replay_runs (id, tenant_id, status, reason, source, min_age_seconds, matched, total, started_by,
                             started_because, started_via, started_address, started_request, started_account)
    SELECT @id, @tenant_id, @status, @reason, @source, @min_age_seconds::bigint, count(*), least(count(*), @max_items::bigint),
           @started_by, @started_because, @started_via, @started_address, @started_request, sqlc.narg(started_account)::uuid
    FROM matching
    ON CONFLICT (tenant_id) WHERE finished_at IS NULL DO NOTHING
    RETURNING id, matched
), items AS (
    INSERT INTO replay_items (run_id, position, operation_id)
    SELECT run.id, matching.position, matching.id
    FROM run, matching
    WHERE matching.position <= @max_items::bigint
)
SELECT matched FROM run;

-- name: ReplayRunGet :one
SELECT id, status, reason, source, min_age_seconds, matched, total, queued, refused, stopped, started_by, started_because,
       started_via, started_address, started_request, started_account, started_at, finished_at, stopped_by
FROM replay_runs
WHERE tenant_id = @tenant_id AND id = @id;

-- name: ReplayRunGetOpen :one
SELECT id FROM replay_runs WHERE tenant_id = @tenant_id AND finished_at IS NULL;

-- name: ReplayRunListNewest :many
-- Newest first, from behind the position on.
SELECT id, status, reason, source, min_age_seconds, matched, total, queued, refused, stopped, started_by, started_because,
       started_via, started_address, started_request, started_account, started_at, finished_at, stopped_by
FROM replay_runs
WHERE tenant_id = @tenant_id
  AND (sqlc.narg(beyond_at)::timestamptz IS NULL
       OR (started_at, id) < (sqlc.narg(beyond_at)::timestamptz, sqlc.narg(beyond_id)::uuid))
ORDER BY started_at DESC, id DESC
LIMIT @max_items;

-- name: ReplayRunListOldest :many
-- Oldest first, from behind the position on.
SELECT id, status, reason, source, min_age_seconds, matched, total, queued, refused, stopped, started_by, started_because,
       started_via, started_address, started_request, started_account, started_at, finished_at, stopped_by
FROM replay_runs
WHERE tenant_id = @tenant_id
  AND (sqlc.narg(beyond_at)::timestamptz IS NULL
       OR (started_at, id) > (sqlc.narg(beyond_at)::timestamptz, sqlc.narg(beyond_id)::uuid))
ORDER BY started_at, id
LIMIT @max_items;

-- name: ReplayRunLock :one
-- For a batch: whoever works on the same run waits here, and then takes the next one. No row: it is finished, or gone.
SELECT tenant_id, started_by, started_because, started_via, started_address, started_request, started_account
FROM replay_runs
WHERE id = @id AND finished_at IS NULL
FOR NO KEY UPDATE;

-- name: ReplayRunAdvance :one
-- After a batch, under the lock. It is finished when nothing is left.
UPDATE replay_runs
SET queued = queued + sqlc.arg(queued)::integer, refused = refused + sqlc.arg(refused)::integer, updated_at = now(),
    finished_at = CASE WHEN queued + refused + sqlc.arg(queued)::integer + sqlc.arg(refused)::integer = total THEN now() END
WHERE id = @id AND finished_at IS NULL
RETURNING (finished_at IS NOT NULL)::boolean AS finished;

-- name: ReplayRunStop :execrows
-- Under the lock.
WITH left_over AS (
    UPDATE replay_items
    SET result = 'stopped', done_at = now()
    WHERE run_id = @id AND result = 'waiting'
    RETURNING position
)
UPDATE replay_runs
SET stopped = (SELECT count(*) FROM left_over), finished_at = now(), updated_at = now(), stopped_by = @stopped_by
WHERE id = @id AND finished_at IS NULL;

-- name: ReplayRunListWithoutJob :many
-- Not finished, nothing done for longer than the margin, and no job left that could go on with it.
SELECT r.id
FROM replay_runs AS r
WHERE r.finished_at IS NULL AND r.updated_at < now() - make_interval(secs => @margin_seconds::float8)
  AND NOT EXISTS (
      SELECT FROM river_job AS j
      WHERE j.kind = @job_kind AND j.args ->> 'run_id' = r.id::text
        AND (j.state IN ('available', 'pending')
             OR j.state = 'running' AND j.attempted_at > now() - make_interval(secs => @job_timeout_seconds::float8)
             OR j.state IN ('scheduled', 'retryable')
                AND j.scheduled_at > now() - make_interval(secs => @margin_seconds::float8)))
ORDER BY r.updated_at
LIMIT 100;

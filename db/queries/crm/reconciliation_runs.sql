-- name: ReconciliationRunGetOpen :one
SELECT id, window_from, window_to, phase, cursor, compared, found, repaired, started_at
FROM reconciliation_runs
WHERE tenant_id = @tenant_id AND scope = @scope AND finished_at IS NULL;

-- name: ReconciliationRunBegin :one
-- The window begins overlap before the end of the newest finished run, or where the caller says if that is earlier: this
-- run's end is where the next one looks back from, so nothing may lie between the two. Before the first finished run it
-- begins where the caller says, or else with the first thing there is. By the database's clock. No row: another one has
-- begun meanwhile. What ran long ago, and is not what the next one looks back from, is forgotten on the way.
WITH forgotten AS (
    DELETE FROM reconciliation_runs AS old
    WHERE old.tenant_id = @tenant_id AND old.scope = @scope AND old.finished_at < now() - interval '30 days'
      AND old.window_to < (SELECT max(newer.window_to)
                           FROM reconciliation_runs AS newer
                           WHERE newer.tenant_id = @tenant_id AND newer.scope = @scope AND newer.finished_at IS NOT NULL)
)
INSERT INTO reconciliation_runs (id, tenant_id, scope, window_from, window_to, phase, requested_by)
SELECT @id, @tenant_id, @scope,
       least(coalesce(least(sqlc.narg(since)::timestamptz, -- of nulls, least takes no notice
                            (SELECT max(r.window_to) - make_interval(secs => @overlap_seconds::float8)
                             FROM reconciliation_runs AS r
                             WHERE r.tenant_id = @tenant_id AND r.scope = @scope AND r.finished_at IS NOT NULL)),
                      TIMESTAMPTZ '1970-01-01 00:00:00Z'), now() - interval '1 second'),
       now(), @phase::text, @requested_by
ON CONFLICT (tenant_id, scope) WHERE finished_at IS NULL DO NOTHING
RETURNING id, window_from, window_to, phase, cursor, compared, found, repaired, started_at;

-- name: ReconciliationRunLock :one
-- Before a batch is written. No row: another process has gone on with this run from here, and this one's batch must not
-- be committed.
SELECT id
FROM reconciliation_runs
WHERE id = @id AND phase = @phase AND cursor = @cursor AND finished_at IS NULL
FOR NO KEY UPDATE;

-- name: ReconciliationRunAdvance :exec
UPDATE reconciliation_runs
SET phase = @phase, cursor = @cursor, compared = compared + @compared, found = found + @found,
    repaired = repaired + @repaired, updated_at = now(), finished_at = CASE WHEN @finished::boolean THEN now() END
WHERE id = @id;

-- name: ReconciliationRunAges :many
-- For the metrics: how long ago each tenant's newest finished run ended.
SELECT tenant_id, (extract(epoch FROM now() - max(finished_at)))::float8 AS age_seconds
FROM reconciliation_runs
WHERE scope = @scope AND finished_at IS NOT NULL
GROUP BY tenant_id;

-- name: ReconciliationRunGet :one
SELECT id, window_from, window_to, phase, compared, found, repaired, requested_by, started_at, updated_at, finished_at
FROM reconciliation_runs
WHERE tenant_id = @tenant_id AND id = @id;

-- name: ReconciliationRunListNewest :many
-- Newest first, from behind the position on.
SELECT id, window_from, window_to, phase, compared, found, repaired, requested_by, started_at, updated_at, finished_at
FROM reconciliation_runs
WHERE tenant_id = @tenant_id AND scope = @scope
  AND (sqlc.narg(beyond_at)::timestamptz IS NULL
       OR (started_at, id) < (sqlc.narg(beyond_at)::timestamptz, sqlc.narg(beyond_id)::uuid))
ORDER BY started_at DESC, id DESC
LIMIT @max_items;

-- name: ReconciliationRunListOldest :many
-- Oldest first, from behind the position on.
SELECT id, window_from, window_to, phase, compared, found, repaired, requested_by, started_at, updated_at, finished_at
FROM reconciliation_runs
WHERE tenant_id = @tenant_id AND scope = @scope
  AND (sqlc.narg(beyond_at)::timestamptz IS NULL
       OR (started_at, id) > (sqlc.narg(beyond_at)::timestamptz, sqlc.narg(beyond_id)::uuid))
ORDER BY started_at, id
LIMIT @max_items;

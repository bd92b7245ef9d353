-- What /metrics shows of the CRM side's database. None is read for each scrape: see internal/figures.

-- name: FigureListOpenOperations :many
-- All that is open, by operations_open_idx. The reason is told only of what waits for an operator.
SELECT o.status, (CASE WHEN o.flagged_at IS NULL THEN '' ELSE o.reason END)::text AS flagged_for,
       (o.flagged_at IS NOT NULL)::boolean AS flagged, (p.source IS NOT NULL)::boolean AS paused,
       count(*) AS operations,
       extract(epoch FROM now() - min(o.created_at))::float8 AS oldest_seconds,
       coalesce(extract(epoch FROM now() - min(o.flagged_at)), 0)::float8 AS oldest_flag_seconds
FROM operations AS o
LEFT JOIN source_pauses AS p ON p.tenant_id = o.tenant_id AND p.source = o.source
WHERE o.status IN ('pending', 'processing', 'unknown')
GROUP BY 1, 2, 3, 4;

-- name: FigureMostOverdue :one
-- How long the time of the operation that should have been worked on first has come; 0 if there is none. Those of a paused
-- source wait for a person.
SELECT greatest(coalesce(extract(epoch FROM now() - min(coalesce(o.next_attempt_at, o.lease_until))), 0), 0)::float8 AS seconds
FROM operations AS o
WHERE o.status IN ('pending', 'processing', 'unknown') AND o.flagged_at IS NULL
  AND NOT EXISTS (SELECT FROM source_pauses AS p WHERE p.tenant_id = o.tenant_id AND p.source = o.source);

-- name: FigureListFinalOperations :many
-- An index-only scan of operations_final_status_idx.
SELECT status, count(*) AS operations
FROM operations
WHERE status IN ('succeeded', 'failed', 'cancelled')
GROUP BY status;

-- name: FigureListJobs :many
-- Completed jobs say nothing that operations don't, and there may be many of them.
SELECT queue, state::text AS state, count(*) AS jobs,
       greatest(extract(epoch FROM now() - min(scheduled_at)), 0)::float8 AS oldest_seconds
FROM river_job
WHERE state IN ('available', 'pending', 'retryable', 'running', 'scheduled', 'discarded')
GROUP BY queue, state;

-- name: FigureOldestRunningJob :one
SELECT greatest(coalesce(extract(epoch FROM now() - min(attempted_at)), 0), 0)::float8 AS seconds
FROM river_job
WHERE state = 'running';

-- name: FigureCountSessions :one
SELECT count(*) FROM sessions WHERE expires_at > now();

-- name: FigureDatabaseSize :one
SELECT pg_database_size(current_database())::bigint AS bytes;

-- name: FigureOldestOpenRun :one
-- How long ago the oldest reconciliation that has not come to its end began; 0 if there is none.
SELECT coalesce(extract(epoch FROM now() - min(started_at)), 0)::float8 AS seconds
FROM reconciliation_runs
WHERE finished_at IS NULL;

-- name: FigureListAcceptedDivergences :many
-- Still there, and all right so: a person has said it.
SELECT kind, count(*) AS divergences
FROM divergences
WHERE resolved_at IS NULL AND accepted_at IS NOT NULL
GROUP BY kind;

-- name: FigurePauses :one
SELECT count(*) AS pauses, coalesce(extract(epoch FROM now() - min(paused_at)), 0)::float8 AS oldest_seconds
FROM source_pauses;

-- name: FigureOpenResolutions :one
-- What somebody has proposed and nobody else has decided.
SELECT count(*) AS resolutions, coalesce(extract(epoch FROM now() - min(proposed_at)), 0)::float8 AS oldest_seconds
FROM resolutions
WHERE status = 'open';
